/**
 * Reservations: a waiting task books the busy node that it expects to take, so that others see that node as later.
 * A reservation ends when its task is considered anew or leaves the queue.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { serviceUs } from '../placement/choose.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { SchedulerState } from './state.ts';

/** Standing reservations per lane. Beyond it tasks wait without one: the queue is long and drain time decides. */
export const RESERVATIONS_MAX = 64;
/**
 * How long a reservation's estimate is believed: a part of the time the task would take, and never long. Longer ones save choices;
 * up to a second cost nothing that was measured (docs/reference/performance.md).
 */
const FRESH_RATIO = 1 / 16;
const FRESH_US_MAX: DurationUs = 200_000;

interface Booking {
  readonly node: NodeRecord;
  readonly doneAt: MonoUs;
}

/** Whether the task waits for another node by an estimate that is still fresh: then nothing needs choosing anew. */
export function hasFreshReservation(task: TaskRecord, offered: NodeRecord, now: MonoUs): boolean {
  const node = task.reservedNode;
  return node !== null && node !== offered && node.running.length > 0 && now < task.reservedUntil;
}

/** Books the node for the task, which would be done there at `doneAt`. */
export function reserve(state: SchedulerState, lane: Lane, task: TaskRecord, booking: Booking): void {
  const { node, doneAt } = booking;
  task.reservedNode = node;
  task.reservedDoneAt = doneAt;
  task.reservedUs = Math.round(serviceUs(node, task, state.context) / node.slotsNow);
  task.reservedUntil = state.now + Math.min(FRESH_US_MAX, task.reservedUs * FRESH_RATIO);
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
  for (let seat = node.firstSeat; seat !== null; seat = seat.next) seat.pool.postpone(seat, state.now);
}
