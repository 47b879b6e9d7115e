/**
 * A distribution of durations: exact up to a number of values, a histogram with a relative error of 0.5 % beyond. Mean and
 * maximum are exact always.
 */
import type { DurationUs } from '../../base/units.ts';
import { LogHistogram, bucketOf, type TimedValue } from './log-histogram.ts';
import type { Quantiles } from './report.ts';
import { selectRank } from './select-rank.ts';

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

  add(value: TimedValue): void {
    const { valueUs } = value;
    if (this.#histogram === undefined && this.#hasRoom(1)) this.#values[this.#count] = valueUs;
    else this.#blur().add(value.bucket);
    this.#count += 1;
    this.#sum += valueUs;
    if (valueUs > this.#max) this.#max = valueUs;
  }

  merge(other: Distribution): void {
    this.#mergeValues(other);
    this.#count += other.#count;
    this.#sum += other.#sum;
    this.#max = Math.max(this.#max, other.#max);
  }

  #mergeValues(other: Distribution): void {
    if (other.#histogram !== undefined) return this.#blur().merge(other.#histogram);
    const values = other.#values.subarray(0, other.#count);
    if (this.#histogram === undefined && this.#hasRoom(values.length))
      return this.#values.set(values, this.#count);
    addAll(this.#blur(), values);
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

  /** By nearest rank, in milliseconds; never above the maximum. To be asked in ascending order. */
  #quantiles(): (q: number) => number {
    const histogram = this.#histogram;
    if (histogram !== undefined) return (q) => Math.min(this.#max, histogram.quantile(q)) / 1_000;
    // Ranks are asked for in ascending order: what is below the last one need not be looked at again.
    const values = this.#values.slice(0, this.#count);
    let from = 0;
    return (q) => {
      const rank = Math.max(1, Math.ceil(q * this.#count)) - 1;
      const value = selectRank(values, rank, from);
      from = rank;
      return value / 1_000;
    };
  }

  /** Makes room for so many values more; false where they are more than may be kept one by one. */
  #hasRoom(more: number): boolean {
    const needed = this.#count + more;
    if (needed <= this.#values.length) return true;
    if (needed > this.#exactMax) return false;
    let length = this.#values.length;
    while (length < needed) length = Math.min(this.#exactMax, 2 * length);
    const added = length - this.#values.length;
    if (this.#budget !== undefined) {
      if (this.#budget.left < added) return false;
      this.#budget.left -= added;
    }
    const values = new Float64Array(length);
    values.set(this.#values.subarray(0, this.#count));
    this.#values = values;
    return true;
  }

  #blur(): LogHistogram {
    if (this.#histogram !== undefined) return this.#histogram;
    const histogram = new LogHistogram();
    addAll(histogram, this.#values.subarray(0, this.#count));
    this.#histogram = histogram;
    if (this.#budget !== undefined) this.#budget.left += this.#values.length;
    this.#values = new Float64Array(0);
    return histogram;
  }
}

/** By index: reports merge millions of values, and an iterator makes an object for each. */
function addAll(histogram: LogHistogram, values: Float64Array): void {
  for (let at = 0; at < values.length; at++) histogram.add(bucketOf(values[at] as number));
}
