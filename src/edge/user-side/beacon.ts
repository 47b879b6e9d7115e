/**
 * A beacon: what a page saw of one answer, as small JSON. Everything in it is a claim of a stranger who holds a token, so
 * every value has a shape and a range, and none of it becomes a label or a line in the log but ids that are plain digits.
 */
import type { DurationMs, MonoUs } from '../../base/units.ts';
import { isPlainId } from '../http/head.ts';

export const BEACON_BYTES_MAX = 4_096;

/** How the user's attempt ended, as the page saw it. */
export const USER_OUTCOMES = ['ok', 'failed', 'timeout', 'abandoned'] as const;
export type UserOutcome = (typeof USER_OUTCOMES)[number];

export interface Beacon {
  readonly token: string;
  /** `x-spillway-id` of the answer. */
  readonly id: string;
  readonly outcome: UserOutcome;
  /** From when the page sent its request; absent where it never came. */
  readonly firstByteMs?: DurationMs;
  readonly completionMs?: DurationMs;
  /** 32 hexadecimal digits, or ''. */
  readonly traceId: string;
  /** Of the page's own making, or ''. */
  readonly session: string;
}

/** A page sends its request before the gateway receives it: name, connection, and its own backend take time. */
const BEFORE_RECEIPT_MS: DurationMs = 60_000;
const SESSION_CHARS_MAX = 64;
const TRACE_ID = /^[0-9a-f]{32}$/;

/** Undefined when it is none. */
export function parseBeacon(body: Buffer): Beacon | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  if (value === null || typeof value !== 'object') return undefined;
  const { token, id, outcome, firstByteMs, completionMs, traceId, session } = value as Record<
    string,
    unknown
  >;
  if (typeof token !== 'string' || typeof id !== 'string') return undefined;
  const known = USER_OUTCOMES.find((one) => one === outcome);
  if (known === undefined || !isTime(firstByteMs) || !isTime(completionMs)) return undefined;
  if (traceId !== undefined && !(typeof traceId === 'string' && TRACE_ID.test(traceId))) return undefined;
  if (session !== undefined && !isSession(session)) return undefined;
  return {
    token,
    id,
    outcome: known,
    ...(typeof firstByteMs === 'number' ? { firstByteMs } : {}),
    ...(typeof completionMs === 'number' ? { completionMs } : {}),
    traceId: traceId ?? '',
    session: session ?? '',
  };
}

function isTime(value: unknown): value is number | null | undefined {
  return (
    value === undefined ||
    value === null ||
    (typeof value === 'number' && Number.isFinite(value) && value >= 0)
  );
}

function isSession(value: unknown): value is string {
  return typeof value === 'string' && value.length <= SESSION_CHARS_MAX && isPlainId(value);
}

/** Whether these times can be true: in order, and no longer than the time since the request came, but for the way to us. */
export function isPlausible(
  { firstByteMs, completionMs, outcome }: Beacon,
  receivedAt: MonoUs,
  now: MonoUs,
): boolean {
  const longestMs = (now - receivedAt) / 1_000 + BEFORE_RECEIPT_MS;
  if (outcome === 'ok' && completionMs === undefined) return false;
  if ((firstByteMs ?? 0) > longestMs || (completionMs ?? 0) > longestMs) return false;
  return firstByteMs === undefined || completionMs === undefined || firstByteMs <= completionMs;
}
