/**
 * What the data plane tells of itself while it works. Plain calls, no label objects: they are on the hot path.
 *
 * The caller passes only names that it has resolved (a configured class, a canonical model, `''` when a request never
 * got that far); the implementation MUST still bound its label sets, counting what is beyond them as `other`, and MUST
 * NOT throw or await. Gauges of queue and nodes are read from the gateway's views at scrape time, not pushed here.
 */
import type { Bytes } from '../base/units.ts';

/**
 * `served`; `degraded` (a lesser answer, by consent); `declined` (the node's own deterministic 4xx); `cancelled` (the client left; 499 in logs); otherwise the
 * reason of the refusal or failure exactly as in `x-spillway-reason`. A closed set: see the edge's outcome table.
 */
export type OutcomeLabel = string;

/** The kind of hint that was ignored, never its text. */
export type IgnoredWish =
  | 'class-unknown'
  | 'deadline-hint-unreadable'
  | 'priority-hint-unreadable'
  | 'retry-count-unreadable'
  | 'stage-unreadable'
  | 'degrade-unknown';

/** What became of a request with an idempotency key that is not simply the first with it. */
export type KeyedEffect =
  /** It waits for, or gets, the answer of the one that runs. */
  | 'joined'
  /** It got the stored answer. */
  | 'replayed'
  | 'mismatch'
  /** It runs, and its answer is not remembered: the table is full, or the answer too large. */
  | 'unkept';

/** What became of a beacon. */
export type BeaconResult =
  | 'accepted'
  | 'unreadable'
  /** No token of ours. */
  | 'forged'
  | 'expired'
  | 'other-request'
  | 'reused'
  /** Its times cannot be true. */
  | 'implausible'
  | 'rate-limited';

export interface MetricsSink {
  /**
   * `spillway_requests_total` and `spillway_request_seconds`: once per request that reached the data plane, at its end.
   * `seconds` counts from the request's head to the last byte or the refusal.
   */
  requestEnded(className: string, model: string, outcome: OutcomeLabel, seconds: number): void;
  /** `spillway_time_to_first_byte_seconds`: head of the request to the first content byte towards the client. */
  firstByte(className: string, model: string, seconds: number): void;
  /** `spillway_queue_wait_seconds`: submit to the first assignment. */
  queueWait(className: string, model: string, seconds: number): void;
  /** `spillway_dispatch_seconds`: assignment to the request's bytes being written to a node. */
  dispatched(seconds: number): void;
  /** `spillway_tokens_total`, from the node's own usage. */
  tokens(direction: 'input' | 'output', model: string, count: number): void;
  /** `spillway_retries_total`: an attempt after the first one was assigned. */
  retried(): void;
  /** `spillway_degraded_total{class,how}`: once per lesser answer that was given; `how` is a closed set. */
  degraded(className: string, how: 'cache' | 'model' | 'quality' | 'default'): void;
  /** `spillway_cache_agreement_total{type,result}`: a fresh answer was compared with the remembered one. Closed sets. */
  cacheCompared(type: string, result: 'same' | 'different' | 'unreadable'): void;
  /** `spillway_wishes_ignored_total{wish}`. */
  wishIgnored(wish: IgnoredWish): void;
  /** `spillway_idempotent_requests_total{effect}`. */
  keyed(effect: KeyedEffect): void;
  /** `spillway_spool_bytes`: bytes now held for slow readers, in all. */
  spoolBytes(total: Bytes): void;
  /** `spillway_slow_readers_cut_total`. */
  slowReaderCut(): void;
  /** `spillway_connections`: client connections open now. */
  connections(open: number): void;
  /** `spillway_client_disconnects_total{phase}`: a client left, or was cut (`stalled`), before it had everything. A closed set. */
  clientLeft(phase: string): void;
  /** `spillway_client_retries_total{class,how}`: a request that its client had sent before, by its own word or by its body. */
  clientRetried(className: string, how: 'announced' | 'repeated'): void;
  /** `spillway_user_first_byte_seconds{class}` and `spillway_user_request_seconds{class}`: as a browser saw it. */
  userFirstByte(className: string, seconds: number): void;
  userRequest(className: string, seconds: number): void;
  /** `spillway_beacons_total{result}`. */
  beacon(result: BeaconResult): void;
  /** `spillway_malformed_requests_total`: what the HTTP parser itself refused (no request, so no class or model). */
  malformedRequest(): void;
}

/** Counts nothing: for tests and for embedding without metrics. */
export const NO_METRICS: MetricsSink = Object.freeze({
  requestEnded(): void {},
  firstByte(): void {},
  queueWait(): void {},
  dispatched(): void {},
  tokens(): void {},
  retried(): void {},
  degraded(): void {},
  cacheCompared(): void {},
  wishIgnored(): void {},
  keyed(): void {},
  spoolBytes(): void {},
  slowReaderCut(): void {},
  connections(): void {},
  clientLeft(): void {},
  clientRetried(): void {},
  userFirstByte(): void {},
  userRequest(): void {},
  beacon(): void {},
  malformedRequest(): void {},
});
