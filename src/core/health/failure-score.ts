/**
 * Whether a node fails too often: a cumulative sum test on its outcomes (Page 1954), so that successes in between
 * cannot reset it as they reset a streak, and few requests suffice.
 *
 *   score = max(0, score + (failed ? ln(p1/p0) : ln((1-p1)/(1-p0))))     p0 = 5 %, p1 = 40 %
 *
 * Ejection at 6: three failures in a row, or about twelve requests at 40 %. A node at 5 % drifts down.
 */
const FAILURE_STEP = 2.0794; // ln(0.4 / 0.05)
const SUCCESS_STEP = -0.4595; // ln(0.6 / 0.95)
const LIMIT = 6;
const WINDOW = 20;
const ALL_SUCCESSES = (1 << WINDOW) - 1;

export class FailureScore {
  #score = 0;
  /** Outcomes of the last WINDOW requests as bits, newest lowest; 1 is a success. */
  #window = 0;
  #count = 0;
  #successRatio = 1;

  /** Records one outcome and tells whether the limit is now reached. */
  record(isSuccess: boolean): boolean {
    if (isSuccess && this.#score === 0 && this.#window === ALL_SUCCESSES) return false;
    this.#score = Math.max(0, this.#score + (isSuccess ? SUCCESS_STEP : FAILURE_STEP));
    this.#window = ((this.#window << 1) | (isSuccess ? 1 : 0)) & ((1 << WINDOW) - 1);
    this.#count = Math.min(WINDOW, this.#count + 1);
    this.#successRatio = bitsSet(this.#window) / this.#count;
    return this.#score >= LIMIT;
  }

  get isClean(): boolean {
    return this.#score === 0;
  }

  /** Share of successes among the last 20 outcomes; 1 while there are none. */
  get successRatio(): number {
    return this.#successRatio;
  }

  reset(): void {
    this.#score = 0;
    this.#window = 0;
    this.#count = 0;
    this.#successRatio = 1;
  }
}

function bitsSet(word: number): number {
  let count = 0;
  for (let bits = word; bits !== 0; bits &= bits - 1) count += 1;
  return count;
}
