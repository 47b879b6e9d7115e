/**
 * Whether a node, or one model on it, fails too often: a cumulative sum test on its outcomes (Page 1954), so that
 * successes in between cannot reset it as they reset a streak, and few requests suffice.
 *
 *   score = max(0, score + (failed ? ln(p1/p0) : ln((1-p1)/(1-p0))))     p0 = 5 %, p1 = 40 %
 *
 * Over the limit at 6: three failures in a row, or about twelve requests at 40 %. A node at 5 % drifts down. Whoever
 * fails half of 20 requests is over it in any order, so that no rule on the share of the last 20 is needed beside it.
 *
 * Outcomes that are older than ten minutes say nothing of today: after such a silence it starts anew.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';

const FAILURE_STEP = 2.0794; // ln(0.4 / 0.05)
const SUCCESS_STEP = -0.4595; // ln(0.6 / 0.95)
const LIMIT = 6;
const WINDOW = 20;
const ALL_SUCCESSES = (1 << WINDOW) - 1;
/** Age at which evidence is forgotten. */
export const EVIDENCE_US_MAX: DurationUs = 600_000_000;

/** A score as it is kept over a restart. */
export interface FailureMemory {
  readonly score: number;
  /** Outcomes of the last requests as bits, newest lowest; 1 is a success. */
  readonly window: number;
  /** How many of the bits count, 0 to 20. */
  readonly count: number;
}

export class FailureScore {
  #score = 0;
  /** Outcomes of the last WINDOW requests as bits, newest lowest; 1 is a success. */
  #window = 0;
  #count = 0;
  #successRatio = 1;
  #recordedAt: MonoUs = 0;

  /** Records one outcome and tells whether the limit is now reached. */
  record(isSuccess: boolean, now: MonoUs): boolean {
    if (isSuccess && this.#score === 0 && this.#window === ALL_SUCCESSES) return false;
    if (now - this.#recordedAt > EVIDENCE_US_MAX) this.reset();
    this.#recordedAt = now;
    this.#score = Math.max(0, this.#score + (isSuccess ? SUCCESS_STEP : FAILURE_STEP));
    this.#window = ((this.#window << 1) | (isSuccess ? 1 : 0)) & ALL_SUCCESSES;
    this.#count = Math.min(WINDOW, this.#count + 1);
    this.#successRatio = bitsSet(this.#window) / this.#count;
    return this.#score >= LIMIT;
  }

  get isClean(): boolean {
    return this.#score === 0;
  }

  /** Clean, and no failure among the last 20: nothing would be lost with it. */
  get isSpotless(): boolean {
    return this.#score === 0 && this.#successRatio === 1;
  }

  /** Share of successes among the last 20 outcomes; 1 while there are none. */
  get successRatio(): number {
    return this.#successRatio;
  }

  /** The verdict was given: counting starts anew, and the outcomes it stood on go on being told. */
  acquit(): void {
    this.#score = 0;
  }

  reset(): void {
    this.#score = 0;
    this.#window = 0;
    this.#count = 0;
    this.#successRatio = 1;
  }

  /** What must not be forgotten at `now`, or undefined where there is nothing. */
  memory(now: MonoUs): FailureMemory | undefined {
    if (this.isSpotless || now - this.#recordedAt > EVIDENCE_US_MAX) return undefined;
    return { score: Number(this.#score.toFixed(4)), window: this.#window, count: this.#count };
  }

  /** Takes over a memory whose last outcome is at most ten minutes old. Never raises the limit's verdict by itself. */
  restore(memory: FailureMemory, now: MonoUs): void {
    this.#score = Math.min(memory.score, LIMIT + SUCCESS_STEP);
    this.#window = memory.window & ALL_SUCCESSES;
    this.#count = memory.count;
    this.#successRatio = memory.count === 0 ? 1 : bitsSet(this.#window) / memory.count;
    this.#recordedAt = now;
  }
}

function bitsSet(word: number): number {
  let count = 0;
  for (let bits = word; bits !== 0; bits &= bits - 1) count += 1;
  return count;
}
