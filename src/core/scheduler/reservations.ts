/**
 * Reservations: a waiting task books the busy node that it expects to take, so that others see that node as later.
 * A reservation ends when its task is considered anew or leaves the queue.
 */
import type { NodeRecord } from '../health/node-record.ts';
import { serviceUs } from '../placement/choose.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { SchedulerState } from './state.ts';

/** Standing reservations per lane. Beyond it tasks wait without one: the queue is long and drain time decides. */
export const RESERVATIONS_MAX = 64;

export function reserve(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): void {
  task.reservedNode = node;
  task.reservedUs = Math.round(serviceUs(node, task, state.context) / node.slotsNow);
  node.reservedUs += task.reservedUs;
  lane.reservations += 1;
  reorder(state, node);
}

export function unreserve(state: SchedulerState, lane: Lane, task: TaskRecord): void {
  const node = task.reservedNode;
  if (node === null) return;
  node.reservedUs -= task.reservedUs;
  task.reservedNode = null;
  task.reservedUs = 0;
  lane.reservations -= 1;
  reorder(state, node);
}

function reorder(state: SchedulerState, node: NodeRecord): void {
  for (const seat of node.seats) seat.pool.postpone(seat, state.now);
}
