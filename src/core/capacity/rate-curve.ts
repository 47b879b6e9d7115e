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
/**
 * Assumed slowdown per doubling of concurrency where nothing was measured: next to none. Hope is tried once and then
 * known; fear of the unknown would pack everything onto the one node that was seen in a batch.
 */
const OCTAVE_FACTOR = 0.97;
export const INFLIGHT_OCTAVES = 10;

/** Decayed sums of one octave. */
interface Sums {
  workUs: number;
  timeUs: number;
}

export class RateCurve {
  readonly #prior: RatePrior;
  /** The rate alone is kept at hand: placement reads it for every candidate. */
  #soloRate: Rate;
  #soloWorkUs = 0;
  #soloTimeUs = 0;
  /** Sums of the higher octaves, made when a task first runs beside others. */
  #beside: Sums[] | null = null;
  #observations = 0;
  /** The fleet's number of the model that it is for, once somebody asked by it; else -1. */
  modelNumber = -1;

  constructor(prior: RatePrior) {
    this.#prior = prior;
    this.#soloRate = prior.rate;
  }

  get observations(): number {
    return this.#observations;
  }

  /** Rate of one task alone, or 0 before one was seen. */
  get soloRate(): Rate {
    return this.#soloTimeUs > 0 ? this.#soloRate : 0;
  }

  /** Rate of one task while `inflight` run, itself included. O(1) alone, O(octaves) beside others. */
  perTask(inflight: number): Rate {
    return inflight <= 1 && this.#soloTimeUs > 0 ? this.#soloRate : this.#workOut(inflightOctave(inflight));
  }

  /** Never faster beside others than alone: what says otherwise is noise, and would make a full node look best. */
  #workOut(octave: number): Rate {
    const rate = this.#nearest(octave);
    return octave > 0 && this.#soloTimeUs > 0 ? Math.min(rate, this.#soloRate) : rate;
  }

  #nearest(octave: number): Rate {
    for (let distance = 0; distance < INFLIGHT_OCTAVES; distance++) {
      for (const at of distance === 0 ? [octave] : [octave - distance, octave + distance]) {
        const time = this.#timeUs(at);
        if (time > 0) return this.#clamp((this.#workUs(at) / time) * OCTAVE_FACTOR ** (octave - at));
      }
    }
    return this.#prior.rate * OCTAVE_FACTOR ** octave;
  }

  #timeUs(octave: number): number {
    return octave === 0 ? this.#soloTimeUs : (this.#beside?.[octave]?.timeUs ?? 0);
  }

  #workUs(octave: number): number {
    return octave === 0 ? this.#soloWorkUs : (this.#beside?.[octave]?.workUs ?? 0);
  }

  /**
   * Whole rate of a node with this many slots. Beyond the concurrency that was seen, an engine that states no slots
   * (`isStated` false) is not credited with more than what it has shown.
   */
  total(slots: number, limits: { readonly isStated: boolean }): Rate {
    if (slots === 1) return this.perTask(1);
    if (limits.isStated) return this.perTask(slots) * slots;
    let best = this.perTask(1);
    for (let octave = 1; octave < INFLIGHT_OCTAVES; octave++) {
      const inflight = Math.min(slots, 1 << octave);
      if (this.#timeUs(octave) > 0) best = Math.max(best, this.perTask(inflight) * inflight);
    }
    return best;
  }

  /** A finished task: its corrected work and the wall time it took. */
  observe(workUs: RefUs, timeUs: DurationUs, inflight: number): void {
    const octave = inflightOctave(inflight);
    const time = Math.max(1, timeUs);
    this.#observations += 1;
    if (octave > 0) return this.#observeBeside(octave, workUs, time);
    if (this.#soloTimeUs === 0) {
      this.#soloWorkUs = this.perTask(1) * time;
      this.#soloTimeUs = time;
    }
    this.#soloWorkUs = this.#soloWorkUs * DECAY + workUs;
    this.#soloTimeUs = this.#soloTimeUs * DECAY + time;
    this.#soloRate = this.#clamp(this.#soloWorkUs / this.#soloTimeUs);
  }

  #observeBeside(octave: number, workUs: RefUs, timeUs: DurationUs): void {
    this.#beside ??= Array.from({ length: INFLIGHT_OCTAVES }, () => ({ workUs: 0, timeUs: 0 }));
    const sums = this.#beside[octave] as Sums;
    if (sums.timeUs === 0) {
      sums.workUs = this.#workOut(octave) * timeUs;
      sums.timeUs = timeUs;
    }
    sums.workUs = sums.workUs * DECAY + workUs;
    sums.timeUs = sums.timeUs * DECAY + timeUs;
  }

  /** Lets the next few tasks outweigh what was seen so far, and counts on the prior until then. */
  doubt(): void {
    this.#soloRate = this.#prior.rate;
    this.#soloWorkUs = this.#prior.rate;
    this.#soloTimeUs = 1;
    this.#beside = null;
  }

  /** Starts from what was learned before a restart. */
  restore(rate: Rate, observations: number): void {
    const nominalUs = 1_000_000;
    this.#soloWorkUs = rate * nominalUs;
    this.#soloTimeUs = nominalUs;
    this.#soloRate = this.#clamp(rate);
    this.#observations = observations;
  }

  #clamp(rate: number): Rate {
    const { rate: prior, span } = this.#prior;
    return Math.min(prior * span, Math.max(prior / span, rate));
  }
}

/** 0 for one task alone, 1 for two, 2 for three and four, … */
export function inflightOctave(inflight: number): number {
  return inflight <= 1 ? 0 : Math.min(INFLIGHT_OCTAVES - 1, 32 - Math.clz32(inflight - 1));
}
