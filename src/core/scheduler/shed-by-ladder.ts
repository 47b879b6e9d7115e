/**
 * What the ladder refuses at arrival. Stages 1 and 2 refuse nothing that an idle node would do in time; nor does
 * the last one while none of the first class waits, unless it was set by hand.
 */
import { flowWaitUs, gateUs } from '../admission/feasibility.ts';
import { standingOf, waitShareOf } from '../admission/retry-shed.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Outcome, RetryHint } from '../request/outcome.ts';
import { noteSaturated } from './crowded.ts';
import { idleNodeFor } from './make-way.ts';
import { retryHint } from './retry-hint.ts';
import type { SchedulerState } from './state.ts';
import type { LadderStage } from '../overload/model-ladder.ts';

export type Shed = Extract<Outcome, { kind: 'rejected' }>;

/** Why the ladder refuses the task, or null. Call only while a stage is raised. */
export function shedByLadder(state: SchedulerState, lane: Lane, task: TaskRecord): Shed | null {
  const cause = causeOf(state, lane, task);
  if (cause === '' || !state.gates.refuses('ladder')) return null;
  noteSaturated(state, lane, task);
  return { kind: 'rejected', reason: 'shed', hint: hintOf(state, lane, task), cause };
}

function causeOf(state: SchedulerState, lane: Lane, task: TaskRecord): string {
  const stage = state.ladder.stageOf(task.ladder, state.now);
  const { index } = task.flow.classRecord;
  if (stage === 3 && index > 0 && task.ladder?.trickles(index) !== true)
    return mayTakeIdle(state, lane, task) ? '' : told(state, task, stage);
  const isOff = state.ladder.isModelOff(task.model, lane, state.now);
  if (!isOff && (stage < 2 || index === 0 || hasShortQueue(state, lane, task))) return '';
  if (idleNodeFor(state, lane, task) !== null) return '';
  return isOff
    ? 'ladder: this optional model is switched off while others need its nodes'
    : told(state, task, stage);
}

/**
 * In the last stage the first class alone may wait. A node that idles although none of it waits is given away all the same:
 * refused work would not help anybody, unless an operator says so.
 */
function mayTakeIdle(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  if (state.ladder.isSetByHand(state.now) || (lane.classes[0]?.tasks ?? 0) > 0) return false;
  return idleNodeFor(state, lane, task) !== null;
}

/**
 * Whether what the flow has waiting drains at its share within the part of its gate that stage 2 leaves it. Nothing waits
 * for who comes back before its time; who comes at the time that it was told finds its place.
 */
function hasShortQueue(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  const standing = (task.standing ??= standingOf(task, state.retryMarks, state.gates, state.now));
  if (standing !== 'first') return standing === 'invited';
  const share = waitShareOf(standing, lane.flowHere(task.flow), state.now) * state.config.ladder.waitShare;
  return flowWaitUs(lane, task.flow) <= share * gateUs(lane, task, state);
}

function told(state: SchedulerState, task: TaskRecord, stage: LadderStage): string {
  if (state.ladder.isSetByHand(state.now)) return `ladder stage ${stage}, set by hand`;
  return `ladder stage ${stage}: ${task.ladder?.evidence ?? ''}`;
}

/** A queue that is limited opens when it has drained; what is closed opens when the stage ends. */
function hintOf(state: SchedulerState, lane: Lane, task: TaskRecord): RetryHint {
  const drained = retryHint(state, lane, task);
  if (state.ladder.stageOf(task.ladder, state.now) === 2) return drained;
  const leaseUs = state.ladder.remainingUs(task.ladder, state.now);
  return leaseUs > drained.afterUs ? { retryable: true, afterUs: leaseUs } : drained;
}
