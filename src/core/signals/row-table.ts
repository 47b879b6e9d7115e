/**
 * Rows by a name that comes from outside, which are many and come and go: the table is bounded, and a new name gets the row of one
 * that was not used for minutes, or none.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';

/** What was not used for so long gives its row to another: longer than any window over rows. */
export const ROW_IDLE_US: DurationUs = 600_000_000;

interface Row {
  lastAt: MonoUs;
}

export class RowTable<T extends Row> {
  readonly #rows: Map<string, T> = new Map();
  readonly #rowsMax: number;
  readonly #begin: (name: string) => T;
  /** Before then no row is idle for long enough: who has none costs one comparison. */
  #fullUntil: MonoUs = Number.NEGATIVE_INFINITY;

  constructor(rowsMax: number, begin: (name: string) => T) {
    this.#rowsMax = rowsMax;
    this.#begin = begin;
  }

  /** The row of a name, used now; undefined where there is none left for it. */
  use(name: string, at: MonoUs): T | undefined {
    let row = this.#rows.get(name);
    if (row === undefined) {
      if (this.#rows.size >= this.#rowsMax && !this.#madeRoom(at)) return undefined;
      row = this.#begin(name);
      this.#rows.set(name, row);
    }
    row.lastAt = at;
    return row;
  }

  values(): Iterable<T> {
    return this.#rows.values();
  }

  #madeRoom(at: MonoUs): boolean {
    if (at < this.#fullUntil) return false;
    let idlest: readonly [string, T] | undefined;
    for (const entry of this.#rows)
      if (idlest === undefined || entry[1].lastAt < idlest[1].lastAt) idlest = entry;
    if (idlest === undefined) return false;
    this.#fullUntil = idlest[1].lastAt + ROW_IDLE_US;
    if (at < this.#fullUntil) return false;
    this.#rows.delete(idlest[0]);
    return true;
  }
}
