/**
 * Rows of numbers, many to a block. A record keeps what it counts and measures in a row of its own: an engine gives each
 * number that is no small integer a box somewhere on the heap, so a record of twenty costs twenty cache misses when it was
 * not looked at for a while, and its row costs three. A block lives as long as one of its records does.
 */
const ROWS_PER_BLOCK = 64;

export interface NumberRow {
  readonly cells: Float64Array;
  /** Index of the row's first number. */
  readonly at: number;
}

export class NumberRows {
  readonly #width: number;
  #block: Float64Array;
  #used = 0;

  constructor(width: number) {
    this.#width = width;
    this.#block = new Float64Array(width * ROWS_PER_BLOCK);
  }

  /** A row of zeros that nobody else has. */
  next(): NumberRow {
    if (this.#used === ROWS_PER_BLOCK) {
      this.#block = new Float64Array(this.#width * ROWS_PER_BLOCK);
      this.#used = 0;
    }
    return { cells: this.#block, at: this.#width * this.#used++ };
  }
}
