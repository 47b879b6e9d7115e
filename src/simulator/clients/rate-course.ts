/**
 * A rate that changes with time, as a clock that runs faster or slower. Gaps between arrivals are drawn for rate 1 and
 * measured on this clock: a gap of 1 ends when the expected number of arrivals since its start is 1.
 *
 * With exponential gaps that is exactly the Poisson process of the changing rate. With others it is the same renewal
 * process, stretched: a gap under way when a spike begins goes on at the spike's pace, so that a long silence drawn in calm times
 * does not swallow it, and the burstiness stays what it was however often the rate changes.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';

export interface RateCourseOptions {
  /** Units of the clock per microsecond at 1 times the rate. */
  readonly perUs: number;
  /** Piecewise constant, in order of time; 1 times before the first. */
  readonly course: readonly { readonly from: MonoUs; readonly times: number }[];
  /** Runs for `onUs`, stands for `offUs`, from 0 on; always on when undefined. */
  readonly bursts: { readonly onUs: DurationUs; readonly offUs: DurationUs } | undefined;
  /** What would be later is never. */
  readonly until: MonoUs;
}

export class RateCourse {
  readonly #options: RateCourseOptions;
  /** Pieces of the course that began at or before the last instant asked for. */
  #piece = 0;

  constructor(options: RateCourseOptions) {
    this.#options = options;
  }

  /** The instant at which `units` have passed since `from`, not rounded; Infinity from `until` on. `from` never goes back. */
  after(from: MonoUs, units: number): MonoUs {
    const { perUs, until } = this.#options;
    let at = from;
    let left = units;
    while (at < until) {
      const times = this.#timesAt(at);
      const isOn = this.#isOn(at);
      const end = Math.min(until, this.#courseEnd(), this.#burstEnd(at, isOn));
      const rate = isOn ? perUs * times : 0;
      const needed = rate > 0 ? left / rate : Number.POSITIVE_INFINITY;
      if (at + needed < end) return at + needed;
      left -= rate * (end - at);
      at = end;
    }
    return Number.POSITIVE_INFINITY;
  }

  #timesAt(at: MonoUs): number {
    const { course } = this.#options;
    while (this.#piece < course.length && (course[this.#piece]?.from ?? 0) <= at) this.#piece += 1;
    return this.#piece === 0 ? 1 : (course[this.#piece - 1]?.times ?? 1);
  }

  #courseEnd(): MonoUs {
    return this.#options.course[this.#piece]?.from ?? Number.POSITIVE_INFINITY;
  }

  #isOn(at: MonoUs): boolean {
    const { bursts } = this.#options;
    return bursts === undefined || at % (bursts.onUs + bursts.offUs) < bursts.onUs;
  }

  #burstEnd(at: MonoUs, isOn: boolean): MonoUs {
    const { bursts } = this.#options;
    if (bursts === undefined) return Number.POSITIVE_INFINITY;
    const periodUs = bursts.onUs + bursts.offUs;
    const beganAt = Math.floor(at / periodUs) * periodUs;
    return isOn ? beganAt + bursts.onUs : beganAt + periodUs;
  }
}
