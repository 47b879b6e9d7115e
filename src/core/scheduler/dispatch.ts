/**
 * Late binding: tasks meet nodes only here, and only when a node has room.
 *
 * One pass over a lane takes its tasks in fair order. Each goes to the node that completes it first; where that node
 * is busy, the task is held and reserves it, so that the next task sees the reservation. At most `heldMax` are held.
 * Then an idle node takes the held task that loses least by it, if the deadline holds and the loss is covered by the
 * work that waits (waiting work / capacity), or the lane refuses work: then an idle node is pure loss.
 * Nothing is moved in the queue for a held task.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { bestServiceUs, laneDrainUs } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { choose, deadlineServiceUs, serviceUs } from '../placement/choose.ts';
import type { Seat } from '../placement/pool.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { dequeue, evict } from './settle.ts';
import type { SchedulerState } from './state.ts';

/** Bounds on when to think again about nodes that were left idle on purpose. */
const RECHECK_US_MIN: DurationUs = 1_000;
const RECHECK_US_MAX: DurationUs = 1_000_000;

interface HeldTask {
  readonly task: TaskRecord;
  /** The reserved seat, when it is reserved, and when the task would be done there; Infinity without one. */
  readonly doneAt: MonoUs;
}

export function hasRoom(lane: Lane): boolean {
  for (const pool of lane.pools) if (pool.roomySeats > 0) return true;
  return false;
}

/** A node got room, or came back: serves its lanes, the one with least served work first. */
export function dispatchNode(state: SchedulerState, node: NodeRecord): void {
  const lanes: Lane[] = [];
  for (const { pool } of node.seats) {
    for (const lane of pool.lanes) if (lane.tasks > 0 && !lanes.includes(lane)) lanes.push(lane);
  }
  if (lanes.length > 1) lanes.sort((a, b) => a.laneTag - b.laneTag);
  for (const lane of lanes) if (hasRoom(lane)) dispatchLane(state, lane);
}

export function dispatchLane(state: SchedulerState, lane: Lane): void {
  const held: HeldTask[] = [];
  const reserved: Seat[] = [];
  let recheckAt = Number.POSITIVE_INFINITY;
  while (held.length < state.config.placement.heldMax && hasRoom(lane)) {
    const task = lane.next();
    if (task === null) break;
    if (!canStillBeDone(state, lane, task)) {
      evict(state, task, 'wait-expired');
      continue;
    }
    choose(lane.pools, task, state.context, state.choice);
    const { roomy, busy, busyDoneAt, busyStartAt } = state.choice;
    if (roomy !== null && shouldStart(state, task, roomy)) {
      assign(state, lane, task, roomy.node);
      continue;
    }
    if (busy !== null) {
      reserve(state, busy, task);
      reserved.push(busy);
      recheckAt = Math.min(recheckAt, busyStartAt);
    }
    held.push({ task, doneAt: busy === null ? Number.POSITIVE_INFINITY : busyDoneAt });
    lane.hold(task);
  }
  if (held.length > 0) releaseDeep(state, lane, held);
  for (const seat of reserved) unreserve(state, seat);
  lane.endScan();
  scheduleRecheck(state, lane, recheckAt);
}

/** The best open node, free at once, must do it by the deadline with the margin that measured errors ask for. */
function canStillBeDone(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  return state.now + bestServiceUs(lane, task) * marginOf(state) <= task.deadlineAt;
}

function shouldStart(state: SchedulerState, task: TaskRecord, roomy: Seat): boolean {
  const { busy, busyDoneAt, roomyDoneAt, busyStartAt } = state.choice;
  const meetsHere = meetsDeadline(state, task, roomy.node, state.now);
  if (busy === null) return meetsHere;
  const tie = 1 - state.config.placement.nearTieRatio;
  const isFasterElsewhere = busyDoneAt - state.now < (roomyDoneAt - state.now) * tie;
  if (!isFasterElsewhere) return meetsHere;
  return meetsHere && !meetsDeadline(state, task, busy.node, busyStartAt);
}

/** Whether the node would do in time what the deadline bounds, with the margin that measured errors ask for. */
export function meetsDeadline(
  state: SchedulerState,
  task: TaskRecord,
  node: NodeRecord,
  startAt: MonoUs,
): boolean {
  return startAt + deadlineServiceUs(node, task, state.context) * marginOf(state) <= task.deadlineAt;
}

/** Idle nodes take held tasks, each time the one that loses least, while the waiting work covers the loss. */
function releaseDeep(state: SchedulerState, lane: Lane, held: HeldTask[]): void {
  while (held.length > 0 && hasRoom(lane)) {
    const affordableUs = lane.saturatedUntil > state.now ? Number.POSITIVE_INFINITY : laneDrainUs(lane);
    let best = -1;
    let bestLossUs = Number.POSITIVE_INFINITY;
    let bestNode: NodeRecord | null = null;
    for (const [index, { task, doneAt }] of held.entries()) {
      choose(lane.pools, task, state.context, state.choice);
      const { roomy, roomyDoneAt } = state.choice;
      if (roomy === null || !meetsDeadline(state, task, roomy.node, state.now)) continue;
      const lossUs = doneAt === Number.POSITIVE_INFINITY ? 0 : roomyDoneAt - doneAt;
      if (lossUs >= bestLossUs) continue;
      best = index;
      bestLossUs = lossUs;
      bestNode = roomy.node;
    }
    if (bestNode === null || bestLossUs > affordableUs) return;
    const [chosen] = held.splice(best, 1);
    assign(state, lane, (chosen as HeldTask).task, bestNode);
  }
}

/** Books a busy seat for a held task during this pass, so that the next task sees the node as later. */
function reserve(state: SchedulerState, seat: Seat, task: TaskRecord): void {
  const { node } = seat;
  node.reservedUs += serviceUs(node, task, state.context) / Math.max(1, node.slotsMax(state.config));
  for (const own of node.seats) own.pool.postpone(own, state.now);
}

function unreserve(state: SchedulerState, seat: Seat): void {
  const { node } = seat;
  if (node.reservedUs === 0) return;
  node.reservedUs = 0;
  for (const own of node.seats) own.pool.postpone(own, state.now);
}

function scheduleRecheck(state: SchedulerState, lane: Lane, expectedAt: MonoUs): void {
  if (lane.tasks === 0 || !hasRoom(lane)) {
    state.heldLanes.delete(lane);
    return;
  }
  const waitUs = Math.min(RECHECK_US_MAX, Math.max(RECHECK_US_MIN, expectedAt - state.now));
  state.heldLanes.add(lane);
  state.heldRecheckAt = Math.min(state.heldRecheckAt, state.now + Math.round(waitUs));
}

/** Binds a queued task to a node. */
export function assign(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): void {
  lane.charge(task);
  dequeue(task);
  task.predictedUs = serviceUs(node, task, state.context);
  task.isRunning = true;
  task.node = node;
  task.attempts += 1;
  task.decidedAt = state.now;
  task.sentAt = 0;
  task.hasFirstByte = false;
  task.flow.running += 1;
  state.counts.running += 1;
  node.start(task, state.now);
  task.startInflight = node.running.size;
  for (const seat of node.seats) seat.pool.noteWork(task.workUs);
  state.fleet.place(node, state.now, state.config);
  state.out.assign(task.spec.id, node.spec.id, task.attempts);
}

export function marginOf(state: SchedulerState): number {
  return state.margin.within(state.config.admission.marginMin, state.config.admission.marginMax);
}
