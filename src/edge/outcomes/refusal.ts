/**
 * From a reason and a hint to the status, headers and body of a refusal.
 *
 * Retry-After is whole seconds from 1 to 60, because the official clients ignore larger values and come back after
 * half a second instead; beyond that, and where a retry cannot help, `x-should-retry: false` is sent and the body
 * carries the true estimate. The hint is stretched by up to a quarter, by a hash of the seed, so that clients refused
 * together do not come back together.
 */
import type { RetryHint } from '../../core/request/outcome.ts';
import { NO_RETRY } from '../../core/request/index.ts';
import { OUTCOMES, type RefusalReason } from './table.ts';

/** Beyond this the official clients ignore the header. */
const RETRY_AFTER_MS_MAX = 60_000;
/** A retryable refusal without an estimate. */
const RETRY_AFTER_MS_DEFAULT = 1_000;
/** Jitter stretches a wait to at most 1.25 of it. */
const JITTER_STEPS = 256;
const JITTER_SPAN = 0.25;
/** No part of a client's own text in a message is longer. */
const QUOTE_LENGTH_MAX = 100;

export interface Refusal {
  readonly reason: RefusalReason;
  readonly hint: RetryHint;
  /** What exactly was wrong, as a sentence without a full stop; '' when the row says it all. */
  readonly detail: string;
  /** The parameter that was wrong, or ''. */
  readonly param: string;
}

/** A refusal as bytes to be: the status, flat headers without content-length, and the body. */
export interface RenderedRefusal {
  readonly status: number;
  readonly headers: string[];
  readonly body: string;
}

export function refuse(reason: RefusalReason, detail = '', param = ''): Refusal {
  return { reason, hint: OUTCOMES[reason].canRetry ? RETRY_UNKNOWN : NO_RETRY, detail, param };
}

const RETRY_UNKNOWN: RetryHint = Object.freeze({ retryable: true, afterUs: 0 });

export interface RenderOptions {
  readonly overloadStatus: 429 | 503;
  /** Any number of the request; spreads its retry. */
  readonly jitterSeed: number;
}

export function renderOpenAi(refusal: Refusal, options: RenderOptions): RenderedRefusal {
  const headers = ['content-type', 'application/json; charset=utf-8', 'x-spillway-reason', refusal.reason];
  const retryAfterMs = jitteredRetryMs(refusal, options.jitterSeed);
  if (isHeaderSize(retryAfterMs)) {
    headers.push(
      'retry-after',
      String(Math.ceil(retryAfterMs / 1_000)),
      'retry-after-ms',
      String(retryAfterMs),
    );
  } else {
    headers.push('x-should-retry', 'false');
  }
  return { status: statusOf(refusal, options), headers, body: openAiBody(refusal) };
}

function isHeaderSize(retryAfterMs: number): boolean {
  return retryAfterMs > 0 && retryAfterMs <= RETRY_AFTER_MS_MAX;
}

function statusOf({ reason }: Refusal, { overloadStatus }: RenderOptions): number {
  const { status } = OUTCOMES[reason].openai;
  return status === 'overload' ? overloadStatus : status;
}

/** The same as lines on the wire, content-length included: the price of a refusal matters most when all are refused. */
export interface RefusalLines {
  readonly status: number;
  readonly lines: string;
  readonly body: string;
}

export function renderOpenAiLines(refusal: Refusal, options: RenderOptions): RefusalLines {
  const body = openAiBody(refusal);
  const retryAfterMs = jitteredRetryMs(refusal, options.jitterSeed);
  const retry = isHeaderSize(retryAfterMs)
    ? `retry-after: ${Math.ceil(retryAfterMs / 1_000)}\r\nretry-after-ms: ${retryAfterMs}`
    : 'x-should-retry: false';
  const lines = `${usualLines(refusal.reason)}${retry}\r\ncontent-length: ${body.length}\r\n`;
  return { status: statusOf(refusal, options), lines, body };
}

const linesByReason = new Map<RefusalReason, string>();

function usualLines(reason: RefusalReason): string {
  let lines = linesByReason.get(reason);
  if (lines === undefined) {
    lines = `content-type: application/json; charset=utf-8\r\nx-spillway-reason: ${reason}\r\n`;
    // Bounded by the rows of the table.
    linesByReason.set(reason, lines);
  }
  return lines;
}

/** The body alone, as it is also sent inside a stream that has been committed. */
export function openAiBody(refusal: Refusal): string {
  const { reason, detail, param, hint } = refusal;
  const opening = detail === '' && param === '' ? usualOpening(reason) : openingOf(reason, detail, param);
  const estimateMs = Math.ceil(hint.afterUs / 1_000);
  return estimateMs > 0 ? `${opening},"retry_after_ms":${estimateMs}}}` : `${opening}}}`;
}

/** Bodies without their end. Under overload almost all refusals are alike, and the price of each matters most. */
const usualOpenings = new Map<RefusalReason, string>();

function usualOpening(reason: RefusalReason): string {
  let opening = usualOpenings.get(reason);
  if (opening === undefined) {
    opening = openingOf(reason, '', '');
    // Bounded by the rows of the table.
    usualOpenings.set(reason, opening);
  }
  return opening;
}

function openingOf(reason: RefusalReason, detail: string, param: string): string {
  const { openai, message } = OUTCOMES[reason];
  const error = {
    message: detail === '' ? `${message}.` : `${message}: ${detail}.`,
    type: openai.type,
    param: param === '' ? null : param,
    code: openai.code,
    reason,
  };
  return asciiJson({ error }).slice(0, -2);
}

/** JSON in ASCII alone, so that its length is its size and it can be sent without conversion. */
function asciiJson(value: unknown): string {
  const text = JSON.stringify(value);
  return NOT_ASCII.test(text) ? text.replace(EACH_NOT_ASCII, escaped) : text;
}

const NOT_ASCII = /[^\x20-\x7e]/;
const EACH_NOT_ASCII = /[^\x20-\x7e]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** 0 when a retry cannot help. Waits up to the limit stay within it after the jitter. */
function jitteredRetryMs(refusal: Refusal, seed: number): number {
  if (!OUTCOMES[refusal.reason].canRetry || !refusal.hint.retryable) return 0;
  const estimateMs =
    refusal.hint.afterUs > 0 ? Math.ceil(refusal.hint.afterUs / 1_000) : RETRY_AFTER_MS_DEFAULT;
  if (estimateMs > RETRY_AFTER_MS_MAX) return estimateMs;
  const stretch = 1 + (JITTER_SPAN * (scramble(seed) % JITTER_STEPS)) / JITTER_STEPS;
  return Math.min(RETRY_AFTER_MS_MAX, Math.ceil(estimateMs * stretch));
}

/** An integer hash: neighbouring task numbers get unrelated jitter. */
function scramble(seed: number): number {
  let x = seed | 0;
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  return (x ^ (x >>> 16)) >>> 0;
}

/** A client's own text for a message: short, and without control characters. */
export function quoted(text: string): string {
  const clean = text.replace(/[\u0000-\u001f\u007f]/g, '?');
  return clean.length > QUOTE_LENGTH_MAX ? `'${clean.slice(0, QUOTE_LENGTH_MAX)}…'` : `'${clean}'`;
}
