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
 */
import type { DurationUs, Ratio, RefUs } from '../../base/units.ts';

/** Tasks that took less say more of the network and of a busy gateway than of the node. */
const TASK_US_MIN: DurationUs = 50_000;
const OBSERVATIONS_MIN = 20;
const OCTAVES = 10;
/** Numbers to an octave; the first is the usual, the second the count. */
const WIDTH = 2;
const COUNT = 1;
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
  /** By octave of tasks beside each other: the usual logarithm of the rate, and how many tasks it stands on. */
  readonly #usual: Float64Array = new Float64Array(WIDTH * OCTAVES);
  #variance = VARIANCE_START;
  #score = 0;
  /** The pace that was asked about last, and how far below the usual one it lies. */
  #paceMin = 0;
  #distance = 0;

  /** Records a finished task; tells whether the node is now found to be slower than `paceMin` of its usual pace. */
  record(workUs: RefUs, timeUs: DurationUs, inflight: number, paceMin: Ratio): boolean {
    if (timeUs < TASK_US_MIN || paceMin <= 0 || paceMin >= 1) return false;
    const octave = Math.min(OCTAVES - 1, 32 - Math.clz32(Math.max(1, inflight) - 1));
    const rate = Math.log(workUs / timeUs);
    const at = WIDTH * octave;
    const usual = this.#usual[at] as number;
    const known = this.#usual[at + COUNT] as number;
    const slower = known === 0 ? 0 : usual - rate;
    if (known < OBSERVATIONS_MIN) {
      this.#usual[at + COUNT] = known + 1;
      this.#usual[at] = usual + (rate - usual) / (known + 1);
      if (known > 2) this.#noteSpread(slower);
      return false;
    }
    // Learned while nothing is suspected: whoever is slow for long must not become usual before it is found.
    const isUnsuspected = this.#score === 0;
    if (paceMin !== this.#paceMin) {
      this.#paceMin = paceMin;
      this.#distance = 2 * Math.log(1 / paceMin);
    }
    const distance = this.#distance;
    const step = (distance / this.#variance) * (slower - distance / 2);
    this.#score = Math.max(0, this.#score + Math.min(STEP_MAX, step));
    if (isUnsuspected) {
      this.#usual[at] = usual - USUAL_STEP * this.#tame(slower);
      this.#noteSpread(slower);
    }
    return this.#score >= LIMIT;
  }

  #noteSpread(slower: number): void {
    const tame = this.#tame(slower);
    const variance = this.#variance + VARIANCE_STEP * (tame * tame - this.#variance);
    this.#variance = Math.max(VARIANCE_MIN, variance);
  }

  #tame(slower: number): number {
    const most = SPREADS_MAX * Math.sqrt(this.#variance);
    return Math.min(most, Math.max(-most, slower));
  }
}
