/** A table of shares that one uniform draw picks from. Shares are relative: they need not add up to 1. */
import { invariant } from '../../base/assert.ts';

export class Shares {
  /** Sums of the normalised shares up to each entry; empty when all are equal. */
  readonly #sums: Float64Array;
  readonly #count: number;

  constructor(shares: readonly number[]) {
    const total = shares.reduce((sum, share) => sum + share, 0);
    invariant(total > 0, 'Shares must add up to more than 0');
    this.#count = shares.length;
    const isEven = shares.every((share) => share === shares[0]);
    this.#sums = new Float64Array(isEven ? 0 : shares.length);
    let sum = 0;
    for (let index = 0; index < this.#sums.length; index += 1) {
      sum += (shares[index] as number) / total;
      this.#sums[index] = sum;
    }
  }

  /** The entry that a draw in [0, 1) falls on. O(log n). */
  pick(ratio: number): number {
    const sums = this.#sums;
    if (sums.length === 0) return Math.floor(ratio * this.#count);
    let low = 0;
    let high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ratio < (sums[middle] as number)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
