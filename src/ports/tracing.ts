/**
 * Traces: one span per request, and below it one per attempt. Present only where traces are configured; every request then
 * has ids, which nodes and logs are told, and a sampled part of them is recorded and exported.
 *
 * Whether a request is recorded is drawn here. A client's own flag decides nothing: it could force the cost of recording.
 * Calls come on the hot path; an implementation MUST NOT throw or await, and MUST bound what it keeps. It is told names of the
 * configuration, numbers and reasons, never a prompt, an answer or a key.
 */
import type { DurationUs, MonoUs, NodeId, Tokens } from '../base/units.ts';
import type { AttemptResult } from '../core/request/outcome.ts';

export interface Tracing {
  begin(request: TracedRequest): RequestTrace;
}

export interface TracedRequest {
  /** The client's header as it came, or ''. */
  readonly traceparent: string;
  readonly receivedAt: MonoUs;
}

export type RequestEvent = 'admitted' | 'dispatched' | 'first-byte';
export type AttemptEvent = 'sent' | 'first-byte';

export interface RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the client's header was one: then its trace goes on here. */
  readonly continues: boolean;
  event(event: RequestEvent, at: MonoUs): void;
  attempt(begun: AttemptBegun): AttemptTrace;
  /** Once; nothing may follow. */
  end(end: RequestEnd): void;
}

export interface AttemptBegun {
  /** Counts from 1. */
  readonly attempt: number;
  readonly nodeId: NodeId;
  readonly endpoint: string;
  /** As the node knows it. */
  readonly model: string;
  readonly at: MonoUs;
}

export interface AttemptTrace {
  /** For the node: the attempt is what asks it. */
  readonly traceparent: string;
  event(event: AttemptEvent, at: MonoUs): void;
  /** Once; nothing may follow. */
  end(result: AttemptResult, at: MonoUs): void;
}

export interface RequestEnd {
  readonly at: MonoUs;
  /** Our own id. */
  readonly publicId: string;
  /** As in the metrics: `served`, `cancelled`, or a reason. */
  readonly outcome: string;
  /** `chat`, `completions`, `embeddings`, `images`; '' when the request was refused before that was known. */
  readonly endpoint: string;
  readonly className: string;
  readonly tenant: string;
  readonly model: string;
  readonly stream: boolean;
  readonly attempts: number;
  readonly queueWaitUs: DurationUs;
  /** The lesser answer that was given, or ''. */
  readonly degraded: string;
  readonly promptTokens?: Tokens | undefined;
  readonly outputTokens?: Tokens | undefined;
  /** In which phase the client left, or ''. */
  readonly leftWhile: string;
}
