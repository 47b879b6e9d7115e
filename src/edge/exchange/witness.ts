/**
 * What is told of one request beside the metrics: its spans, what its client saw of it, and the line in the log at its end.
 * The exchange says what happens; nothing here changes what it does.
 *
 * A request is over when its outcome is known *and* its client has everything, or has left: a slow reader is a part of the
 * story. Both come in either order, each once.
 */
import type { Bytes, DurationUs, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { AttemptTrace, RequestTrace } from '../../ports/tracing.ts';
import type { Assignment, SubmitSpec } from '../../runtime/contract.ts';
import type { RuntimeLog } from '../../runtime/log.ts';
import type { InferenceRequest } from '../protocols/inference-request.ts';
import type { LeftWhile, OverRequest, UserSide } from '../user-side/user-side.ts';

/** It has everything, or the connection was broken to tell it that it has not, or it left. */
export type ClientEnd = 'whole' | 'broken' | LeftWhile;

export interface WitnessSpec {
  readonly request: InferenceRequest;
  readonly submit: SubmitSpec;
  readonly trace: RequestTrace | undefined;
  readonly log: RuntimeLog;
  readonly userSide: UserSide;
}

const NEVER: MonoUs = -1;

/** A class that is shown to the user's side as it is: one is made for every request. */
export class Witness implements OverRequest {
  readonly #spec: WitnessSpec;
  #attempt: AttemptTrace | undefined;
  publicId = '';
  #submittedAt: MonoUs = 0;
  #queueWaitUs: DurationUs = 0;
  attempts = 0;
  #nodeId = '';
  #promptTokens: number | undefined;
  #outputTokens: number | undefined;
  outcome = '';
  degraded = '';
  leftWhile: LeftWhile | '' = '';
  #isClosed = false;
  nodeFirstByteAt: MonoUs = NEVER;
  clientFirstByteAt: MonoUs = NEVER;
  endedAt: MonoUs = NEVER;
  clientHasAllAt: MonoUs = NEVER;
  /** It was given a token for a beacon. */
  hasToken = false;

  constructor(spec: WitnessSpec) {
    this.#spec = spec;
  }

  get className(): string {
    return this.#spec.submit.className;
  }

  get retryCount(): number {
    return this.#spec.submit.retryCount ?? 0;
  }

  get receivedAt(): MonoUs {
    return this.#spec.submit.receivedAt;
  }

  get traceId(): string {
    return this.#spec.trace?.traceId ?? '';
  }

  get bytes(): Bytes {
    return this.#spec.submit.bytes;
  }

  get checksum(): number {
    return this.#spec.request.checksum;
  }

  submitted(publicId: string, at: MonoUs): void {
    this.publicId = publicId;
    this.#submittedAt = at;
    this.#spec.userSide.begun(this, at);
  }

  admitted(at: MonoUs): void {
    this.#spec.trace?.event('admitted', at);
  }

  /** `model` is the one that runs, as the node knows it. */
  assigned({ attempt, nodeId }: Assignment, model: string, at: MonoUs): AttemptTrace | undefined {
    if (this.attempts === 0) this.#queueWaitUs = at - this.#submittedAt;
    this.attempts += 1;
    this.#nodeId = nodeId;
    const { trace, request } = this.#spec;
    if (trace === undefined) return undefined;
    trace.event('dispatched', at);
    this.#attempt = trace.attempt({ attempt, nodeId, endpoint: request.endpoint, model, at });
    return this.#attempt;
  }

  sent(at: MonoUs): void {
    this.#attempt?.event('sent', at);
  }

  nodeFirstByte(at: MonoUs): void {
    this.nodeFirstByteAt = at;
    this.#attempt?.event('first-byte', at);
  }

  clientFirstByte(at: MonoUs): void {
    this.clientFirstByteAt = at;
    this.#spec.trace?.event('first-byte', at);
  }

  /** An attempt that was given up may end long after the next one began. */
  attemptEnded(attempt: AttemptTrace | undefined, result: AttemptResult, at: MonoUs): void {
    if (result.kind === 'ok' && result.usage !== undefined) {
      this.#promptTokens = result.usage.promptTokens;
      this.#outputTokens = result.usage.outputTokens;
    }
    attempt?.end(result, at);
    if (this.#attempt === attempt) this.#attempt = undefined;
  }

  /** The outcome, as the metrics count it. */
  ended(outcome: string, degraded: string, at: MonoUs): void {
    this.outcome = outcome;
    this.degraded = degraded;
    this.endedAt = at;
    // Refused, evicted or left without an attempt: all of it was waiting.
    if (this.attempts === 0) this.#queueWaitUs = at - this.#submittedAt;
    if (this.#isClosed) this.#over(at);
  }

  closed(how: ClientEnd, at: MonoUs): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (how === 'whole') this.clientHasAllAt = at;
    else if (how !== 'broken') this.leftWhile = how;
    if (this.outcome !== '') this.#over(at);
  }

  #over(at: MonoUs): void {
    const { trace, log, submit, request } = this.#spec;
    const { className, tenant, model, stream } = submit;
    trace?.end({
      at,
      publicId: this.publicId,
      outcome: this.outcome,
      endpoint: request.endpoint,
      className,
      tenant,
      model,
      stream,
      attempts: this.attempts,
      queueWaitUs: this.#queueWaitUs,
      degraded: this.degraded,
      promptTokens: this.#promptTokens,
      outputTokens: this.#outputTokens,
      leftWhile: this.leftWhile,
    });
    if (log.debug !== undefined) log.debug(this.#line(at), 'Request ended');
    this.#spec.userSide.over(this, at);
  }

  #line(at: MonoUs): Readonly<Record<string, unknown>> {
    const { trace, submit } = this.#spec;
    const { className, tenant, model, receivedAt } = submit;
    return {
      request: this.publicId,
      ...(trace === undefined ? {} : { trace_id: trace.traceId, span_id: trace.spanId }),
      class: className,
      tenant,
      model,
      outcome: this.outcome,
      node: this.#nodeId,
      attempts: this.attempts,
      queueMs: this.#queueWaitUs / 1_000,
      tookMs: (at - receivedAt) / 1_000,
      ...(this.leftWhile === '' ? {} : { leftWhile: this.leftWhile }),
    };
  }
}
