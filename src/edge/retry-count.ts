/** How often a client has tried before, as official clients say it (`x-stainless-retry-count`). */
import type { IgnoredWish } from '../ports/metrics-sink.ts';

/** Nobody tries more often: a larger number is a mistake, and counts for nothing. */
const RETRY_COUNT_MAX = 100;
const COUNT = /^\d{1,3}$/;

/** 0 for a first attempt, and for a header that is none. */
export function readRetryCount(text: string, ignored: (wish: IgnoredWish) => void): number {
  if (text === '' || text === '0') return 0;
  const count = COUNT.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
  if (count <= RETRY_COUNT_MAX) return count;
  ignored('retry-count-unreadable');
  return 0;
}
