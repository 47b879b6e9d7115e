/**
 * One piece of evidence with two thresholds and a dwell on each side:
 *
 *   dark ──value ≥ enter, without a gap for enterUs──► lit ──value < leave, or unknown, for leaveUs──► dark
 *
 * Time spent at or above a threshold counts from the first sample that says so. Unknown neither lights a trigger nor
 * keeps one lit. Its numbers lie in a row, its owner's where it has one: every model has three that are sampled twice a second.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs } from '../../base/units.ts';

export interface Thresholds {
  readonly enter: number;
  /** Below `enter`. */
  readonly leave: number;
  readonly enterUs: DurationUs;
  readonly leaveUs: DurationUs;
}

const IS_LIT = 0;
/** NaN while unknown. */
const VALUE = 1;
const SINCE = 2;
const TURNING_SINCE = 3;
/** Numbers that one takes of a row. */
export const TRIGGER_WIDTH = 4;
const ROWS: NumberRows = new NumberRows(TRIGGER_WIDTH);

export class Trigger {
  readonly #cells: Float64Array;
  readonly #at: number;

  constructor({ cells, at }: NumberRow = ROWS.next()) {
    this.#cells = cells;
    this.#at = at;
    cells[at + VALUE] = Number.NaN;
    cells[at + TURNING_SINCE] = Number.POSITIVE_INFINITY;
  }

  get isLit(): boolean {
    return this.#cells[this.#at + IS_LIT] === 1;
  }

  /** The last sample; undefined while unknown. */
  get value(): number | undefined {
    const value = this.#cells[this.#at + VALUE] as number;
    return Number.isNaN(value) ? undefined : value;
  }

  /** When it was lit or went dark. */
  get since(): MonoUs {
    return this.#cells[this.#at + SINCE] as number;
  }

  /** Since when samples speak for the other state; Infinity while they do not. */
  get turningSince(): MonoUs {
    return this.#cells[this.#at + TURNING_SINCE] as number;
  }

  /** Takes a sample. O(1). */
  observe(value: number | undefined, now: MonoUs, thresholds: Thresholds): void {
    const cells = this.#cells;
    const at = this.#at;
    const { isLit } = this;
    cells[at + VALUE] = value ?? Number.NaN;
    const isAbove = value !== undefined && value >= (isLit ? thresholds.leave : thresholds.enter);
    if (isAbove === isLit) {
      cells[at + TURNING_SINCE] = Number.POSITIVE_INFINITY;
      return;
    }
    const turningSince = Math.min(cells[at + TURNING_SINCE] as number, now);
    cells[at + TURNING_SINCE] = turningSince;
    if (now - turningSince < (isLit ? thresholds.leaveUs : thresholds.enterUs)) return;
    cells[at + IS_LIT] = isAbove ? 1 : 0;
    cells[at + SINCE] = now;
    cells[at + TURNING_SINCE] = Number.POSITIVE_INFINITY;
  }

  /** Whether nothing is lit and nothing is about to be. */
  get isQuiet(): boolean {
    return !this.isLit && this.turningSince === Number.POSITIVE_INFINITY;
  }
}
