/**
 * When a refused request would be let in if it came again. The hint is a place in line, not a look at the queue alone: who
 * is refused after it is told a later time, as fast as the flow is served, so that those who come back find room.
 */
import type { DurationUs } from '../../base/units.ts';
import { gateUs, laneCapacity } from '../admission/feasibility.ts';
import { PROMISED_SHARE, PROMISED_US_MAX, nextPlaceUs, takePlace } from '../admission/retry-shed.ts';
import type { ClassRecord } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Outcome, RetryHint } from '../request/outcome.ts';
import { modelReturnsAt } from './breakers.ts';
import type { SchedulerState } from './state.ts';

/**
 * The next place in line; it is kept for the task by `keepPlace`, if the refusal stands. Whoever comes before the time it was
 * told is told the same time again.
 */
export function retryHint(state: SchedulerState, lane: Lane, task: TaskRecord): RetryHint {
  const { now, retryMarks, gates } = state;
  const rate = laneCapacity(lane) * lane.shareOf(task.flow);
  if (rate === 0) return soonestReturn(state, lane, task.model);
  const toldUs = retryMarks.size === 0 ? 0 : retryMarks.remainingUs(task.fingerprint, now);
  if (toldUs > 0) return { retryable: true, afterUs: toldUs };
  task.isTold = gates.isWatching('retry-shed');
  const laneFlow = lane.flowHere(task.flow);
  const limitUs = gateUs(lane, task, { now: task.submittedAt, config: state.config });
  const freeUs = Math.max(0, lane.queuedUsOf(task.flow) / rate - PROMISED_SHARE * limitUs);
  const waitUs = laneFlow === undefined ? freeUs : nextPlaceUs(laneFlow, freeUs, now);
  return { retryable: true, afterUs: Math.max(1, Math.round(waitUs)) };
}

/** Keeps the place that a refused task was told, unless it is too far ahead. Once per task, when its end is known. */
export function keepPlace(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  if (!task.isTold || !('hint' in outcome) || outcome.hint.afterUs > PROMISED_US_MAX) return;
  task.isTold = false;
  const { now, retryMarks } = state;
  const { afterUs } = outcome.hint;
  retryMarks.note(task.fingerprint, afterUs, now);
  const lane = state.fleet.laneFor(task.model, task.spec.needs, task.spec.tenant);
  const laneFlow = typeof lane === 'string' ? undefined : lane.flowHere(task.flow);
  if (typeof lane === 'string' || laneFlow === undefined || !state.gates.isOn('retry-shed')) return;
  const rate = laneCapacity(lane) * lane.shareOf(task.flow);
  if (rate > 0) takePlace(laneFlow, now + afterUs, Math.round((retryMarks.keptRatio * task.workUs) / rate));
}

/** When the first closed node of the lane may take the model again; the next look at the fleet where none says when. */
export function soonestReturn(state: SchedulerState, lane: Lane, model: string): RetryHint {
  let soonest = Number.POSITIVE_INFINITY;
  for (const pool of lane.pools) {
    for (const { node } of pool.seats) {
      if (node.cordoned || node.draining) continue;
      const opensAt = Math.max(node.suspectUntil, node.ejectedUntil, modelReturnsAt(node, model));
      soonest = Math.min(soonest, opensAt);
    }
  }
  const isKnown = Number.isFinite(soonest) && soonest > state.now;
  return isKnown ? { retryable: true, afterUs: soonest - state.now } : nextLook(state);
}

/** Nobody knows when a node comes: the fleet is looked at again at the latest after this time. */
export function nextLook(state: SchedulerState): RetryHint {
  return { retryable: true, afterUs: state.config.health.reconcileMs * 1_000 };
}

/** The gateway's own survival lets classes back one by one, the higher ones first, this long apart. */
export const CLASS_RETURN_US: DurationUs = 2_000_000;

/** When a class that the gateway's survival refuses comes back, if the pressure ends now. */
export function classReturn(state: SchedulerState, record: ClassRecord): RetryHint {
  const steps = state.shedClasses - (state.classes.length - 1 - record.index);
  return { retryable: true, afterUs: Math.max(1, steps) * CLASS_RETURN_US };
}

/** From the end of one process to the first answer of the next, measured: a second or two. */
const RESTART_US: DurationUs = 2_000_000;

/** Works out, once, when this gateway will have served what runs. */
export function noteShutdown(state: SchedulerState): void {
  state.returnAt = state.now + RESTART_US;
  for (const node of state.fleet.nodes.values()) {
    for (const task of node.running)
      state.returnAt = Math.max(state.returnAt, task.decidedAt + Math.round(task.predictedUs) + RESTART_US);
  }
}

/** When a gateway may be back in the place of this one. */
export function afterRestart(state: SchedulerState): RetryHint {
  return { retryable: true, afterUs: Math.max(RESTART_US, state.returnAt - state.now) };
}

/** The same for one that waited: they come back one after the other, as fast as they are served. */
export function placeAfterRestart(state: SchedulerState, lane: Lane, task: TaskRecord): RetryHint {
  const hint = afterRestart(state);
  const rate = laneCapacity(lane);
  if (rate > 0) state.returnAt += Math.round(task.workUs / rate);
  return hint;
}
