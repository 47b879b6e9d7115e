/**
 * How soon the streams of an engine that batches begin. Such an engine computes prompts one after the other, with nearly the
 * whole machine, and gives what is left of it to the streams that are under way. So the first byte of one more stream does not
 * depend on how slowly a stream runs beside so many others, but on the prompts before it:
 *
 *   time until the first byte = (own work + work ahead) / rate        ahead: until the first bytes of streams that wait for theirs
 *
 * The rate is learned from first bytes, as decayed sums (see rate-curve.ts): prompts and answers need not run equally much faster
 * than on the reference. What lies ahead counts whole, though some of it is done already, when it is learned from as when
 * it is asked for.
 */
import type { DurationUs, Rate, RefUs } from '../../base/units.ts';
import type { RatePrior } from './hardware.ts';

/** As in rate-curve.ts: a memory of about 12 streams. */
const DECAY = 0.92;

export interface FirstByteSeen {
  /** Work until the first byte, that of the streams before it included. */
  readonly workUs: RefUs;
  readonly elapsedUs: DurationUs;
}

export class FirstBytes {
  readonly #prior: RatePrior;
  #workUs = 0;
  #timeUs = 0;

  constructor(prior: RatePrior) {
    this.#prior = prior;
  }

  /** Work until first bytes per time, of all streams of the engine together; 0 before one was seen. */
  get rate(): Rate {
    if (this.#timeUs === 0) return 0;
    const { rate, span } = this.#prior;
    return Math.min(rate * span, Math.max(rate / span, this.#workUs / this.#timeUs));
  }

  /** A first byte came. `soloRate`, that of a whole task alone, counts as the observation before the first one. */
  observe({ workUs, elapsedUs }: FirstByteSeen, soloRate: Rate): void {
    const timeUs = Math.max(1, elapsedUs);
    if (this.#timeUs === 0) {
      this.#timeUs = timeUs;
      this.#workUs = soloRate * timeUs;
    }
    this.#workUs = this.#workUs * DECAY + workUs;
    this.#timeUs = this.#timeUs * DECAY + timeUs;
  }
}
