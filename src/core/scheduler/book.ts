/** What the scheduler books of itself: refusals, predictions and what came of them, work that nobody got. */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { isJudged, type Refusal } from '../ledgers/refusals.ts';
import { wasteCauseOf } from '../ledgers/waste.ts';
import type { Lane } from '../queue/lane.ts';
import { ETA_US_MAX, NOBODY, type TaskRecord } from '../queue/task-record.ts';
import type { AttemptResult, Outcome } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { SchedulerState } from './state.ts';

/** A task ended without an answer; it counts where want of capacity was the reason. */
export function bookRefusal(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  if (!isJudged(outcome)) return;
  const { spec, flow, deadlineAt, workUs, deadlineWorkUs } = task;
  const { config, index } = flow.classRecord;
  const lane = laneToRecord(state, spec, { className: config.name, reason: outcome.reason });
  if (lane === null) return;
  const bounded = { deadlineAt, workUs, deadlineWorkUs };
  record(state, lane, { spec, className: config.name, classIndex: index, reason: outcome.reason, bounded });
}

/** The same of one that was refused before it became a task. */
export function bookEarlyRefusal(
  state: SchedulerState,
  spec: TaskSpec,
  { outcome, classIndex }: { readonly outcome: Outcome; readonly classIndex: number },
): void {
  if (!isJudged(outcome)) return;
  const className = state.classes[classIndex]?.config.name ?? spec.className;
  const lane = laneToRecord(state, spec, { className, reason: outcome.reason });
  if (lane === null) return;
  const { deadlineAt, workUs, firstByteWorkUs, stream } = spec;
  const bounded = { deadlineAt, workUs, deadlineWorkUs: stream ? firstByteWorkUs : workUs };
  record(state, lane, { spec, className, classIndex, reason: outcome.reason, bounded });
}

/** Counts the refusal; the lane in which it is to be recorded, or null: under overload most refusals leave no record. */
function laneToRecord(
  state: SchedulerState,
  { model, needs, tenant }: TaskSpec,
  { className, reason }: Pick<Refusal, 'className' | 'reason'>,
): Lane | null {
  const found = state.fleet.laneFor(model, needs, tenant);
  const lane = typeof found === 'string' ? null : found;
  return state.ledgers.refusals.count(className, reason, lane) ? lane : null;
}

interface Refused extends Pick<Refusal, 'className' | 'classIndex' | 'reason'> {
  readonly spec: TaskSpec;
  readonly bounded: Pick<Refusal, 'deadlineAt' | 'workUs' | 'deadlineWorkUs'>;
}

function record(state: SchedulerState, lane: Lane, { spec, bounded, ...facts }: Refused): void {
  const { id: taskId, tenant, model } = spec;
  state.ledgers.refusals.record({ taskId, tenant, model, at: state.now, ...facts, ...bounded }, lane);
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
  const doneUs = elapsedUs * node.rateOf(task.model, task.startInflight);
  state.ledgers.waste.waste(cause, Math.round(Math.min(task.workUs, doneUs)));
}
