/**
 * The one table from a reason to what a client is told. Nothing else in the program knows an HTTP status for a
 * decision. A wire format is a column (`OpenAiColumn` now); a reason is a row; tests go row by row.
 *
 * There is no row with status 500: a decision is never an internal error.
 */
import type { EvictReason, FailReason, RejectReason } from '../../core/request/outcome.ts';

/** Reasons that arise at the edge, before a task exists. */
export type EdgeReason =
  | 'bad-request'
  | 'header-too-large'
  | 'too-large'
  | 'request-timeout'
  | 'unauthenticated'
  | 'forbidden'
  | 'unknown-path'
  | 'method-not-allowed'
  | 'idempotency-mismatch';

/** Every value of `x-spillway-reason`. */
export type RefusalReason = EdgeReason | RejectReason | EvictReason | Exclude<FailReason, 'declined'>;

/** How a reason looks in the OpenAI and the generic wire. */
export interface OpenAiColumn {
  /** `overload` is 429, or what the configuration says instead. */
  readonly status: number | 'overload';
  readonly type: string;
  readonly code: string;
}

export interface OutcomeRow {
  readonly openai: OpenAiColumn;
  /** Whether trying again later can help; then the hint decides how late. */
  readonly canRetry: boolean;
  /** One sentence for people; the detail of the case is appended by the caller. */
  readonly message: string;
}

type OpenAiCells = readonly [status: number | 'overload', type: string, code: string];

function row([status, type, code]: OpenAiCells, retry: 'retry' | 'no-retry', message: string): OutcomeRow {
  return Object.freeze({
    openai: Object.freeze({ status, type, code }),
    canRetry: retry === 'retry',
    message,
  });
}

const INVALID = 'invalid_request_error';
const OVERLOADED = 'overloaded';

export const OUTCOMES: Readonly<Record<RefusalReason, OutcomeRow>> = Object.freeze({
  'bad-request': row([400, INVALID, 'bad_request'], 'no-retry', 'The request is not valid'),
  'context-too-long': row(
    [400, INVALID, 'context_length_exceeded'],
    'no-retry',
    'The request is longer than any node of this model can take',
  ),
  'capability-missing': row(
    [400, INVALID, 'capability_missing'],
    'no-retry',
    'No node of this model offers what the request needs',
  ),
  'header-too-large': row(
    [431, INVALID, 'header_too_large'],
    'no-retry',
    'The request headers are larger than this gateway accepts',
  ),
  'too-large': row(
    [413, INVALID, 'request_too_large'],
    'no-retry',
    'The request body is larger than this gateway accepts',
  ),
  'request-timeout': row([408, INVALID, 'request_timeout'], 'no-retry', 'The request did not arrive in time'),
  unauthenticated: row([401, INVALID, 'invalid_api_key'], 'no-retry', 'No valid API key was sent'),
  forbidden: row([403, 'permission_error', 'forbidden'], 'no-retry', 'The request is not allowed'),
  'unknown-path': row([404, INVALID, 'unknown_url'], 'no-retry', 'Nothing is served at this path'),
  'method-not-allowed': row(
    [405, INVALID, 'method_not_allowed'],
    'no-retry',
    'The path does not take this method',
  ),
  'idempotency-mismatch': row(
    [422, INVALID, 'idempotency_mismatch'],
    'no-retry',
    'This idempotency key belongs to another request',
  ),
  'unknown-model': row([404, INVALID, 'model_not_found'], 'no-retry', 'The model does not exist'),
  poison: row(
    [422, INVALID, 'poison'],
    'no-retry',
    'The request broke every node it was tried on and is not tried again',
  ),
  'queue-full': row(['overload', OVERLOADED, 'overloaded'], 'retry', 'The queue is full'),
  'deadline-infeasible': row(
    ['overload', OVERLOADED, 'overloaded'],
    'retry',
    'The request cannot be served by its deadline behind what waits already',
  ),
  'wait-expired': row(
    ['overload', OVERLOADED, 'overloaded'],
    'retry',
    'The request waited until it could no longer be served by its deadline',
  ),
  evicted: row(
    ['overload', OVERLOADED, 'overloaded'],
    'retry',
    'The request left the full queue in favour of a more important one',
  ),
  'rate-limited': row(
    [429, 'rate_limit_error', 'rate_limit_exceeded'],
    'retry',
    'A limit of this tenant, class or model is reached',
  ),
  shed: row(
    ['overload', OVERLOADED, 'overloaded'],
    'retry',
    'The fleet is overloaded and requests of this kind are refused first',
  ),
  preempted: row(
    ['overload', OVERLOADED, 'overloaded'],
    'retry',
    'The request gave its place to a more important one',
  ),
  'too-slow': row(
    [429, OVERLOADED, 'too_slow'],
    'no-retry',
    'No node can serve the request within its deadline, even when idle',
  ),
  'no-node': row([503, 'service_unavailable', 'no_node'], 'retry', 'No node can serve this model now'),
  'shutting-down': row(
    [503, 'service_unavailable', 'shutting_down'],
    'retry',
    'The gateway is shutting down',
  ),
  'self-protection': row(
    [503, 'service_unavailable', 'self_protection'],
    'retry',
    'The gateway protects itself from overload',
  ),
  'node-failed': row([502, 'upstream_error', 'node_failed'], 'retry', 'The nodes that were tried failed'),
  'node-timeout': row(
    [504, 'upstream_error', 'node_timeout'],
    'retry',
    'The node did not answer by the deadline',
  ),
});
