/** The only places where a task enters a queue, leaves one, and gets its outcome. */
import { invariant } from '../../base/assert.ts';
import { type BadEnd, isReplaceable } from '../degrade/alternative.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { EvictReason, Outcome, RetryHint } from '../request/outcome.ts';
import { bookNotDone, bookRefusal } from './book.ts';
import { modelRefusal, releaseModelProbe } from './breakers.ts';
import { noteCrowded } from './crowded.ts';
import { unreserve } from './reservations.ts';
import { keepPlace, placeAfterRestart, retryHint } from './retry-hint.ts';
import { countOutcome, type SchedulerState } from './state.ts';
import { tallyExpired, tallyOutcome } from './tallies.ts';

export const GAVE_WAY = 'it ran, and gave its place to a request of the first class';

export function enqueue(lane: Lane, task: TaskRecord): void {
  task.passableUntil = lane.dispatches + lane.tasks;
  task.flow.enter(task);
  lane.push(task);
}

export function dequeue(state: SchedulerState, task: TaskRecord): void {
  const lane = task.lane as Lane;
  unreserve(state, lane, task);
  lane.remove(task);
  task.flow.leave(task);
}

/** Gives the task its one outcome. A task with a permit out stays known until the permit comes back. */
export function settle(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  invariant(!task.isSettled, 'A task has exactly one outcome');
  task.isSettled = true;
  state.wheel.remove(task);
  if (task.isTold) keepPlace(state, task, outcome);
  releaseModelProbe(state, task.model, task.id);
  countOutcome(state.counts, outcome);
  tallyOutcome(state, task, outcome);
  if (outcome.kind === 'evicted' || outcome.kind === 'rejected') bookRefusal(state, task, outcome);
  if (task.node === null) forget(state, task);
  else state.counts.running -= 1;
  state.out.outcome(task.id, outcome);
}

/** Ends a task that is neither queued nor running badly, unless a lesser answer can stand in. */
export function settleOrDegrade(state: SchedulerState, task: TaskRecord, end: BadEnd): void {
  if (task.spec.alternatives !== undefined && isReplaceable(end)) {
    releaseModelProbe(state, task.model, task.id);
    state.degrading.push({ task, end });
  } else settle(state, task, end);
}

/** Drops the last reference to a task, once its outcome is known and its permit is back. */
export function forget(state: SchedulerState, task: TaskRecord): void {
  if (task.reservation !== null) endReservation(state, task);
  if (!state.tasks.delete(task.id)) return;
  state.tallies.residence.leave(state.now, task.submittedAt);
  state.records.give(task);
}

/** Ends what the task holds of limits: it pays for what was used so far. */
export function endReservation(state: SchedulerState, task: TaskRecord): void {
  task.reservation?.end(state.now);
  task.reservation = null;
}

export function evict(state: SchedulerState, task: TaskRecord, reason: EvictReason): void {
  const lane = task.lane as Lane;
  const hint =
    reason === 'shutting-down' ? placeAfterRestart(state, lane, task) : retryHint(state, lane, task);
  if (reason === 'wait-expired') {
    task.ladder?.noteDeadline(task.flow.classRecord.index, false, state.now);
    tallyExpired(lane, task);
    noteCrowded(state, lane);
    bookNotDone(state, task);
  }
  dequeue(state, task);
  if (reason === 'wait-expired' && task.gaveWay) return endPreempted(state, task, hint);
  settleOrDegrade(state, task, { kind: 'evicted', reason, hint });
}

/** Ends a task that gave its place and cannot be done in time any more. */
export function endPreempted(state: SchedulerState, task: TaskRecord, hint: RetryHint): void {
  settleOrDegrade(state, task, { kind: 'evicted', reason: 'preempted', hint, cause: GAVE_WAY });
}

/** The breaker of its model opened while it waited: it is told at once, and no attempt is spent on it. */
export function evictIfShut(state: SchedulerState, task: TaskRecord): boolean {
  const shut = modelRefusal(state, task.model, task.id);
  if (shut === null) return false;
  dequeue(state, task);
  settleOrDegrade(state, task, { kind: 'evicted', reason: 'no-node', ...shut });
  return true;
}
