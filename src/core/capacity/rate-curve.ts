/**
 * How fast a node works, learned: work per wall time of *one* task while `inflight` tasks run beside each other, by
 * octave of `inflight` (1, 2, 3–4, 5–8, …). The node's whole rate is that times `inflight`. A single-slot
 * accelerator is the curve that ends at 1.
 *
 * Estimator: decayed sum of work over decayed sum of time. Dividing sums, not averaging ratios, keeps the noise of
 * short tasks from biasing it. The prior counts as one observation and fades. Errors never reach this class.
 */
import type { DurationUs, Rate, RefUs } from '../../base/units.ts';
import type { RatePrior } from './hardware.ts';

/** Weight left to the past at each observation: an effective memory of about 12 tasks. */
const DECAY = 0.92;
/** Assumed slowdown per doubling of concurrency where nothing was measured: batching costs a little. */
const OCTAVE_FACTOR = 0.9;
const OCTAVES = 10;

export class RateCurve {
  readonly #prior: RatePrior;
  readonly #workUs: number[] = new Array<number>(OCTAVES).fill(0);
  readonly #timeUs: number[] = new Array<number>(OCTAVES).fill(0);
  /** Answers of `perTask` by octave, -1 where they must be worked out anew. */
  readonly #rates: number[] = new Array<number>(OCTAVES).fill(-1);
  #observations = 0;

  constructor(prior: RatePrior) {
    this.#prior = prior;
  }

  get observations(): number {
    return this.#observations;
  }

  /** Rate of one task while `inflight` run, itself included. O(1) between observations. */
  perTask(inflight: number): Rate {
    const octave = inflightOctave(inflight);
    const known = this.#rates[octave] as number;
    if (known >= 0) return known;
    const rate = this.#workOut(octave);
    this.#rates[octave] = rate;
    return rate;
  }

  #workOut(octave: number): Rate {
    const own = this.#timeUs[octave] as number;
    if (own > 0) return this.#clamp((this.#workUs[octave] as number) / own);
    for (let distance = 1; distance < OCTAVES; distance++) {
      for (const at of [octave - distance, octave + distance]) {
        const time = this.#timeUs[at] ?? 0;
        if (time > 0) {
          return this.#clamp(((this.#workUs[at] as number) / time) * OCTAVE_FACTOR ** (octave - at));
        }
      }
    }
    return this.#prior.rate * OCTAVE_FACTOR ** octave;
  }

  /**
   * Whole rate of a node with this many slots. Beyond the concurrency that was seen, an engine that states no slots
   * (`isStated` false) is not credited with more than what it has shown.
   */
  total(slots: number, limits: { readonly isStated: boolean }): Rate {
    if (slots === 1) return this.perTask(1);
    if (limits.isStated) return this.perTask(slots) * slots;
    let best = this.perTask(1);
    for (let octave = 1; octave < OCTAVES; octave++) {
      const inflight = Math.min(slots, 1 << octave);
      if ((this.#timeUs[octave] as number) > 0) best = Math.max(best, this.perTask(inflight) * inflight);
    }
    return best;
  }

  /** A finished task: its corrected work and the wall time it took. */
  observe(workUs: RefUs, timeUs: DurationUs, inflight: number): void {
    const octave = inflightOctave(inflight);
    const time = Math.max(1, timeUs);
    if (this.#timeUs[octave] === 0) {
      const start = this.perTask(inflight);
      this.#workUs[octave] = start * time;
      this.#timeUs[octave] = time;
    }
    this.#workUs[octave] = (this.#workUs[octave] as number) * DECAY + workUs;
    this.#timeUs[octave] = (this.#timeUs[octave] as number) * DECAY + time;
    this.#observations += 1;
    this.#rates.fill(-1);
  }

  /** Lets the next few tasks outweigh what was seen so far, and counts on the prior until then. */
  doubt(): void {
    this.#workUs.fill(0);
    this.#timeUs.fill(0);
  }

  /** Starts from what was learned before a restart. */
  restore(rate: Rate, observations: number): void {
    const nominalUs = 1_000_000;
    this.#workUs[0] = rate * nominalUs;
    this.#timeUs[0] = nominalUs;
    this.#observations = observations;
    this.#rates.fill(-1);
  }

  #clamp(rate: number): Rate {
    const { rate: prior, span } = this.#prior;
    return Math.min(prior * span, Math.max(prior / span, rate));
  }
}

function inflightOctave(inflight: number): number {
  return inflight <= 1 ? 0 : Math.min(OCTAVES - 1, 32 - Math.clz32(inflight - 1));
}
