/** What the scheduler is told of a submitted request. */
import type { Alternative } from '../core/degrade/index.ts';
import type { Bytes, ClassName, ModelId, MonoUs, RefUs, TaskId, TenantId, Tokens } from '../base/units.ts';
import type { Needs } from '../core/request/needs.ts';
import type { TaskPrefix, TaskSpec, TaskStage } from '../core/request/task.ts';
import type { SubmitSpec } from './contract.ts';

/** Called whenever the scheduler asks: its decisions depend on the answer. */
export type FingerprintAsked = (taskId: TaskId, fingerprint: string) => void;

/** A class, since a fingerprint may cost much more than all the rest, and is asked for seldom. */
export class SubmittedTask implements TaskSpec {
  readonly id: TaskId;
  readonly className: ClassName;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly needs: Needs;
  readonly workUs: RefUs;
  readonly firstByteWorkUs: RefUs;
  readonly tokens: Tokens;
  readonly promptTokens: Tokens;
  readonly bytes: Bytes;
  readonly deadlineAt: MonoUs;
  readonly deadlineWished: boolean;
  readonly stream: boolean;
  readonly alternatives: readonly Alternative[] | undefined;
  readonly retryCount: number;
  readonly prefix: TaskPrefix | undefined;
  readonly stage: TaskStage | undefined;
  readonly #submitted: SubmitSpec;
  readonly #asked: FingerprintAsked;

  constructor(id: TaskId, spec: SubmitSpec, asked: FingerprintAsked) {
    this.id = id;
    this.className = spec.className;
    this.tenant = spec.tenant;
    this.model = spec.model;
    this.needs = spec.needs;
    this.workUs = spec.workUs;
    this.firstByteWorkUs = spec.firstByteWorkUs;
    this.tokens = spec.tokens ?? 0;
    this.promptTokens = spec.promptTokens ?? 0;
    this.bytes = spec.bytes;
    this.deadlineAt = spec.receivedAt + spec.deadlineUs;
    this.deadlineWished = spec.deadlineWished;
    this.stream = spec.stream;
    this.alternatives = spec.alternatives;
    this.retryCount = spec.retryCount ?? 0;
    this.prefix = spec.prefix;
    this.stage = spec.stage;
    this.#submitted = spec;
    this.#asked = asked;
  }

  get fingerprint(): string {
    const { fingerprint } = this.#submitted;
    this.#asked(this.id, fingerprint);
    return fingerprint;
  }
}
