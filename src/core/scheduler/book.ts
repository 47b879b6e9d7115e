/** What the scheduler books of itself: refusals, predictions and what came of them, work that nobody got. */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { isJudged, type Refusal } from '../ledgers/refusals.ts';
import { wasteCauseOf } from '../ledgers/waste.ts';
import { ETA_US_MAX, NOBODY, type TaskRecord } from '../queue/task-record.ts';
import type { AttemptResult, Outcome } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { SchedulerState } from './state.ts';

/** A task ended without an answer; it counts where want of capacity was the reason. */
export function bookRefusal(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  if (!isJudged(outcome)) return;
  const { spec, flow, deadlineAt, workUs, deadlineWorkUs } = task;
  const { config, index } = flow.classRecord;
  note(state, spec, {
    taskId: spec.id,
    className: config.name,
    classIndex: index,
    tenant: spec.tenant,
    model: spec.model,
    reason: outcome.reason,
    at: state.now,
    deadlineAt,
    workUs,
    deadlineWorkUs,
  });
}

/** The same of one that was refused before it became a task. */
export function bookEarlyRefusal(
  state: SchedulerState,
  spec: TaskSpec,
  { outcome, classIndex }: { readonly outcome: Outcome; readonly classIndex: number },
): void {
  if (!isJudged(outcome)) return;
  note(state, spec, {
    taskId: spec.id,
    className: state.classes[classIndex]?.config.name ?? spec.className,
    classIndex,
    tenant: spec.tenant,
    model: spec.model,
    reason: outcome.reason,
    at: state.now,
    deadlineAt: spec.deadlineAt,
    workUs: spec.workUs,
    deadlineWorkUs: spec.stream ? spec.firstByteWorkUs : spec.workUs,
  });
}

function note(state: SchedulerState, { model, needs, tenant }: TaskSpec, refusal: Refusal): void {
  const lane = state.fleet.laneFor(model, needs, tenant);
  state.ledgers.refusals.note(refusal, typeof lane === 'string' ? null : lane);
}

/** Somebody who was refused came back no earlier than told. */
export function bookReturn(state: SchedulerState, isLetIn: boolean): void {
  const { hints } = state.ledgers.eta;
  if (isLetIn) hints.kept += 1;
  else hints.broken += 1;
}

/** What the deadline bounds is expected to be done at this instant; see `TaskRecord.etaUs`. */
export function expectDoneAt(task: TaskRecord, at: MonoUs): void {
  task.etaUs = Math.min(ETA_US_MAX, Math.max(1, Math.round(at - task.submittedAt)));
}

/** What the deadline bounds is done. */
export function bookDone(state: SchedulerState, task: TaskRecord): void {
  if (task.etaUs === 0) return;
  const { name } = task.flow.classRecord.config;
  state.ledgers.eta.note(name, 'admission', Math.max(1, state.now - task.submittedAt) / task.etaUs);
}

/** Its deadline came first: it would have taken longer than this. */
export function bookNotDone(state: SchedulerState, task: TaskRecord): void {
  if (task.etaUs === 0) return;
  const { name } = task.flow.classRecord.config;
  state.ledgers.eta.noteAtLeast(name, task.etaUs, state.now - task.submittedAt);
}

export function bookService(state: SchedulerState, task: TaskRecord, elapsedUs: DurationUs): void {
  if (task.predictedUs <= 0) return;
  state.ledgers.eta.note(task.flow.classRecord.config.name, 'dispatch', elapsedUs / task.predictedUs);
}

export interface EndedAttempt {
  readonly node: NodeRecord;
  readonly elapsedUs: DurationUs;
  readonly result: AttemptResult;
  /** Whether its place was asked for. */
  readonly heir: number;
}

/** An attempt ended without use: what its node did of it was for nobody. What ended well is booked with its work. */
export function bookAttempt(state: SchedulerState, task: TaskRecord, ended: EndedAttempt): void {
  const { node, elapsedUs, result, heir } = ended;
  const { isSettled, hasExpired } = task;
  const cause = wasteCauseOf(result, { isSettled, hasExpired, gaveWay: heir !== NOBODY });
  if (cause === null) return;
  const doneUs = elapsedUs * node.rateOf(task.spec.model, task.startInflight);
  state.ledgers.waste.waste(cause, Math.round(Math.min(task.workUs, doneUs)));
}
