/**
 * Lesser answers: what a task goes on with where it would be refused, evicted or fail.
 *
 *   bad end ──► cache ──► cheaper model ──► lower quality ──► default ──► the bad end after all
 *                 │             │                 │              │
 *             degraded     admitted again    admitted again   degraded
 *
 * From stage 1 of the overload ladder on a task of the last class begins with its first lesser answer that can be given,
 * and is given the whole one only where none can.
 *
 * Bad ends are collected while an event is applied and looked at before it is over: a scan of a queue must not see it
 * change. A lesser task keeps its number, its deadline, the nodes that it was tried on and the count of its attempts, so
 * one bound on attempts holds over all alternatives; each is taken at most once.
 */
import {
  type Alternative,
  type BadEnd,
  type DegradeStep,
  isReplaceable,
  LesserSpec,
  type LesserTask,
  needsWork,
} from '../degrade/alternative.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { bookRefusal } from './book.ts';
import { alternativesOf } from './instead.ts';
import type { Outcome, RejectReason } from '../request/outcome.ts';
import { mayTryElsewhere } from './attempts.ts';
import { keepPlace } from './retry-hint.ts';
import { endReservation, settle } from './settle.ts';
import { countOutcome, type SchedulerState } from './state.ts';
import { enter, refusedAtOnce } from './submit.ts';

/** Gives every task that met a bad end its next alternative, or that end. */
export function degradePending(state: SchedulerState): void {
  const { degrading } = state;
  // It grows while it is worked off: who comes in may drive out others. Each task comes back once per alternative at most.
  for (let i = 0; i < degrading.length; i += 1) {
    const pending = degrading[i] as (typeof degrading)[number];
    if (takesAlternative(state, pending.task, pending.end)) continue;
    if (pending.end === null) goesOnWhole(state, pending.task);
    else endBadly(state, pending.task, pending.end);
  }
  degrading.length = 0;
}

/** Without a bad end the configured answer is none: the whole one may still be given. */
function takesAlternative(state: SchedulerState, task: TaskRecord, end: BadEnd | null): boolean {
  const alternatives = alternativesOf(task);
  for (let index = task.alternative + 1; index < alternatives.length; index += 1) {
    const alternative = alternatives[index] as Alternative;
    if (end === null && alternative.how === 'default') continue;
    const because = end === null ? 'ladder' : end.reason;
    const step: DegradeStep = { index, alternative, because, verdict: 'taken' };
    if (!needsWork(alternative)) {
      endInstead(state, task, step);
      return true;
    }
    const refused = goesOnAs(state, task, step, alternative);
    if (refused === null) return true;
    state.out.degraded(task.id, { ...step, verdict: refused });
  }
  return false;
}

/** No lesser answer could be given at once: the task goes the way of every other, and may come back with its bad end. */
function goesOnWhole(state: SchedulerState, task: TaskRecord): void {
  const refusal = refusedAtOnce(state, task.spec, task.flow.classRecord) ?? enter(state, task);
  if (refusal === null) return;
  if (isReplaceable(refusal)) state.degrading.push({ task, end: refusal });
  else endBadly(state, task, refusal);
}

/** Admits the task as the lesser one; why not, or null. */
function goesOnAs(
  state: SchedulerState,
  task: TaskRecord,
  step: DegradeStep,
  lesser: LesserTask,
): RejectReason | null {
  const before = { spec: task.spec, alternative: task.alternative };
  task.become(new LesserSpec(before.spec, lesser, before.spec.alternatives ?? []));
  if (task.attemptsUsed > 0 && !mayGoElsewhere(state, task)) {
    task.become(before.spec);
    return 'no-node';
  }
  task.alternative = step.index;
  task.isRunning = false;
  state.offered = step;
  const refusal = refusedAtOnce(state, task.spec, task.flow.classRecord) ?? enter(state, task);
  state.offered = null;
  if (refusal === null) return null;
  task.become(before.spec);
  task.alternative = before.alternative;
  return refusal.reason;
}

/** A lesser task after a failed attempt is a retry: bounded, paid for, and on another node. */
function mayGoElsewhere(state: SchedulerState, task: TaskRecord): boolean {
  const lane = state.fleet.laneFor(task.model, task.spec.needs, task.spec.tenant);
  return typeof lane !== 'string' && mayTryElsewhere(state, task, lane);
}

function endInstead(state: SchedulerState, task: TaskRecord, step: DegradeStep): void {
  state.out.degraded(task.id, step);
  conclude(state, task, { kind: 'degraded', alternative: step.index });
}

function endBadly(state: SchedulerState, task: TaskRecord, end: BadEnd): void {
  conclude(state, task, end);
}

/** A task that was refused at its arrival is not among the known ones yet. */
function conclude(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  if (state.tasks.has(task.id)) return settle(state, task, outcome);
  if (task.reservation !== null) endReservation(state, task);
  if (task.isTold) keepPlace(state, task, outcome);
  countOutcome(state.counts, outcome);
  bookRefusal(state, task, outcome);
  state.out.outcome(task.id, outcome);
}
