/**
 * Quantiles of times over the last minutes in bounded memory: counts in steps of 5 % from 0.1 ms to 2.9 hours, in two
 * windows. The answer covers the window that runs and the one before it, and is the upper edge of its step, so it is never
 * too small and at most 5 % too large. Adding is O(1); asking is O(steps).
 */
import type { DurationMs, DurationUs, MonoUs } from '../../base/units.ts';

export const WINDOW_US: DurationUs = 300_000_000;

const STEP = Math.log(1.05);
const LOWEST_MS: DurationMs = 0.1;
const STEPS = 380;

export interface Quantiles {
  readonly count: number;
  /** Absent while there is nothing. */
  readonly p50Ms?: DurationMs;
  readonly p95Ms?: DurationMs;
  readonly p99Ms?: DurationMs;
}

export class WindowedQuantiles {
  #now: Uint32Array = new Uint32Array(STEPS);
  #before: Uint32Array = new Uint32Array(STEPS);
  #window = -1;

  /** Times outside of the range count at its ends; what is no number does not count. */
  add(us: DurationUs, at: MonoUs): void {
    if (!(us >= 0)) return;
    this.#turn(at);
    const step = Math.ceil(Math.log(us / 1_000 / LOWEST_MS) / STEP);
    const index = Math.min(STEPS - 1, Math.max(0, step));
    this.#now[index] = (this.#now[index] as number) + 1;
  }

  read(at: MonoUs): Quantiles {
    this.#turn(at);
    let count = 0;
    for (let i = 0; i < STEPS; i++) count += this.#both(i);
    if (count === 0) return { count };
    const of = (q: number): DurationMs => this.#quantile(q, count);
    return { count, p50Ms: of(0.5), p95Ms: of(0.95), p99Ms: of(0.99) };
  }

  #quantile(q: number, count: number): DurationMs {
    const rank = Math.ceil(q * count);
    let seen = 0;
    let i = 0;
    while (i < STEPS - 1 && (seen += this.#both(i)) < rank) i++;
    return Number((LOWEST_MS * Math.exp(i * STEP)).toPrecision(4));
  }

  #both(i: number): number {
    return (this.#now[i] as number) + (this.#before[i] as number);
  }

  #turn(at: MonoUs): void {
    const window = Math.floor(at / WINDOW_US);
    if (window <= this.#window) return;
    const spare = this.#before;
    this.#before = this.#now;
    this.#now = spare.fill(0);
    if (window > this.#window + 1) this.#before.fill(0);
    this.#window = window;
  }
}
