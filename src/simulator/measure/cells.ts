/**
 * Users by class, stream and size at once. A user is counted in one cell; classes, streams, sizes and all together are
 * merged from cells when they are asked for. Cells share a budget of values that are kept one by one.
 */
import type { RefUs } from '../../base/units.ts';
import { ExactBudget } from './distribution.ts';
import { Group } from './group.ts';
import type { GroupReport } from './report.ts';

/** Sizes in powers of two of a second, from 61 us to 36 hours. */
const OCTAVE_MIN = -14;
const OCTAVES = 32;
/** Microseconds to units of the least octave. */
const WORK_SCALE = 2 ** -OCTAVE_MIN / 1e6;
/** 64 MB. Beyond, cells are as exact as histograms are. */
const EXACT_VALUES_MAX = 8_000_000;

interface Cell {
  readonly classIndex: number;
  readonly stream: number;
  readonly octave: number;
  readonly group: Group;
}

export class Cells {
  readonly #streams: number;
  readonly #cells: (Cell | undefined)[];
  readonly #budget = new ExactBudget(EXACT_VALUES_MAX);

  constructor(classes: number, streams: number) {
    this.#streams = streams;
    this.#cells = Array.from({ length: classes * streams * OCTAVES }, () => undefined);
  }

  of(classIndex: number, stream: number, workUs: RefUs): Group {
    // The position of the highest bit: no logarithm on a path that every request takes.
    const scaled = Math.min(0x7fffffff, workUs * WORK_SCALE);
    const octave = scaled < 1 ? 0 : 31 - Math.clz32(scaled);
    const index = (classIndex * this.#streams + stream) * OCTAVES + octave;
    const known = this.#cells[index];
    if (known !== undefined) return known.group;
    const group = new Group({ budget: this.#budget });
    this.#cells[index] = { classIndex, stream, octave, group };
    return group;
  }

  all(): GroupReport {
    return this.#report(() => true);
  }

  byClass(names: readonly string[]): Readonly<Record<string, GroupReport>> {
    return Object.fromEntries(
      names.map((name, i) => [name, this.#report(({ classIndex }) => classIndex === i)]),
    );
  }

  byStream(names: readonly string[]): Readonly<Record<string, GroupReport>> {
    return Object.fromEntries(names.map((name, i) => [name, this.#report(({ stream }) => stream === i)]));
  }

  bySize(): Readonly<Record<string, GroupReport>> {
    const octaves = new Set(this.#cells.flatMap((cell) => (cell === undefined ? [] : [cell.octave])));
    const rows = [...octaves]
      .sort((one, other) => one - other)
      .map((at) => [labelOf(at + OCTAVE_MIN), this.#report(({ octave }) => octave === at)] as const);
    return Object.fromEntries(rows);
  }

  #report(isPart: (cell: Cell) => boolean): GroupReport {
    const sum = new Group();
    for (const cell of this.#cells) if (cell !== undefined && isPart(cell)) sum.merge(cell.group);
    return sum.report();
  }
}

function labelOf(octave: number): string {
  return `${2 ** octave}-${2 ** (octave + 1)}s`;
}
