/**
 * Quantiles of many values in little memory: counts in buckets whose bounds grow by a constant factor, so that an answer
 * is off by at most `RELATIVE_ERROR` of itself, wherever in the distribution it lies (the mapping of DDSketch, Masson,
 * Rim and Lee, 2019, with a fixed range instead of collapsing buckets). 14 KB; adding is O(1).
 */
import type { DurationUs } from '../../base/units.ts';

export const RELATIVE_ERROR = 0.005;
const GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR);
const PER_LOG = 1 / Math.log(GROWTH);
/** Values up to 10^15: 31 years of microseconds. */
const BUCKETS = Math.ceil(Math.log(1e15) * PER_LOG) + 1;

/** Where a value counts; 0 is for values below 1. */
export function bucketOf(value: number): number {
  return value < 1 ? 0 : Math.min(BUCKETS - 1, Math.ceil(Math.log(value) * PER_LOG) + 1);
}

/** A value that goes to several distributions: its logarithm is taken once, and only if one of them is a histogram. */
export class TimedValue {
  valueUs = 0;
  #bucket = -1;

  set(valueUs: DurationUs): void {
    this.valueUs = valueUs;
    this.#bucket = -1;
  }

  get bucket(): number {
    if (this.#bucket < 0) this.#bucket = bucketOf(this.valueUs);
    return this.#bucket;
  }
}

/** The middle of a bucket in the sense of the relative error. */
export function valueOf(bucket: number): number {
  return bucket === 0 ? 0 : (2 * GROWTH ** (bucket - 1)) / (GROWTH + 1);
}

export class LogHistogram {
  readonly #counts: Uint32Array = new Uint32Array(BUCKETS);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(bucket: number): void {
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#total += 1;
  }

  merge(other: LogHistogram): void {
    const counts = other.#counts;
    for (let bucket = 0; bucket < BUCKETS; bucket++)
      this.#counts[bucket] = (this.#counts[bucket] as number) + (counts[bucket] as number);
    this.#total += other.#total;
  }

  clear(): void {
    this.#counts.fill(0);
    this.#total = 0;
  }

  /** Nearest rank: the least value that at least `q` of all reach at most; 0 while there are none. */
  quantile(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.#total));
    let sum = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      sum += this.#counts[bucket] as number;
      if (sum >= rank) return valueOf(bucket);
    }
    return 0;
  }
}
