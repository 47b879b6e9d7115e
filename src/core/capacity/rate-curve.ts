/**
 * How fast a node works, learned: work per wall time of *one* task while `inflight` tasks run beside each other, by
 * octave of `inflight` (1, 2, 3–4, 5–8, …). The node's whole rate is that times `inflight`. A single-slot
 * accelerator is the curve that ends at 1.
 *
 * Estimator: decayed sum of work over decayed sum of time. Dividing sums, not averaging ratios, keeps the noise of
 * short tasks from biasing it. The prior counts as one observation and fades. Errors never reach this class.
 *
 * Alone, a node that goes on as usual is averaged over a hundred tasks: where sizes are guessed within a factor of 1.8, twelve leave
 * the rate unsure by a sixth. As soon as the last few differ from all by more than three spreads of such a mean, they alone count.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, Rate, RefUs } from '../../base/units.ts';
import type { RatePrior } from './hardware.ts';

/** Weight left to the past at each observation: a memory of about 12 tasks until the prior is forgotten, and beside others. */
const DECAY = 0.92;
const YOUNG_TASKS = 25;
/** The same of a node that goes on as usual: about 100 tasks. */
const STEADY_DECAY = 0.99;
/** Tasks that are left of the past once the last few tell of a change, and that these few are. */
const RECENT_TASKS = 6;
/** Squared spreads of a task's logarithm by which such a recent mean differs from the whole one by chance once in hundreds. */
const CHANGED_SPREADS2: number = 3 ** 2 / (2 * RECENT_TASKS - 1);
const SPREAD2_MIN = 0.05 ** 2;
/** A rate that was told and not measured: its sums get their length from the first task. */
const NO_LENGTH_US = 1;
/** Tasks that what was learned before a restart counts as, at most. */
const RESTORED_TASKS_MAX = 12;
/**
 * Assumed slowdown per doubling of concurrency where nothing was measured: next to none. Hope is tried once and then
 * known; fear of the unknown would pack everything onto the one node that was seen in a batch.
 */
const OCTAVE_FACTOR = 0.97;
export const INFLIGHT_OCTAVES = 10;

/** The rate alone, which placement reads for every candidate; its decayed sums; tasks seen; the bounds that the prior sets. */
const SOLO_RATE = 0;
const SOLO_WORK_US = 1;
const SOLO_TIME_US = 2;
const OBSERVATIONS = 3;
const RATE_MIN = 4;
const RATE_MAX = 5;
/** Tasks that the sums stand on; sums of the logarithm of time over work and of its square, decayed alike; its recent mean. */
const TASKS = 6;
const LN = 7;
const LN2 = 8;
const RECENT_LN = 9;
export const CURVE_WIDTH = 10;
const ROWS: NumberRows = new NumberRows(CURVE_WIDTH);

/** Decayed sums of one octave. */
interface Sums {
  workUs: number;
  timeUs: number;
}

export class RateCurve {
  readonly #prior: RatePrior;
  readonly #cells: Float64Array;
  readonly #at: number;
  /** Sums of the higher octaves, made when a task first runs beside others. */
  #beside: Sums[] | null = null;
  /** The fleet's number of the model that it is for, once somebody asked by it; else -1. */
  modelNumber = -1;

  /** It is given a row of zeros where its owner keeps more numbers beside it. */
  constructor(prior: RatePrior, { cells, at }: NumberRow = ROWS.next()) {
    this.#prior = prior;
    this.#cells = cells;
    this.#at = at;
    cells[at + SOLO_RATE] = prior.rate;
    cells[at + TASKS] = 1;
    cells[at + RATE_MIN] = prior.rate / prior.span;
    cells[at + RATE_MAX] = prior.rate * prior.span;
  }

  get observations(): number {
    return this.#cells[this.#at + OBSERVATIONS] as number;
  }

  /** Rate of one task alone, or 0 before one was seen. */
  get soloRate(): Rate {
    const cells = this.#cells;
    const at = this.#at;
    return (cells[at + SOLO_TIME_US] as number) > 0 ? (cells[at + SOLO_RATE] as number) : 0;
  }

  /** Rate of one task while `inflight` run, itself included. O(1) alone, O(octaves) beside others. */
  perTask(inflight: number): Rate {
    // As `soloRate`, without a call: a number that a call returns is an object.
    if (inflight <= 1 && (this.#cells[this.#at + SOLO_TIME_US] as number) > 0)
      return this.#cells[this.#at + SOLO_RATE] as number;
    return this.#workOut(inflightOctave(inflight));
  }

  /** Never faster beside others than alone: what says otherwise is noise, and would make a full node look best. */
  #workOut(octave: number): Rate {
    const rate = this.#nearest(octave);
    return octave > 0 && this.soloRate > 0 ? Math.min(rate, this.soloRate) : rate;
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
    return octave === 0
      ? (this.#cells[this.#at + SOLO_TIME_US] as number)
      : (this.#beside?.[octave]?.timeUs ?? 0);
  }

  #workUs(octave: number): number {
    return octave === 0
      ? (this.#cells[this.#at + SOLO_WORK_US] as number)
      : (this.#beside?.[octave]?.workUs ?? 0);
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
    const cells = this.#cells;
    const at = this.#at;
    cells[at + OBSERVATIONS] = (cells[at + OBSERVATIONS] as number) + 1;
    if (octave > 0) return this.#observeBeside(octave, workUs, time);
    const ln = Math.log(time / Math.max(1, workUs));
    if ((cells[at + SOLO_TIME_US] as number) <= NO_LENGTH_US) this.#begin(time, ln);
    const keep = this.#keep();
    cells[at + TASKS] = (cells[at + TASKS] as number) * keep + 1;
    cells[at + LN] = (cells[at + LN] as number) * keep + ln;
    cells[at + LN2] = (cells[at + LN2] as number) * keep + ln * ln;
    const recent = cells[at + RECENT_LN] as number;
    cells[at + RECENT_LN] = recent + (ln - recent) / RECENT_TASKS;
    const knownWorkUs = cells[at + SOLO_WORK_US] as number;
    this.#setSolo(knownWorkUs * keep + workUs, (cells[at + SOLO_TIME_US] as number) * keep + time);
  }

  /** What was known before the first task counts as tasks of its length. */
  #begin(timeUs: DurationUs, ln: number): void {
    const cells = this.#cells;
    const at = this.#at;
    const tasks = cells[at + TASKS] as number;
    cells[at + SOLO_WORK_US] = (cells[at + SOLO_RATE] as number) * timeUs * tasks;
    cells[at + SOLO_TIME_US] = timeUs * tasks;
    cells[at + LN] = ln * tasks;
    cells[at + LN2] = ln * ln * tasks;
    cells[at + RECENT_LN] = ln;
  }

  /** Weight left to the past at this observation. */
  #keep(): number {
    const cells = this.#cells;
    const at = this.#at;
    const tasks = cells[at + TASKS] as number;
    const usual = (cells[at + OBSERVATIONS] as number) < YOUNG_TASKS ? DECAY : STEADY_DECAY;
    if (tasks <= RECENT_TASKS) return usual;
    const mean = (cells[at + LN] as number) / tasks;
    const spread2 = Math.max(SPREAD2_MIN, (cells[at + LN2] as number) / tasks - mean * mean);
    const away = (cells[at + RECENT_LN] as number) - mean;
    return away * away > CHANGED_SPREADS2 * spread2 ? RECENT_TASKS / tasks : usual;
  }

  #setSolo(workUs: number, timeUs: number): void {
    this.#cells[this.#at + SOLO_WORK_US] = workUs;
    this.#cells[this.#at + SOLO_TIME_US] = timeUs;
    this.#cells[this.#at + SOLO_RATE] = this.#clamp(workUs / timeUs);
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
    this.#setSolo(this.#prior.rate * NO_LENGTH_US, NO_LENGTH_US);
    this.#cells[this.#at + TASKS] = 0;
    this.#beside = null;
  }

  /** Starts from what was learned before a restart. */
  restore(rate: Rate, observations: number): void {
    this.#setSolo(rate * NO_LENGTH_US, NO_LENGTH_US);
    this.#cells[this.#at + TASKS] = Math.min(RESTORED_TASKS_MAX, observations);
    // Not by way of the sums: dividing them gives another last bit.
    this.#cells[this.#at + SOLO_RATE] = this.#clamp(rate);
    this.#cells[this.#at + OBSERVATIONS] = observations;
  }

  #clamp(rate: number): Rate {
    const least = this.#cells[this.#at + RATE_MIN] as number;
    return Math.min(this.#cells[this.#at + RATE_MAX] as number, Math.max(least, rate));
  }
}

/** 0 for one task alone, 1 for two, 2 for three and four, … */
export function inflightOctave(inflight: number): number {
  return inflight <= 1 ? 0 : Math.min(INFLIGHT_OCTAVES - 1, 32 - Math.clz32(inflight - 1));
}
