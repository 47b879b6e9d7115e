/** Where the counters of the detectors are fed: each of these is a few additions. */
import type { DurationUs, RefUs } from '../../base/units.ts';
import { type Standing, standingOf } from '../admission/retry-shed.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Outcome } from '../request/outcome.ts';
import type { TaskStage } from '../request/task.ts';
import type { SchedulerState } from './state.ts';

/** Over the share of its class: so many dispatches of others pass a task in two rounds of a fair order. */
const FAIR_ROUNDS = 2;

/** The task is about to run: `attempts` counts it already. */
export function tallyAssigned(state: SchedulerState, task: TaskRecord): void {
  if (task.prefix !== null) {
    const { blocks, workUsPerBlock } = task.prefix;
    state.tallies.promptWorkUs += blocks.length * workUsPerBlock;
    state.tallies.savedWorkUs += task.savedUs;
  }
  if (task.attempts > 1) state.tallies.retries += 1;
  else task.flow.classRecord.tally.noteDispatched(state.now - task.submittedAt, task.workUs);
}

export function tallyOutcome(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  const { tally } = task.flow.classRecord;
  const { kind } = outcome;
  if (task.stage !== null) tallyStage(state, task, task.stage);
  if (kind === 'served' || kind === 'degraded') tally.noteServed(task, state.now);
  else if (kind === 'cancelled') tally.cancelled += 1;
  else if ('reason' in outcome && (outcome.reason === 'wait-expired' || outcome.reason === 'node-timeout'))
    tally.missed += 1;
  else tally.failed += 1;
}

/** It waited until its last attempt began; who never had one has waited all the time. */
function tallyStage(state: SchedulerState, task: TaskRecord, { name, parent }: TaskStage): void {
  const { now, tallies } = state;
  const runningFrom = task.attempts === 0 ? now : task.decidedAt;
  tallies.stages.ended({
    name,
    parent,
    waitUs: runningFrom - task.submittedAt,
    execUs: now - runningFrom,
    at: now,
  });
}

/**
 * A task missed its deadline waiting. Those that were ahead of it when it came are no more than waited then, so what left
 * the lane beyond that came later: at least so many passed it.
 */
export function tallyExpired(lane: Lane, task: TaskRecord): void {
  const { tally, weight } = task.flow.classRecord;
  if (lane.dispatches - task.passableUntil > FAIR_ROUNDS / weight) tally.overtaken += 1;
}

export function tallyServed(node: NodeRecord, task: TaskRecord, workUs: RefUs, elapsedUs: DurationUs): void {
  node.noteServed(workUs);
  if (task.predictedUs > 0) node.notePrediction(Math.log(elapsedUs / task.predictedUs));
}

/** Whether the task is a repeated request; asked once. */
export function tallyStanding(state: SchedulerState, task: TaskRecord): Standing {
  const standing = standingOf(task, state.retryMarks, state.gates, state.now);
  if (standing !== 'first') state.tallies.comebacks += 1;
  return standing;
}
