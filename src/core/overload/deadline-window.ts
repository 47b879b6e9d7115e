/**
 * Deadlines met and missed over the last five minutes, and over the last thirty seconds: two windows, as in alerts on
 * the rate at which an error budget burns (Google, The Site Reliability Workbook, chapter 5). The long one tells that
 * it matters, the short one that it still goes on, so that what is over keeps nothing closed.
 *
 * A ring of ten-second buckets; adding is O(1), and so is moving on, but for an absence longer than a bucket.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';

const BUCKET_US: DurationUs = 10_000_000;
const BUCKETS = 30;
const RECENT_BUCKETS = 3;

export class DeadlineWindow {
  readonly #met: number[] = Array.from({ length: BUCKETS }, () => 0);
  readonly #missed: number[] = Array.from({ length: BUCKETS }, () => 0);
  #bucket = 0;
  /** When the next bucket begins. */
  #nextAt: MonoUs = Number(BUCKET_US);
  /** Sums over all buckets, and over the recent ones: whoever asks needs no bucket. */
  #metInAll = 0;
  #missedInAll = 0;
  #metOfLate = 0;
  #missedOfLate = 0;

  add(isMet: boolean, now: MonoUs): void {
    this.#advance(now);
    const counts = isMet ? this.#met : this.#missed;
    const at = this.#bucket % BUCKETS;
    counts[at] = (counts[at] as number) + 1;
    if (isMet) {
      this.#metInAll += 1;
      this.#metOfLate += 1;
    } else {
      this.#missedInAll += 1;
      this.#missedOfLate += 1;
    }
  }

  /** Missed deadlines of the last five minutes. */
  missed(now: MonoUs): number {
    this.#advance(now);
    return this.#missedInAll;
  }

  /** Misses over outcomes of the last five minutes; undefined without outcomes. */
  ratio(now: MonoUs): Ratio | undefined {
    this.#advance(now);
    return ratioOf(this.#metInAll, this.#missedInAll);
  }

  /** The same of the last twenty to thirty seconds. */
  recentRatio(now: MonoUs): Ratio | undefined {
    this.#advance(now);
    return ratioOf(this.#metOfLate, this.#missedOfLate);
  }

  #advance(now: MonoUs): void {
    if (now < this.#nextAt) return;
    const bucket = Math.floor(now / BUCKET_US);
    for (let next = Math.max(this.#bucket + 1, bucket - BUCKETS + 1); next <= bucket; next++) {
      this.#metInAll -= this.#met[next % BUCKETS] as number;
      this.#missedInAll -= this.#missed[next % BUCKETS] as number;
      this.#met[next % BUCKETS] = 0;
      this.#missed[next % BUCKETS] = 0;
    }
    this.#bucket = bucket;
    this.#nextAt = (bucket + 1) * BUCKET_US;
    this.#metOfLate = sumOfLate(this.#met, bucket);
    this.#missedOfLate = sumOfLate(this.#missed, bucket);
  }
}

function sumOfLate(counts: readonly number[], last: number): number {
  let sum = 0;
  for (let bucket = Math.max(0, last - RECENT_BUCKETS + 1); bucket <= last; bucket++)
    sum += counts[bucket % BUCKETS] as number;
  return sum;
}

function ratioOf(met: number, missed: number): Ratio | undefined {
  return met + missed === 0 ? undefined : missed / (met + missed);
}
