/**
 * What an answer means to the client that gets it. A typed error is one with a reason that the documentation names
 * and a JSON body in the wire's shape; everything else that is not a complete success is untyped.
 */
import type { HttpAnswer, HttpResult } from './http-client.ts';
import type { AttemptEnd } from './users.ts';

/** Reasons that mean "not now" or "not here": the gateway decided not to serve. */
const REFUSALS: ReadonlySet<string> = new Set([
  'rate-limited',
  'quota-exhausted',
  'queue-full',
  'shed',
  'deadline-infeasible',
  'wait-expired',
  'evicted',
  'preempted',
  'no-node',
  'shutting-down',
  'self-protection',
  'too-slow',
]);

/** Reasons of typed errors that are no refusals. */
const FAILURES: ReadonlySet<string> = new Set([
  'node-failed',
  'node-timeout',
  'bad-request',
  'context-too-long',
  'capability-missing',
  'too-large',
  'unauthenticated',
  'forbidden',
  'unknown-model',
  'poison',
]);

export function judgeImage(result: HttpResult, images: number): AttemptEnd {
  if (result.kind === 'timed-out') return { kind: 'timed-out' };
  if (result.kind === 'broken') return { kind: 'failed', isTyped: false };
  const body = parse(result.answer.body);
  if (result.answer.status !== 200) return judgeError(result.answer, body);
  const data = body?.['data'];
  const { serviceMs, steps } = (body?.['emulated'] ?? {}) as { serviceMs?: unknown; steps?: unknown };
  const isWhole = Array.isArray(data) && data.length === images;
  if (!isWhole || typeof serviceMs !== 'number' || typeof steps !== 'number') {
    return { kind: 'failed', isTyped: false };
  }
  return { kind: 'served', serviceMs, lesser: markOf(result.answer, body), steps };
}

/** Real embeddings: a vector of numbers that are not all zero. */
export function isEmbedding(result: HttpResult): boolean {
  if (result.kind !== 'answer' || result.answer.status !== 200) return false;
  const data = parse(result.answer.body)?.['data'];
  const vector = Array.isArray(data)
    ? (data[0] as { embedding?: unknown } | undefined)?.embedding
    : undefined;
  return Array.isArray(vector) && vector.some((value) => typeof value === 'number' && value !== 0);
}

/** The mark of a lesser answer, if header and body agree on it. */
function markOf(answer: HttpAnswer, body: Readonly<Record<string, unknown>> | undefined): string {
  const header = answer.headers.get('x-spillway-degraded') ?? '';
  const member = (body?.['spillway'] as { degraded?: unknown } | undefined)?.degraded ?? '';
  return header === member ? header : '';
}

function judgeError(answer: HttpAnswer, body: Readonly<Record<string, unknown>> | undefined): AttemptEnd {
  const reason = answer.headers.get('x-spillway-reason') ?? '';
  const error = body?.['error'] as { message?: unknown } | undefined;
  const hasShape = typeof error?.message === 'string';
  if (hasShape && REFUSALS.has(reason)) {
    const retryAfterMs = retryAfterMsOf(answer.headers);
    return {
      kind: 'refused',
      isFinal: answer.headers.get('x-should-retry') === 'false',
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    };
  }
  return { kind: 'failed', isTyped: hasShape && FAILURES.has(reason) };
}

/** The finer header wins, as in the official clients. */
function retryAfterMsOf(headers: ReadonlyMap<string, string>): number | undefined {
  const ms = Number(headers.get('retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(ms) && ms >= 0) return ms;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
