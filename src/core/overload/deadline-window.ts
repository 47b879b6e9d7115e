/**
 * Deadlines met and missed over the last five minutes, and over the last thirty seconds: two windows, as in alerts on
 * the rate at which an error budget burns (Google, The Site Reliability Workbook, chapter 5). The long one tells that
 * it matters, the short one that it still goes on, so that what is over keeps nothing closed.
 *
 * A ring of ten-second buckets; adding is O(1), and so is moving on, but for an absence longer than a bucket. Its sums lie in a row,
 * its owner's where it has one: every model has two that are asked twice a second.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';

const BUCKET_US: DurationUs = 10_000_000;
const BUCKETS = 30;
const RECENT_BUCKETS = 3;

/** When the next bucket begins. */
const NEXT_AT = 0;
/** Sums over all buckets, and over the recent ones: whoever asks needs no bucket. */
const MET = 1;
const MISSED = 2;
const LATE_MET = 3;
const LATE_MISSED = 4;
/** Numbers that one takes of a row. */
export const WINDOW_WIDTH = 5;
const ROWS: NumberRows = new NumberRows(WINDOW_WIDTH);
/** Met and missed of each bucket. */
const COUNTS: NumberRows = new NumberRows(2 * BUCKETS);

export class DeadlineWindow {
  readonly #cells: Float64Array;
  readonly #at: number;
  readonly #counts: Float64Array;
  readonly #countsAt: number;
  #bucket = 0;

  constructor({ cells, at }: NumberRow = ROWS.next()) {
    this.#cells = cells;
    this.#at = at;
    cells[at + NEXT_AT] = BUCKET_US;
    const counts = COUNTS.next();
    this.#counts = counts.cells;
    this.#countsAt = counts.at;
  }

  add(isMet: boolean, now: MonoUs): void {
    this.#advance(now);
    const cells = this.#cells;
    const place = this.#placeOf(this.#bucket) + (isMet ? 0 : 1);
    this.#counts[place] = (this.#counts[place] as number) + 1;
    const all = this.#at + (isMet ? MET : MISSED);
    const late = this.#at + (isMet ? LATE_MET : LATE_MISSED);
    cells[all] = (cells[all] as number) + 1;
    cells[late] = (cells[late] as number) + 1;
  }

  /** Missed deadlines of the last five minutes. */
  missed(now: MonoUs): number {
    this.#advance(now);
    return this.#cells[this.#at + MISSED] as number;
  }

  /** Misses over outcomes of the last five minutes; undefined without outcomes. */
  ratio(now: MonoUs): Ratio | undefined {
    this.#advance(now);
    return this.#ratioOf(MET, MISSED);
  }

  /** The same of the last twenty to thirty seconds. */
  recentRatio(now: MonoUs): Ratio | undefined {
    this.#advance(now);
    return this.#ratioOf(LATE_MET, LATE_MISSED);
  }

  #advance(now: MonoUs): void {
    const cells = this.#cells;
    const at = this.#at;
    if (now < (cells[at + NEXT_AT] as number)) return;
    const bucket = Math.floor(now / BUCKET_US);
    for (let next = Math.max(this.#bucket + 1, bucket - BUCKETS + 1); next <= bucket; next++) {
      const place = this.#placeOf(next);
      cells[at + MET] = (cells[at + MET] as number) - (this.#counts[place] as number);
      cells[at + MISSED] = (cells[at + MISSED] as number) - (this.#counts[place + 1] as number);
      this.#counts[place] = 0;
      this.#counts[place + 1] = 0;
    }
    this.#bucket = bucket;
    cells[at + NEXT_AT] = (bucket + 1) * BUCKET_US;
    cells[at + LATE_MET] = this.#sumOfLate(0);
    cells[at + LATE_MISSED] = this.#sumOfLate(1);
  }

  #placeOf(bucket: number): number {
    return this.#countsAt + 2 * (bucket % BUCKETS);
  }

  #sumOfLate(which: 0 | 1): number {
    let sum = 0;
    for (let bucket = Math.max(0, this.#bucket - RECENT_BUCKETS + 1); bucket <= this.#bucket; bucket++)
      sum += this.#counts[this.#placeOf(bucket) + which] as number;
    return sum;
  }

  #ratioOf(met: number, missed: number): Ratio | undefined {
    const misses = this.#cells[this.#at + missed] as number;
    const all = (this.#cells[this.#at + met] as number) + misses;
    return all === 0 ? undefined : misses / all;
  }
}
