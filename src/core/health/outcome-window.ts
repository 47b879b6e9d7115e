/**
 * The last outcomes of a model over all nodes, and whether half of them failed.
 *
 * Judged are the last 20. A busy model has them within ten seconds. A slow one is judged over fewer, ten at least, once
 * they reach back further than that, and never over what is older than ten minutes: ten tell 50 % from the 5 % of a
 * usual day as well as anything does that a slow model can wait for (five failures of ten have a chance of 6 in
 * 100,000 at 5 %), and below ten two bad nodes are not told from a bad model.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { EVIDENCE_US_MAX } from './failure-score.ts';

const VOLUME = 20;
const VOLUME_SLOW_MIN = 10;
const BUSY_US: DurationUs = 10_000_000;
const FAILED_RATIO = 0.5;

export class OutcomeWindow {
  /** Rings of the last VOLUME outcomes: when, and whether they failed. */
  readonly #at: Float64Array = new Float64Array(VOLUME);
  readonly #failed: Uint8Array = new Uint8Array(VOLUME);
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
    if (this.#size === VOLUME) this.#dropOldest();
    this.#at[this.#next] = now;
    this.#failed[this.#next] = isSuccess ? 0 : 1;
    this.#next = (this.#next + 1) % VOLUME;
    this.#size += 1;
    if (!isSuccess) this.#failures += 1;
  }

  /** Whether enough was seen and half of it failed. */
  isOverLimit(now: MonoUs): boolean {
    this.#forget(now);
    const isSlow = this.#size > 0 && now - (this.#at[this.#oldest] as number) > BUSY_US;
    if (this.#size < (isSlow ? VOLUME_SLOW_MIN : VOLUME)) return false;
    return this.#failures >= this.#size * FAILED_RATIO;
  }

  reset(): void {
    this.#size = 0;
    this.#failures = 0;
  }

  get #oldest(): number {
    return (this.#next - this.#size + VOLUME) % VOLUME;
  }

  #forget(now: MonoUs): void {
    while (this.#size > 0 && now - (this.#at[this.#oldest] as number) > EVIDENCE_US_MAX) this.#dropOldest();
  }

  #dropOldest(): void {
    this.#failures -= this.#failed[this.#oldest] as number;
    this.#size -= 1;
  }
}
