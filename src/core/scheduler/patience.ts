/**
 * Bounds on the silence of an attempt: set when it is assigned, kept by who performs it, learned from when it ends.
 * The gate `timeouts` in shadow sets them, tells nobody, and counts what they would have cut.
 */
import type { DurationUs, TaskId } from '../../base/units.ts';
import { priorOf } from '../capacity/hardware.ts';
import {
  FIRST_BYTE,
  IDLE,
  NodePatience,
  STRETCH_MAX,
  type TimeSample,
  WHOLE,
  type WaitKind,
  type WaitQuestion,
} from '../capacity/timeouts.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { EndedAttempt } from './book.ts';
import type { AttemptLimits } from './contract.ts';
import type { SchedulerState } from './state.ts';

/** Time without a success after which a node may have unloaded its model. */
const COLD_AFTER_US: DurationUs = 60_000_000;
/**
 * Filled anew for each attempt that starts or ends, and kept by nobody: new ones would be a third of what a task allocates.
 */
const SAMPLE: Mutable<TimeSample> = {
  model: '',
  modelNumber: -1,
  patience: new NodePatience(),
  workUs: 1,
  elapsedUs: 1,
  inflight: 1,
  limitUs: 0,
  now: 0,
};
const QUESTION: Mutable<WaitQuestion> = {
  model: '',
  modelNumber: -1,
  workUs: 1,
  patience: SAMPLE.patience,
  prior: priorOf(''),
  inflight: 1,
  slots: 1,
};
type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
const NO_LIMITS: AttemptLimits = Object.freeze({ firstByteUs: 0, idleUs: 0 });

/** Before the task is started on the node. */
export function setLimits(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): void {
  task.firstByteLimitUs = 0;
  task.idleLimitUs = 0;
  if (state.config.gates.timeouts === 'off' || !canMoveOn(state, lane, task)) return;
  const { safetyFactor, firstByteMsMin, idleMsMin, coldMs } = state.config.timeouts;
  const kind = task.isStream ? FIRST_BYTE : WHOLE;
  const asked = questionOf(task, node, task.deadlineWorkUs);
  // A task that was cut before may be larger than it was taken for.
  const stretch = 1 << (Math.min(STRETCH_MAX, task.attemptsUsed) + node.patience.stretch);
  const usualUs = Math.max(
    firstByteMsMin * 1_000,
    state.timeouts.limitUs(kind, asked, state.now) * safetyFactor,
  );
  const coldUs = isCold(state, task, node) ? coldMs * 1_000 : 0;
  const limitUs = stretched(usualUs, stretch, (task.deadlineAt - state.now) / 2) + coldUs;
  // Beyond the deadline, the deadline ends it.
  if (state.now + limitUs < task.deadlineAt) task.firstByteLimitUs = Math.ceil(limitUs);
  if (!task.isStream) return;
  asked.workUs = streamWorkUs(task);
  const streamUs = state.timeouts.limitUs(IDLE, asked, state.now);
  const idleUs = streamUs * safetyFactor * stretch;
  if (Number.isFinite(idleUs)) task.idleLimitUs = Math.ceil(Math.max(idleMsMin * 1_000, idleUs));
}

/** Lenience to a node that was cut leaves time to try another one: what is more than usual ends at `halfUs`. */
function stretched(usualUs: DurationUs, stretch: number, halfUs: DurationUs): DurationUs {
  return Math.max(usualUs, Math.min(usualUs * stretch, halfUs));
}

/** What the performer of the attempt must keep. */
export function attemptLimits(state: SchedulerState, taskId: TaskId): AttemptLimits {
  const task = state.tasks.get(taskId);
  if (task === undefined || task.firstByteLimitUs + task.idleLimitUs === 0) return NO_LIMITS;
  if (state.config.gates.timeouts !== 'on') return NO_LIMITS;
  return { firstByteUs: task.firstByteLimitUs, idleUs: task.idleLimitUs };
}

/** A stream's first content byte came. */
export function firstByteTimed(state: SchedulerState, task: TaskRecord, node: NodeRecord): void {
  if (state.config.gates.timeouts === 'off') return;
  const elapsedUs = Math.max(1, state.now - (task.sentAt === 0 ? task.decidedAt : task.sentAt));
  served(state, task, FIRST_BYTE, { node, elapsedUs });
}

/** An attempt ended; before its permit is released. Tells whether it was cut at a learned bound. */
export function attemptTimed(state: SchedulerState, task: TaskRecord, ended: EndedAttempt): boolean {
  const { node, elapsedUs, result } = ended;
  if (state.config.gates.timeouts === 'off') return false;
  if (result.kind === 'ok') {
    if (!task.isStream) served(state, task, WHOLE, ended);
    else streamServed(state, task, node, { elapsedUs, silenceUs: result.silenceUs ?? 0 });
    return false;
  }
  if (task.hasFirstByte)
    return isSilentStream(task, result) && cut(state, task, node, { kind: IDLE, elapsedUs });
  const isOver = task.firstByteLimitUs > 0 && elapsedUs >= task.firstByteLimitUs;
  if (!isOver || (state.config.gates.timeouts === 'on' && !isTimeout(result))) return false;
  return cut(state, task, node, { kind: task.isStream ? FIRST_BYTE : WHOLE, elapsedUs });
}

/** What the deadline bounds is done: the whole answer, or the first byte of a stream. */
function served(
  state: SchedulerState,
  task: TaskRecord,
  kind: WaitKind,
  { node, elapsedUs }: Pick<EndedAttempt, 'node' | 'elapsedUs'>,
): void {
  const limitUs = task.firstByteLimitUs;
  // Only in shadow can it be later than its bound.
  if (limitUs > 0 && elapsedUs > limitUs) cut(state, task, node, { kind, elapsedUs });
  const isWithin = limitUs === 0 || elapsedUs * (1 << node.patience.stretch) <= limitUs;
  node.patience.served(task.decidedAt, isWithin, state.now);
  const sample = sampleOf(state, task, node);
  sample.workUs = task.deadlineWorkUs;
  sample.elapsedUs = elapsedUs;
  sample.limitUs = limitUs;
  state.timeouts.learn(kind, sample);
}

function streamServed(
  state: SchedulerState,
  task: TaskRecord,
  node: NodeRecord,
  done: { readonly elapsedUs: DurationUs; readonly silenceUs: DurationUs },
): void {
  const sample = sampleOf(state, task, node);
  if (done.silenceUs > 0) {
    const limitUs = task.idleLimitUs;
    if (limitUs > 0 && done.silenceUs > limitUs)
      cut(state, task, node, { kind: IDLE, elapsedUs: done.silenceUs });
    sample.workUs = streamWorkUs(task);
    sample.elapsedUs = done.silenceUs;
    sample.limitUs = limitUs;
    state.timeouts.learnSilence(sample);
  }
  // The whole of a stream has no bound of its own; its pace is what silence is measured by.
  sample.workUs = task.workUs;
  sample.elapsedUs = done.elapsedUs;
  sample.limitUs = 0;
  state.timeouts.learn(WHOLE, sample);
}

function sampleOf(state: SchedulerState, task: TaskRecord, node: NodeRecord): Mutable<TimeSample> {
  SAMPLE.model = task.model;
  SAMPLE.modelNumber = task.modelNumber;
  SAMPLE.patience = node.patience;
  SAMPLE.inflight = node.meanInflight(task, state.now);
  SAMPLE.now = state.now;
  return SAMPLE;
}

/** Counts the cut; where it holds, the node gets more time next, and the size may be learned to take as long. */
function cut(
  state: SchedulerState,
  task: TaskRecord,
  node: NodeRecord,
  { kind, elapsedUs }: { readonly kind: WaitKind; readonly elapsedUs: DurationUs },
): boolean {
  const workUs = kind === IDLE ? streamWorkUs(task) : task.deadlineWorkUs;
  const asked = questionOf(task, node, workUs);
  state.timeouts.learnCut(kind, { ...asked, nodeOrder: node.order, elapsedUs });
  if (!state.gates.refuses('timeouts')) return false;
  node.patience.cut(task.decidedAt, state.now);
  return true;
}

function questionOf(task: TaskRecord, node: NodeRecord, workUs: number): Mutable<WaitQuestion> {
  QUESTION.model = task.model;
  QUESTION.modelNumber = task.modelNumber;
  QUESTION.workUs = workUs;
  QUESTION.patience = node.patience;
  QUESTION.prior = node.prior;
  QUESTION.inflight = node.running.length + (task.node === null ? 1 : 0);
  QUESTION.slots = node.slotsNow;
  return QUESTION;
}

/** Work of a stream after its first byte. */
function streamWorkUs(task: TaskRecord): number {
  return Math.max(1, task.workUs - task.deadlineWorkUs);
}

/** A cut is worth its price only where another node can take over: a lone node that is slow still serves. */
function canMoveOn(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  if (task.attemptsUsed + 1 >= state.config.retry.attemptsMax) return false;
  let open = 0;
  for (const pool of lane.pools) open += pool.openSeats;
  return open > 1 + (task.triedNodes?.length ?? 0);
}

/** Whether the node may have to load the model first. On trial it has shown often enough that it does not. */
function isCold(state: SchedulerState, task: TaskRecord, node: NodeRecord): boolean {
  if (node.isTrial) return false;
  if (!node.isSingleModel && node.residentModel !== task.model) return true;
  return state.now - node.patience.servedAt > COLD_AFTER_US;
}

function isTimeout(result: AttemptResult): boolean {
  return result.kind === 'failed' && result.failure === 'timeout';
}

function isSilentStream(task: TaskRecord, result: AttemptResult): boolean {
  return task.idleLimitUs > 0 && isTimeout(result);
}
