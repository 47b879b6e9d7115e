/**
 * The deadline of a request: our own header, else `Prefer: wait`, else the class default; the timeout that an official
 * client announces can only lower it. Our header is strict, since an absurd value must never be a gain; the others are
 * foreign hints, and an unreadable one is ignored.
 */
import type { DurationMs, DurationUs } from '../base/units.ts';
import type { AdmissionConfig } from '../core/config/types.ts';
import type { RequestHead } from './http/head.ts';

export type DeadlineDecision =
  | { readonly kind: 'deadline'; readonly deadlineUs: DurationUs; readonly wished: boolean }
  | { readonly kind: 'bad'; readonly rule: string };

type Limits = Pick<AdmissionConfig, 'deadlineMsMin' | 'deadlineMsMax'>;

export function decideDeadline(
  head: RequestHead,
  limits: Limits,
  classDefaultUs: DurationUs,
): DeadlineDecision {
  let deadlineUs = classDefaultUs;
  let wished = false;
  if (head.deadlineMs !== undefined) {
    const deadlineMs = plainInteger(head.deadlineMs);
    if (!(deadlineMs >= limits.deadlineMsMin && deadlineMs <= limits.deadlineMsMax)) {
      return {
        kind: 'bad',
        rule: `x-spillway-deadline-ms must be a whole number from ${limits.deadlineMsMin} to ${limits.deadlineMsMax}`,
      };
    }
    deadlineUs = deadlineMs * 1_000;
    wished = true;
  } else if (head.prefer !== '') {
    const waitMs = preferredWaitMs(head.prefer, limits);
    if (waitMs > 0) {
      deadlineUs = waitMs * 1_000;
      wished = true;
    }
  }
  const clientMs = clientTimeoutMs(head);
  if (clientMs > 0 && clientMs * 1_000 < deadlineUs) {
    deadlineUs = Math.max(clientMs, limits.deadlineMsMin) * 1_000;
    wished = true;
  }
  return { kind: 'deadline', deadlineUs, wished };
}

/** NaN unless the text is digits alone: no sign, no exponent, no fraction, not empty. */
function plainInteger(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** Seconds of RFC 7240 `wait`, pressed into the limits; 0 when there is none. */
function preferredWaitMs(prefer: string, limits: Limits): DurationMs {
  const match = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,9})"?\s*(?:$|[,;])/i.exec(prefer);
  if (match === null) return 0;
  return Math.min(limits.deadlineMsMax, Math.max(limits.deadlineMsMin, Number(match[1]) * 1_000));
}

/** The lesser timeout that an official client announces (in seconds), or 0. */
function clientTimeoutMs(head: RequestHead): DurationMs {
  if (head.stainlessTimeout === '' && head.stainlessReadTimeout === '') return 0;
  const least = Math.min(clientSeconds(head.stainlessTimeout), clientSeconds(head.stainlessReadTimeout));
  return Number.isFinite(least) ? Math.ceil(least * 1_000) : 0;
}

function clientSeconds(text: string): number {
  const seconds = /^\d{1,9}(\.\d{1,6})?$/.test(text) ? Number(text) : 0;
  return seconds > 0 ? seconds : Number.POSITIVE_INFINITY;
}
