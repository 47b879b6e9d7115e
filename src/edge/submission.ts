/** What the edge submits of a request. */
import type {
  Bytes,
  ClassName,
  DurationUs,
  ModelId,
  MonoUs,
  RefUs,
  TenantId,
  Tokens,
} from '../base/units.ts';
import type { Alternative } from '../core/degrade/index.ts';
import type { Needs } from '../core/request/needs.ts';
import type { TaskPrefix, TaskStage } from '../core/request/task.ts';
import type { WorkEstimate } from '../core/scheduler/contract.ts';
import type { SubmitSpec } from '../runtime/contract.ts';
import type { InferenceRequest } from './protocols/inference-request.ts';

export interface SubmissionParts {
  readonly request: InferenceRequest;
  readonly className: ClassName;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly estimate: WorkEstimate;
  readonly deadlineUs: DurationUs;
  readonly deadlineWished: boolean;
  readonly receivedAt: MonoUs;
  /** 0 for a first attempt. */
  readonly retryCount: number;
  readonly alternatives?: readonly Alternative[] | undefined;
  readonly prefix?: TaskPrefix | undefined;
  readonly stage?: TaskStage | undefined;
}

/** A class, since the fingerprint of a body is worked out only for the few requests that it decides about. */
export class Submission implements SubmitSpec {
  readonly className: ClassName;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly needs: Needs;
  readonly workUs: RefUs;
  readonly firstByteWorkUs: RefUs;
  readonly tokens: Tokens;
  readonly promptTokens: Tokens;
  readonly bytes: Bytes;
  readonly deadlineUs: DurationUs;
  readonly deadlineWished: boolean;
  readonly stream: boolean;
  readonly receivedAt: MonoUs;
  readonly retryCount: number;
  readonly alternatives: readonly Alternative[] | undefined;
  readonly prefix: TaskPrefix | undefined;
  readonly stage: TaskStage | undefined;
  readonly #request: InferenceRequest;

  constructor(parts: SubmissionParts) {
    const { request, estimate } = parts;
    this.className = parts.className;
    this.tenant = parts.tenant;
    this.model = parts.model;
    this.needs = request.usesContext
      ? { ...request.needs, contextTokens: estimate.contextTokens }
      : request.needs;
    this.workUs = estimate.workUs;
    this.firstByteWorkUs = request.stream ? estimate.firstByteWorkUs : estimate.workUs;
    this.tokens = estimate.tokens;
    this.promptTokens = estimate.promptTokens;
    this.bytes = request.body.length;
    this.deadlineUs = parts.deadlineUs;
    this.deadlineWished = parts.deadlineWished;
    this.stream = request.stream;
    this.receivedAt = parts.receivedAt;
    this.retryCount = parts.retryCount;
    this.alternatives = parts.alternatives;
    this.prefix = parts.prefix;
    this.stage = parts.stage;
    this.#request = request;
  }

  /** A collision made on purpose harms its own tenant alone. */
  get fingerprint(): string {
    return `${this.tenant}/${this.#request.fingerprint}`;
  }
}
