/**
 * Rows of numbers, many to a block. A record keeps what it counts and measures in a row of its own: an engine gives each
 * number that is no small integer a box somewhere on the heap, so a record of twenty costs twenty cache misses when it was
 * not looked at for a while, and its row costs three. A block lives as long as one of its records does.
 *
 * A block's own header is two cache lines more, so blocks are few: each is as large as all before it, up to a bound.
 */
const ROWS_PER_BLOCK_MIN = 64;
const ROWS_PER_BLOCK_MAX = 4_096;
/**
 * Numbers that are left out before the first row. Large blocks come from the system in whole pages, behind 16 bytes of the
 * allocator's: 48 more, and a row whose width is a multiple of eight begins on a cache line.
 */
const LEFT_OUT = 6;

export interface NumberRow {
  readonly cells: Float64Array;
  /** Index of the row's first number. */
  readonly at: number;
}

export class NumberRows {
  readonly #width: number;
  #block: Float64Array;
  #rows = ROWS_PER_BLOCK_MIN;
  #used = 0;
  #taken = 0;

  constructor(width: number) {
    this.#width = width;
    this.#block = new Float64Array(LEFT_OUT + width * this.#rows);
  }

  /** A row of zeros that nobody else has. */
  next(): NumberRow {
    if (this.#used === this.#rows) {
      this.#taken += this.#rows;
      this.#rows = Math.min(ROWS_PER_BLOCK_MAX, this.#taken);
      this.#block = new Float64Array(LEFT_OUT + this.#width * this.#rows);
      this.#used = 0;
    }
    return { cells: this.#block, at: LEFT_OUT + this.#width * this.#used++ };
  }
}
