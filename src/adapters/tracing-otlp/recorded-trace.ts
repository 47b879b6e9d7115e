/**
 * A sampled request: its span and those of its attempts. Instants of the gateway's monotonic clock become wall time by one
 * anchor per request, so that a clock that is set meanwhile does not turn a span around.
 */
import {
  type Attributes,
  type Context,
  type HrTime,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { formatTraceparent } from '../../base/trace-context.ts';
import { type MonoUs, US_PER_MS, US_PER_S } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type {
  AttemptBegun,
  AttemptEvent,
  AttemptTrace,
  RequestEnd,
  RequestEvent,
  RequestTrace,
} from '../../ports/tracing.ts';
import { ATTRIBUTES, EVENTS, operationOf, PROVIDER } from './attributes.ts';

/** Ends that are nobody's failure here. */
const NO_ERRORS: ReadonlySet<string> = new Set(['served', 'degraded', 'declined', 'cancelled']);

/** Seconds since 1970 and nanoseconds: a plain number would be taken for another clock once wall time was set back. */
type WallOf = (at: MonoUs) => HrTime;

export interface RecordedRequest {
  readonly tracer: Tracer;
  /** Holds the client's span where its trace goes on. */
  readonly parent: Context;
  readonly continues: boolean;
  readonly receivedAt: MonoUs;
  /** Wall time at an instant of the monotonic clock. */
  readonly anchor: { readonly monoUs: MonoUs; readonly wallMs: number };
}

export class RecordedTrace implements RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly continues: boolean;
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #own: Context;
  readonly #wallOf: WallOf;

  constructor({ tracer, parent, continues, receivedAt, anchor }: RecordedRequest) {
    const wallOf = (at: MonoUs): HrTime => hrTime(anchor.wallMs * US_PER_MS + at - anchor.monoUs);
    this.#tracer = tracer;
    this.#wallOf = wallOf;
    this.continues = continues;
    const options = { kind: SpanKind.SERVER, startTime: wallOf(receivedAt) };
    this.#span = tracer.startSpan('spillway', options, parent);
    this.#own = trace.setSpan(parent, this.#span);
    const { traceId, spanId } = this.#span.spanContext();
    this.traceId = traceId;
    this.spanId = spanId;
  }

  event(event: RequestEvent, at: MonoUs): void {
    this.#span.addEvent(EVENTS[event], this.#wallOf(at));
  }

  attempt(begun: AttemptBegun): AttemptTrace {
    const operation = operationOf(begun.endpoint);
    const attributes: Attributes = {
      [ATTRIBUTES.operation]: operation,
      [ATTRIBUTES.provider]: PROVIDER,
      [ATTRIBUTES.requestModel]: begun.model,
      [ATTRIBUTES.attempt]: begun.attempt,
      [ATTRIBUTES.node]: begun.nodeId,
    };
    const options = { kind: SpanKind.CLIENT, startTime: this.#wallOf(begun.at), attributes };
    const span = this.#tracer.startSpan(`${operation} ${begun.model}`, options, this.#own);
    return new RecordedAttempt(span, this.#wallOf);
  }

  end(end: RequestEnd): void {
    const span = this.#span;
    const operation = operationOf(end.endpoint);
    if (operation !== '') span.updateName(`spillway ${operation} ${end.model}`.trimEnd());
    span.setAttributes(attributesOf(end, operation));
    if (!NO_ERRORS.has(end.outcome)) {
      span.setAttribute(ATTRIBUTES.errorType, end.outcome);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(this.#wallOf(end.at));
  }
}

function hrTime(us: number): HrTime {
  const seconds = Math.floor(us / US_PER_S);
  return [seconds, Math.round(us - seconds * US_PER_S) * 1_000];
}

/** What is empty or unknown is left out. */
function attributesOf(end: RequestEnd, operation: string): Attributes {
  const attributes: Attributes = {
    [ATTRIBUTES.requestId]: end.publicId,
    [ATTRIBUTES.outcome]: end.outcome,
    [ATTRIBUTES.stream]: end.stream,
    [ATTRIBUTES.attempts]: end.attempts,
    [ATTRIBUTES.queueWaitMs]: end.queueWaitUs / US_PER_MS,
  };
  const told = {
    [ATTRIBUTES.operation]: operation,
    [ATTRIBUTES.requestModel]: end.model,
    [ATTRIBUTES.class]: end.className,
    [ATTRIBUTES.tenant]: end.tenant,
    [ATTRIBUTES.degraded]: end.degraded,
    [ATTRIBUTES.leftWhile]: end.leftWhile,
  };
  for (const [name, value] of Object.entries(told)) if (value !== '') attributes[name] = value;
  if (operation !== '') attributes[ATTRIBUTES.provider] = PROVIDER;
  if (end.promptTokens !== undefined) attributes[ATTRIBUTES.inputTokens] = end.promptTokens;
  if (end.outputTokens !== undefined) attributes[ATTRIBUTES.outputTokens] = end.outputTokens;
  return attributes;
}

class RecordedAttempt implements AttemptTrace {
  readonly traceparent: string;
  readonly #span: Span;
  readonly #wallOf: WallOf;

  constructor(span: Span, wallOf: WallOf) {
    const { traceId, spanId } = span.spanContext();
    this.traceparent = formatTraceparent({ traceId, spanId, sampled: true });
    this.#span = span;
    this.#wallOf = wallOf;
  }

  event(event: AttemptEvent, at: MonoUs): void {
    this.#span.addEvent(EVENTS[event], this.#wallOf(at));
  }

  end(result: AttemptResult, at: MonoUs): void {
    const span = this.#span;
    span.setAttribute(ATTRIBUTES.end, result.kind);
    if (result.kind === 'ok' && result.usage !== undefined) {
      const { promptTokens, outputTokens } = result.usage;
      if (promptTokens !== undefined) span.setAttribute(ATTRIBUTES.inputTokens, promptTokens);
      if (outputTokens !== undefined) span.setAttribute(ATTRIBUTES.outputTokens, outputTokens);
    }
    if (result.kind === 'failed') {
      span.setAttribute(ATTRIBUTES.errorType, result.failure);
      span.setAttribute(ATTRIBUTES.retryable, result.retryable);
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end(this.#wallOf(at));
  }
}
