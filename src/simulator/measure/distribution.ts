/**
 * A distribution of durations: exact up to a number of values, a histogram with a relative error of 0.5 % beyond. Mean and
 * maximum are exact always.
 */
import type { DurationUs } from '../../base/units.ts';
import { LogHistogram, bucketOf } from './log-histogram.ts';
import type { Quantiles } from './report.ts';

/** Values of a group that are kept one by one: 1.6 MB. */
export const EXACT_MAX = 200_000;
const CAPACITY_MIN = 16;

/** Values that several distributions may keep one by one, all together. */
export class ExactBudget {
  left: number;

  constructor(values: number) {
    this.left = values;
  }
}

export interface DistributionOptions {
  readonly exactMax?: number;
  readonly budget?: ExactBudget;
}

export class Distribution {
  readonly #exactMax: number;
  readonly #budget: ExactBudget | undefined;
  /** Empty once the histogram has taken over. */
  #values = new Float64Array(CAPACITY_MIN);
  #histogram: LogHistogram | undefined;
  #count = 0;
  #sum = 0;
  #max = 0;

  constructor({ exactMax = EXACT_MAX, budget }: DistributionOptions = {}) {
    this.#exactMax = exactMax;
    this.#budget = budget;
  }

  get count(): number {
    return this.#count;
  }

  get maxUs(): DurationUs {
    return this.#max;
  }

  /** `bucket` is the value's in a histogram, for whoever adds one value to several distributions. */
  add(valueUs: DurationUs, bucket: number): void {
    if (this.#histogram !== undefined) this.#histogram.add(bucket);
    else if (this.#count < this.#values.length) this.#values[this.#count] = valueUs;
    else this.#grow(valueUs, bucket);
    this.#count += 1;
    this.#sum += valueUs;
    if (valueUs > this.#max) this.#max = valueUs;
  }

  merge(other: Distribution): void {
    const exact = other.#histogram === undefined ? other.#values.subarray(0, other.#count) : undefined;
    if (exact !== undefined) {
      for (const value of exact) this.add(value, bucketOf(value));
      return;
    }
    this.#blur().merge(other.#histogram as LogHistogram);
    this.#count += other.#count;
    this.#sum += other.#sum;
    this.#max = Math.max(this.#max, other.#max);
  }

  quantilesMs(): Quantiles {
    if (this.#count === 0) return { mean: 0, p50: 0, p95: 0, p99: 0, max: 0 };
    const quantile = this.#quantiles();
    return {
      mean: this.#sum / this.#count / 1_000,
      p50: quantile(0.5),
      p95: quantile(0.95),
      p99: quantile(0.99),
      max: this.#max / 1_000,
    };
  }

  /** By nearest rank, in milliseconds; never above the maximum. */
  #quantiles(): (q: number) => number {
    const histogram = this.#histogram;
    if (histogram !== undefined) return (q) => Math.min(this.#max, histogram.quantile(q)) / 1_000;
    const sorted = this.#values.slice(0, this.#count).sort();
    return (q) => (sorted[Math.max(1, Math.ceil(q * this.#count)) - 1] as number) / 1_000;
  }

  #grow(valueUs: DurationUs, bucket: number): void {
    const length = Math.min(this.#exactMax, 2 * this.#values.length);
    const more = length - this.#values.length;
    if (more <= 0 || (this.#budget !== undefined && this.#budget.left < more))
      return this.#blur().add(bucket);
    if (this.#budget !== undefined) this.#budget.left -= more;
    const values = new Float64Array(length);
    values.set(this.#values);
    values[this.#count] = valueUs;
    this.#values = values;
  }

  #blur(): LogHistogram {
    if (this.#histogram !== undefined) return this.#histogram;
    const histogram = new LogHistogram();
    for (const value of this.#values.subarray(0, this.#count)) histogram.add(bucketOf(value));
    this.#histogram = histogram;
    if (this.#budget !== undefined) this.#budget.left += this.#values.length;
    this.#values = new Float64Array(0);
    return histogram;
  }
}
