/**
 * The last outcomes of a model over all nodes, and whether half of them failed.
 *
 * Judged are those of the last ten seconds, a hundred at most, where they are twenty or more: over a hundred, a model
 * that fails 25 % is mistaken for one that fails 50 % once in a hundred million looks, over twenty once in seventy. A
 * slow model is judged over its last twenty; ten suffice once they reach back further than ten seconds, and nothing
 * older than ten minutes counts: five failures of ten have a chance of 6 in 100,000 at 5 %, and below ten two bad nodes
 * are not told from a bad model.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { EVIDENCE_US_MAX } from './failure-score.ts';

const KEPT_MAX = 100;
const VOLUME = 20;
const VOLUME_SLOW_MIN = 10;
const BUSY_US: DurationUs = 10_000_000;
const FAILED_RATIO = 0.5;

export class OutcomeWindow {
  /** Rings of the last outcomes: when, and whether they failed. */
  readonly #at: Float64Array = new Float64Array(KEPT_MAX);
  readonly #failed: Uint8Array = new Uint8Array(KEPT_MAX);
  #next = 0;
  #size = 0;
  #failures = 0;

  get size(): number {
    return this.#size;
  }

  get failures(): number {
    return this.#failures;
  }

  record(isSuccess: boolean, now: MonoUs): void {
    this.#forget(now);
    if (this.#size === KEPT_MAX) this.#dropOldest();
    this.#at[this.#next] = now;
    this.#failed[this.#next] = isSuccess ? 0 : 1;
    this.#next = (this.#next + 1) % KEPT_MAX;
    this.#size += 1;
    if (!isSuccess) this.#failures += 1;
  }

  /** Whether enough was seen and half of it failed. O(outcomes kept). */
  isOverLimit(now: MonoUs): boolean {
    this.#forget(now);
    let judged = 0;
    let failures = 0;
    for (let back = 1; back <= this.#size; back++) {
      const index = (this.#next - back + KEPT_MAX) % KEPT_MAX;
      const isRecent = now - (this.#at[index] as number) <= BUSY_US;
      if (!isRecent && judged >= VOLUME) break;
      judged += 1;
      failures += this.#failed[index] as number;
    }
    const isSlow = this.#size > 0 && now - (this.#at[this.#oldest] as number) > BUSY_US;
    return judged >= (isSlow ? VOLUME_SLOW_MIN : VOLUME) && failures >= judged * FAILED_RATIO;
  }

  reset(): void {
    this.#size = 0;
    this.#failures = 0;
  }

  get #oldest(): number {
    return (this.#next - this.#size + KEPT_MAX) % KEPT_MAX;
  }

  #forget(now: MonoUs): void {
    while (this.#size > 0 && now - (this.#at[this.#oldest] as number) > EVIDENCE_US_MAX) this.#dropOldest();
  }

  #dropOldest(): void {
    this.#failures -= this.#failed[this.#oldest] as number;
    this.#size -= 1;
  }
}
