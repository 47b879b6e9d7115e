/**
 * What is known of one request, and told of it: metrics, its spans, what its client saw of it, and the line in the log at its
 * end. The exchange says what happens; nothing here changes what it does.
 *
 * A request is over when its outcome is known *and* its client has everything, or has left: a slow reader is a part of the
 * story. Both come in either order, each once.
 */
import type { Bytes, DurationUs, MonoUs } from '../../base/units.ts';
import { type Alternative, alternativeLabel } from '../../core/degrade/index.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { Usage } from '../../core/request/task.ts';
import type { AttemptTrace } from '../../ports/tracing.ts';
import type { Assignment } from '../../runtime/contract.ts';
import type { LeftWhile, OverRequest } from '../user-side/user-side.ts';
import type { ExchangeContext, ExchangeSpec } from './contract.ts';

/** It has everything, or the connection was broken to tell it that it has not, or it left. */
export type ClientEnd = 'whole' | 'broken' | LeftWhile;

export type WitnessContext = Pick<ExchangeContext, 'metrics' | 'log' | 'beacons'>;
export type WitnessSpec = Pick<ExchangeSpec, 'request' | 'submit' | 'trace' | 'nodeVisible'>;

const NEVER: MonoUs = -1;

/** A class that is shown to the user's side as it is: one is made for every request. */
export class Witness implements OverRequest {
  readonly #context: WitnessContext;
  readonly #spec: WitnessSpec;
  #attempt: AttemptTrace | undefined;
  publicId = '';
  #submittedAt: MonoUs = 0;
  #assignedAt: MonoUs = 0;
  /** Until the first attempt; for a request that got none, until its end. 0 before either. */
  queueWaitUs: DurationUs = 0;
  /** What the gateway itself took: until the submission, and from each assignment until the node had it. */
  overheadUs: DurationUs = 0;
  attempts = 0;
  /** The last one, or ''. */
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

  constructor(context: WitnessContext, spec: WitnessSpec) {
    this.#context = context;
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

  /** The node of the last attempt, if the client may know it; else ''. */
  get visibleNode(): string {
    return this.#spec.nodeVisible ? this.#nodeId : '';
  }

  submitted(publicId: string, at: MonoUs): void {
    this.publicId = publicId;
    this.#submittedAt = at;
    this.overheadUs = at - this.receivedAt;
    this.#context.beacons.userSide.begun(this, at);
  }

  /** The token of a beacon, for the head of the answer; '' where beacons are not taken. */
  beaconToken(): string {
    const { beacons } = this.#context;
    if (!beacons.config.enabled) return '';
    const { className, tenant, receivedAt } = this.#spec.submit;
    const token = beacons.tokenFor({ publicId: this.publicId, className, tenant, receivedAt });
    this.hasToken = token !== '';
    return token;
  }

  admitted(at: MonoUs): void {
    this.#spec.trace?.event('admitted', at);
  }

  /** `model` is the one that runs, as the node knows it. */
  assigned({ attempt, nodeId }: Assignment, model: string, at: MonoUs): AttemptTrace | undefined {
    const { trace, request, submit } = this.#spec;
    const { metrics } = this.#context;
    this.attempts += 1;
    if (this.attempts === 1) {
      this.queueWaitUs = at - this.#submittedAt;
      metrics.queueWait(submit.className, submit.model, Math.max(0, this.queueWaitUs / 1e6));
    } else metrics.retried();
    this.#assignedAt = at;
    this.#nodeId = nodeId;
    if (trace === undefined) return undefined;
    trace.event('dispatched', at);
    this.#attempt = trace.attempt({ attempt, nodeId, endpoint: request.endpoint, model, at });
    return this.#attempt;
  }

  sent(at: MonoUs): void {
    this.overheadUs += at - this.#assignedAt;
    this.#context.metrics.dispatched(Math.max(0, at - this.#assignedAt) / 1e6);
    this.#attempt?.event('sent', at);
  }

  nodeFirstByte(at: MonoUs): void {
    const { className, model, receivedAt } = this.#spec.submit;
    this.#context.metrics.firstByte(className, model, Math.max(0, at - receivedAt) / 1e6);
    this.nodeFirstByteAt = at;
    this.#attempt?.event('first-byte', at);
  }

  clientFirstByte(at: MonoUs): void {
    this.clientFirstByteAt = at;
    this.#spec.trace?.event('first-byte', at);
  }

  /** An attempt that was given up may end long after the next one began. */
  attemptEnded(attempt: AttemptTrace | undefined, result: AttemptResult, at: MonoUs): void {
    if (result.kind === 'ok' && result.usage !== undefined) this.#used(result.usage);
    attempt?.end(result, at);
    if (this.#attempt === attempt) this.#attempt = undefined;
  }

  #used({ promptTokens, outputTokens }: Usage): void {
    this.#promptTokens = promptTokens;
    this.#outputTokens = outputTokens;
    const { metrics } = this.#context;
    const { model } = this.#spec.submit;
    if (promptTokens !== undefined) metrics.tokens('input', model, promptTokens);
    if (outputTokens !== undefined) metrics.tokens('output', model, outputTokens);
  }

  /** The outcome, as the metrics count it, and the label of a lesser answer that was given. */
  ended(outcome: string, degraded: string, at: MonoUs): void {
    const { className, model, receivedAt } = this.#spec.submit;
    this.#context.metrics.requestEnded(className, model, outcome, Math.max(0, at - receivedAt) / 1e6);
    this.outcome = outcome;
    this.degraded = degraded;
    this.endedAt = at;
    // Refused, evicted or left without an attempt: all of it was waiting.
    if (this.attempts === 0) this.queueWaitUs = at - this.#submittedAt;
    if (this.#isClosed) this.#over(at);
  }

  endedLesser(alternative: Alternative, at: MonoUs): void {
    this.ended('degraded', alternativeLabel(alternative), at);
    this.#context.metrics.degraded(this.#spec.submit.className, alternative.how);
  }

  closed(how: ClientEnd, at: MonoUs): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (how === 'whole') this.clientHasAllAt = at;
    else if (how !== 'broken') this.leftWhile = how;
    if (this.outcome !== '') this.#over(at);
  }

  #over(at: MonoUs): void {
    const { trace, submit, request } = this.#spec;
    const { log, beacons } = this.#context;
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
      queueWaitUs: this.queueWaitUs,
      degraded: this.degraded,
      promptTokens: this.#promptTokens,
      outputTokens: this.#outputTokens,
      leftWhile: this.leftWhile,
    });
    if (log.debug !== undefined) log.debug(this.#line(at), 'Request ended');
    beacons.userSide.over(this, at);
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
      queueMs: this.queueWaitUs / 1_000,
      tookMs: (at - receivedAt) / 1_000,
      ...(this.leftWhile === '' ? {} : { leftWhile: this.leftWhile }),
    };
  }
}
