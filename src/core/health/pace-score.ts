/**
 * Whether a node has become far slower than it was: a cumulative sum test on the times of its tasks (Page 1954).
 *
 *   x = ln(own usual rate / rate of this task)          0 as usual, ln 3 three times slower
 *   score = max(0, score + d/s² (x − d/2))              d = 2 ln(1 / least pace), s: spread of x on this node
 *
 * With normal noise that is the likelihood ratio of a node that is slower by d against a usual one, so that the noise of the
 * estimates decides how many tasks are needed: three at a spread of 0.3, about thirty at 1. At the limit a usual node is
 * accused once in 65 million tasks. What is usual is known per octave of tasks beside each other, from 20 tasks on; it
 * follows by 2 % of the difference per task while the score is 0, as much to either side, or it would lie off the middle.
 *
 * In an engine that batches all that runs shares every step: while it computes a long prompt all of it stands still. So many
 * tasks that ran beside each other tell one thing and not as many: each moves the score by that part of its step.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, Ratio, RefUs } from '../../base/units.ts';

/** Tasks that took less say more of the network and of a busy gateway than of the node. */
const TASK_US_MIN: DurationUs = 50_000;
const OBSERVATIONS_MIN = 20;
const OCTAVES = 10;
/** The usual logarithm of the rate of a task alone, and how many tasks it stands on: two numbers to an octave. */
const USUAL = 0;
const COUNT = 1;
const OCTAVE_WIDTH = 2;
const VARIANCE = 2;
const SCORE = 3;
export const PACE_WIDTH = 4;
const ROWS: NumberRows = new NumberRows(PACE_WIDTH);
const LIMIT = 18;
/** No single task tells more than this, however long it took. */
const STEP_MAX = LIMIT / 3;
const USUAL_STEP = 0.02;
/** The spread is assumed before it is known, and never below a tenth and a half. */
const VARIANCE_START = 0.25;
const VARIANCE_MIN = 0.0225;
const VARIANCE_STEP = 0.02;
/** Beyond so many spreads a task says nothing of the usual noise. */
const SPREADS_MAX = 3;

export class PaceScore {
  readonly #cells: Float64Array;
  readonly #at: number;
  /** Usual and count of the higher octaves of tasks beside each other, made when a task first ran beside others. */
  #beside: Float64Array | null = null;
  readonly #sharesSteps: boolean;

  /** Whether the tasks of the node share every step; and a row, where its owner keeps more numbers beside it. */
  constructor(sharesSteps: boolean = false, { cells, at }: NumberRow = ROWS.next()) {
    this.#sharesSteps = sharesSteps;
    this.#cells = cells;
    this.#at = at;
    cells.fill(0, at, at + PACE_WIDTH);
    cells[at + VARIANCE] = VARIANCE_START;
  }

  /** Records a finished task; tells whether the node is now found to be slower than `paceMin` of its usual pace. */
  record(workUs: RefUs, timeUs: DurationUs, inflight: number, paceMin: Ratio): boolean {
    if (timeUs < TASK_US_MIN || paceMin <= 0 || paceMin >= 1) return false;
    const octave = Math.min(OCTAVES - 1, 32 - Math.clz32(Math.max(1, inflight) - 1));
    const rate = Math.log(workUs / timeUs);
    const cells = this.#cells;
    const row = this.#at;
    const table = octave === 0 ? cells : (this.#beside ??= new Float64Array(OCTAVE_WIDTH * OCTAVES));
    const at = octave === 0 ? row : OCTAVE_WIDTH * octave;
    const usual = table[at + USUAL] as number;
    const known = table[at + COUNT] as number;
    const slower = known === 0 ? 0 : usual - rate;
    if (known < OBSERVATIONS_MIN) {
      table[at + COUNT] = known + 1;
      table[at + USUAL] = usual + (rate - usual) / (known + 1);
      if (known > 2) this.#noteSpread(slower);
      return false;
    }
    // Learned while nothing is suspected: whoever is slow for long must not become usual before it is found.
    const before = cells[row + SCORE] as number;
    const isUnsuspected = before === 0;
    const distance = 2 * Math.log(1 / paceMin);
    const step = (distance / (cells[row + VARIANCE] as number)) * (slower - distance / 2);
    const tellers = this.#sharesSteps ? Math.max(1, inflight) : 1;
    const score = Math.max(0, before + Math.min(STEP_MAX, step) / tellers);
    cells[row + SCORE] = score;
    if (isUnsuspected) {
      table[at + USUAL] = usual - USUAL_STEP * this.#tame(slower);
      this.#noteSpread(slower);
    }
    return score >= LIMIT;
  }

  /** Whether it stands at a third of the limit or more: after one strong step, as by chance after one task in four hundred. */
  get isSuspected(): boolean {
    return (this.#cells[this.#at + SCORE] as number) >= STEP_MAX;
  }

  /** Whether a usual pace is known that tasks are held against, for some number of tasks beside each other. O(octaves). */
  get isEstablished(): boolean {
    if ((this.#cells[this.#at + COUNT] as number) >= OBSERVATIONS_MIN) return true;
    for (let octave = 1; this.#beside !== null && octave < OCTAVES; octave++)
      if ((this.#beside[OCTAVE_WIDTH * octave + COUNT] as number) >= OBSERVATIONS_MIN) return true;
    return false;
  }

  #noteSpread(slower: number): void {
    const tame = this.#tame(slower);
    const at = this.#at + VARIANCE;
    const known = this.#cells[at] as number;
    this.#cells[at] = Math.max(VARIANCE_MIN, known + VARIANCE_STEP * (tame * tame - known));
  }

  #tame(slower: number): number {
    const most = SPREADS_MAX * Math.sqrt(this.#cells[this.#at + VARIANCE] as number);
    return Math.min(most, Math.max(-most, slower));
  }
}
