/**
 * CoDel for services: a queue is overloaded if even the least time that anybody waited over a whole interval was above the
 * target. While it is, whoever waited longer than twice the target is dropped when its turn comes.
 *
 * Source: folly, `folly/executors/Codel.cpp`. As there, the request that begins an interval is never dropped.
 */
import type { DurationUs, MonoUs } from '../../../base/units.ts';

export interface CodelOptions {
  readonly targetUs: DurationUs;
  readonly intervalUs: DurationUs;
}

export class Codel {
  readonly #options: CodelOptions;
  #intervalEndsAt: MonoUs = 0;
  #leastUs: DurationUs = 0;
  /** Whether an interval is to begin with the next request. */
  #isBeginning = true;
  #isOverloaded = false;

  constructor(options: CodelOptions) {
    this.#options = options;
  }

  get isOverloaded(): boolean {
    return this.#isOverloaded;
  }

  /** Takes note of a request whose turn it is after `waitedUs`; says whether it is to be dropped. */
  note(waitedUs: DurationUs, now: MonoUs): boolean {
    const { targetUs, intervalUs } = this.#options;
    if (now > this.#intervalEndsAt && !this.#isBeginning) {
      this.#isBeginning = true;
      this.#intervalEndsAt = now + intervalUs;
      this.#isOverloaded = this.#leastUs > targetUs;
    }
    if (this.#isBeginning) {
      this.#isBeginning = false;
      this.#leastUs = waitedUs;
      return false;
    }
    this.#leastUs = Math.min(this.#leastUs, waitedUs);
    return this.#isOverloaded && waitedUs > 2 * targetUs;
  }
}
