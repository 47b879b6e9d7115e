/**
 * Lesser answers to a request, in the order in which they may be used: an answer that was given before, a cheaper model,
 * a lower quality, a configured value. The list holds only what the client consented to and the configuration offers.
 */
import type { Bytes, ClassName, ModelId, MonoUs, RefUs, TaskId, TenantId, Tokens } from '../../base/units.ts';
import type { Needs } from '../request/needs.ts';
import type { EvictReason, FailReason, Outcome, RejectReason } from '../request/outcome.ts';
import type { TaskSpec, TaskStage } from '../request/task.ts';

export type Alternative = InsteadOfWork | LesserTask;

/** Ends the task at once: nothing runs for it. */
export interface InsteadOfWork {
  readonly how: 'cache' | 'default';
}

/** Runs instead of the task: another model, or the same one with less to do. */
export interface LesserTask {
  readonly how: 'model' | 'quality';
  /** The model, or the configured name of the quality. */
  readonly name: string;
  readonly model: ModelId;
  readonly needs: Needs;
  readonly workUs: RefUs;
  readonly firstByteWorkUs: RefUs;
  /** As limits count them; those of the whole request when absent. */
  readonly tokens?: Tokens;
  readonly promptTokens?: Tokens;
}

export function needsWork(alternative: Alternative): alternative is LesserTask {
  return alternative.how === 'model' || alternative.how === 'quality';
}

/** Longest list that is looked at; what is beyond is never tried. */
export const ALTERNATIVES_MAX = 16;

/** What would have ended the task without an alternative; `ladder` where the overload ladder asks for lesser answers at once. */
export type DegradeCause = RejectReason | EvictReason | FailReason | 'ladder';

/** One alternative that was looked at. */
export interface DegradeStep {
  /** Index into the task's alternatives. */
  readonly index: number;
  readonly alternative: Alternative;
  readonly because: DegradeCause;
  /** `taken`, or why it could not be. */
  readonly verdict: 'taken' | RejectReason;
}

/** As it is named to clients: `cache`, `model:NAME`, `quality:NAME`, `default`. */
export function alternativeLabel(alternative: Alternative): string {
  return needsWork(alternative) ? `${alternative.how}:${alternative.name}` : alternative.how;
}

/** Ends for which a lesser answer may stand in: overload, and nodes that failed. Not limits, nor what no answer mends. */
const REPLACED: ReadonlySet<string> = new Set([
  'shed',
  'queue-full',
  'deadline-infeasible',
  'wait-expired',
  'evicted',
  'preempted',
  'too-slow',
  'no-node',
  'node-failed',
  'node-timeout',
] satisfies (RejectReason | EvictReason | FailReason)[]);

export type BadEnd = Extract<Outcome, { kind: 'rejected' | 'evicted' | 'failed' }>;

/** Whether a lesser answer may stand in for this end. */
export function isReplaceable(end: BadEnd): boolean {
  return REPLACED.has(end.reason);
}

/** The task as it is with a lesser alternative: same request, same deadline, other work. */
export class LesserSpec implements TaskSpec {
  readonly id: TaskId;
  readonly className: ClassName;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly needs: Needs;
  readonly workUs: RefUs;
  readonly firstByteWorkUs: RefUs;
  readonly bytes: Bytes;
  readonly deadlineAt: MonoUs;
  readonly deadlineWished: boolean;
  readonly stream: boolean;
  readonly alternatives: readonly Alternative[];
  readonly tokens: Tokens;
  readonly promptTokens: Tokens;
  readonly stage: TaskStage | undefined;
  readonly #whole: TaskSpec;

  constructor(whole: TaskSpec, lesser: LesserTask, alternatives: readonly Alternative[]) {
    this.id = whole.id;
    this.className = whole.className;
    this.tenant = whole.tenant;
    this.model = lesser.model;
    this.needs = lesser.needs;
    this.workUs = lesser.workUs;
    this.firstByteWorkUs = Math.min(lesser.workUs, lesser.firstByteWorkUs);
    this.bytes = whole.bytes;
    this.deadlineAt = whole.deadlineAt;
    this.deadlineWished = whole.deadlineWished;
    this.stream = whole.stream;
    this.alternatives = alternatives;
    this.tokens = lesser.tokens ?? whole.tokens ?? 0;
    this.promptTokens = Math.min(this.tokens, lesser.promptTokens ?? whole.promptTokens ?? 0);
    this.stage = whole.stage;
    this.#whole = whole;
  }

  /** Of the body as it came: what breaks nodes is remembered whichever way it was tried. */
  get fingerprint(): string {
    return this.#whole.fingerprint;
  }
}
