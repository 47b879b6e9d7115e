/**
 * How a task ends. Exactly one outcome per submitted task. Only the edge knows HTTP codes; these `kind` and
 * `reason` values are the metric labels and the contract with clients, so they stay few and stable.
 */
import type { DurationUs } from '../../base/units.ts';

/** Refused before it was queued. */
export type RejectReason =
  | 'unknown-model'
  | 'context-too-long'
  | 'capability-missing'
  | 'too-slow'
  | 'queue-full'
  /** A limit of the tenant, class or model. */
  | 'rate-limited'
  /** The overload ladder, or a retry while first attempts wait. */
  | 'shed'
  | 'deadline-infeasible'
  | 'no-node'
  | 'poison'
  | 'self-protection'
  | 'shutting-down';

/** Removed after it was queued. */
export type EvictReason = 'evicted' | 'preempted' | 'wait-expired' | 'no-node' | 'shutting-down';

/** Started, and not brought to an end that the client can use. */
export type FailReason = 'node-failed' | 'node-timeout' | 'poison' | 'declined';

export type Outcome =
  | { readonly kind: 'served' }
  /** A lesser answer than asked for, by the client's consent. `alternative` is its index in the task's list. */
  | { readonly kind: 'degraded'; readonly alternative: number }
  | ({ readonly kind: 'rejected'; readonly reason: RejectReason } & Refused)
  | ({ readonly kind: 'evicted'; readonly reason: EvictReason } & Refused)
  /** `declined`: the node judged the request itself wrong (a deterministic 4xx), which the client has received. */
  | ({ readonly kind: 'failed'; readonly reason: FailReason } & Refused)
  | { readonly kind: 'cancelled' };

/** What a request that got no answer is told. */
export interface Refused {
  readonly hint: RetryHint;
  /** Which limit, stage or mark it was, for people, where the reason alone does not say it. At most 200 characters. */
  readonly cause?: string;
  /** Of the limits that refused, when limits did. */
  readonly limits?: LimitsView;
}

/** What is left of somebody's limits; absent is not limited. */
export interface LimitsView {
  readonly requests?: LimitView;
  readonly tokens?: LimitView;
}

export interface LimitView {
  /** Most that can be used at once. */
  readonly limit: number;
  /** What can be used now: a whole number from 0 to `limit`. */
  readonly remaining: number;
  /** Until all of it can be used again, if nothing is used meanwhile. */
  readonly resetUs: DurationUs;
}

/** When trying again can help, computed from drain time. */
export interface RetryHint {
  /** Whether a retry can help at all. */
  readonly retryable: boolean;
  /** Best estimate of the wait until the same request would be accepted and served in time; 0 when unknown. */
  readonly afterUs: DurationUs;
}

export const NO_RETRY: RetryHint = Object.freeze({ retryable: false, afterUs: 0 });

/** How one attempt on a node failed. */
export type FailureKind =
  /** No connection could be made. */
  | 'connect'
  /** The connection broke after the request was sent. */
  | 'reset'
  /** The node stayed silent for too long. */
  | 'timeout'
  /** The node said that it is full (429, 503). */
  | 'refused'
  /** Any other 5xx. */
  | 'server-error'
  /** An answer that cannot be a success: garbage, a short body, 200 with nothing. */
  | 'protocol';

/** The single release of a node's permit: reported exactly once for every assignment. */
export type AttemptResult =
  | {
      readonly kind: 'ok';
      readonly usage?: import('./task.ts').Usage;
      /** Longest silence of the node after the first content byte of a stream. */
      readonly silenceUs?: DurationUs;
    }
  /** A deterministic 4xx, already forwarded: neutral for health, no rate learned, never retried. */
  | { readonly kind: 'declined' }
  | {
      readonly kind: 'failed';
      readonly failure: FailureKind;
      /** False once a content byte has reached the client: then the task fails instead of moving on. */
      readonly retryable: boolean;
      /** How long the node itself asked to be left alone, or 0. */
      readonly nodeRetryAfterUs?: DurationUs;
      readonly passed?: Passed;
    }
  /** Ended by us or by the client; neutral for health. */
  | { readonly kind: 'aborted'; readonly passed?: Passed };

/** How much of an answer that was cut had reached the client; absent when nothing had. */
type Passed = import('./task.ts').Usage;
