/**
 * How long a node may be silent before its attempt is given to another one.
 *
 *   bound = factor x Q(model, kind, octave of work) x work / rate(node, tasks in flight)     clamped to [floor, deadline)
 *
 * `Q` is the 99th percentile, over all nodes of the model, of time over expected time. `rate` is what the node has
 * established for one task with so many in flight: load lengthens the bound by our own count of tasks, never by time.
 *
 * Slowness must not lengthen its own timeout, so:
 * - only successes teach, and none that came near its bound;
 * - an established rate falls only while the *median* over all nodes of the model says that all are slower, and then by
 *   half per ten minutes at most: one slow node cannot move its own bound;
 * - a node below its established rate teaches the model nothing;
 * - Q at most doubles per ten minutes.
 * And a node or a size that is really slower must not be cut for ever: each cut of a node doubles its next bound, up to
 * eight times, and one that then serves is taken as it is; cuts on two nodes in turn count as a time that was taken.
 */
import { ByNumber } from '../../base/by-number.ts';
import { LogSketch } from '../../base/log-sketch.ts';
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, Rate, RefUs } from '../../base/units.ts';
import type { RatePrior } from './hardware.ts';
import { INFLIGHT_OCTAVES, inflightOctave } from './rate-curve.ts';

/** What is waited for: a whole answer, a stream's first content byte, or its next bytes. */
export type WaitKind = 0 | 1 | 2;
export const WHOLE: WaitKind = 0;
export const FIRST_BYTE: WaitKind = 1;
export const IDLE: WaitKind = 2;

/** Models with times of their own; further ones share one record. */
export const TIMED_MODELS_MAX = 1_000;
const SHARED_MODEL = '';
/** Work from a millisecond up to 2^20 of them, by powers of two. */
const WORK_OCTAVES = 21;
const QUANTILE = 0.99;
/** Successes of a size before its percentile counts; until then it is assumed to be this. */
const OBSERVATIONS_MIN = 50;
const QUANTILE_PRIOR = 4;
const QUANTILE_MIN = 1;
const QUANTILE_MAX = 16;
/** Silence inside streams may be any small part of the whole time. */
const IDLE_QUANTILE_MIN = 2 ** -10;
/** A success beyond this part of its bound teaches nothing: what lies above was cut, so what lies near is half a tail. */
const NEAR_BOUND = 0.75;
const GROWTH_WINDOW_US: DurationUs = 600_000_000;
/** Tasks at a number in flight after which the rate there is established. */
const ESTABLISHED = 10;
/** As in rate-curve.ts: a memory of about 12 tasks. */
const DECAY = 0.92;
const RISE_STEP = 0.02;
/** Median of time over expected time above which all nodes of a model are slower than established. */
const ALL_SLOWER = 1.25;
const MEDIAN_STEP = 1.02;
/** A node below this part of its established rate is slow. */
const SLOW = 2 / 3;
/** Longest time by which a rate falls at once: the clock of the fall runs while tasks end. */
const FALL_US_MAX: DurationUs = 60_000_000;
/** Tasks that may come to run beside one after it was sent, at least. */
const COMPANY_MIN = 8;
/** Hardware that is known within this factor has a bound before anything was measured. */
const TRUSTED_SPAN_MAX = 16;
export const STRETCH_MAX = 3;

interface TimedModel {
  readonly model: string;
  /** The fleet's for the model, or -1. */
  readonly modelNumber: number;
}

/** One attempt that ended well, as its bound saw it. Flat, since one is made for each. */
export interface TimeSample extends TimedModel {
  /** Of the node that served. */
  readonly patience: NodePatience;
  readonly workUs: RefUs;
  readonly elapsedUs: DurationUs;
  /** Mean number of tasks in flight on the node meanwhile, itself included. */
  readonly inflight: number;
  /** The bound that it had, or 0. */
  readonly limitUs: DurationUs;
  readonly now: MonoUs;
}

/** Sums of work and time, the established rate and how many tasks it stands on, of one octave: they are read together. */
const WORK = 0;
const TIME = 1;
const RATE = 2;
const COUNT = 3;
const PACE_WIDTH = 4;
const PACES: NumberRows = new NumberRows(PACE_WIDTH);

/**
 * What a node has established: the rate of all its tasks together, by octave of tasks in flight. Beyond a node's knee
 * that changes little inside an octave, where the rate of one task changes by half.
 */
export class NodePace {
  /** Of one task alone. */
  readonly #cells: Float64Array;
  readonly #at: number;
  /** By octave, of tasks beside each other; made when a task first ran beside others. */
  #beside: Float64Array | null = null;
  #fellAt: MonoUs = Number.NEGATIVE_INFINITY;

  /** It is given a row of zeros where its owner keeps more numbers beside it. */
  constructor({ cells, at }: NumberRow = PACES.next()) {
    this.#cells = cells;
    this.#at = at;
  }

  /** Rate of one task of so many, from what is established at exactly this octave, or 0. */
  established(inflight: number): Rate {
    const octave = inflightOctave(inflight);
    return this.#isEstablished(octave) ? this.#cell(octave, RATE) / inflight : 0;
  }

  /**
   * Rate of one task to count on with so many in flight, or 0 when nothing is established. Above what was seen, the
   * whole node does no more than it did there; below it, one task is at least as fast.
   */
  rate(inflight: number): Rate {
    const octave = inflightOctave(inflight);
    for (let at = octave; at >= 0; at--) {
      if (this.#isEstablished(at)) return this.#cell(at, RATE) / inflight;
    }
    for (let at = octave + 1; this.#beside !== null && at < INFLIGHT_OCTAVES; at++) {
      if (this.#isEstablished(at)) return this.#cell(at, RATE) / 2 ** at;
    }
    return 0;
  }

  /** Whether its last tasks ran below what it had established. */
  isSlow(inflight: number): boolean {
    const octave = inflightOctave(inflight);
    const expected = this.#cell(octave, RATE) * this.#cell(octave, TIME);
    return this.#cell(octave, WORK) < SLOW * expected;
  }

  /** `areAllSlower`: the model's nodes together are slower than established. */
  observe({ workUs, elapsedUs, inflight, now }: TimeSample, areAllSlower: boolean): void {
    const octave = inflightOctave(inflight);
    const cells =
      octave === 0 ? this.#cells : (this.#beside ??= new Float64Array(PACE_WIDTH * INFLIGHT_OCTAVES));
    const at = octave === 0 ? this.#at : PACE_WIDTH * octave;
    const work = (cells[at + WORK] as number) * DECAY + workUs * inflight;
    const time = (cells[at + TIME] as number) * DECAY + Math.max(1, elapsedUs);
    cells[at + WORK] = work;
    cells[at + TIME] = time;
    const measured = work / time;
    const rate = cells[at + RATE] as number;
    if (!this.#isEstablished(octave)) {
      cells[at + COUNT] = (cells[at + COUNT] as number) + 1;
      cells[at + RATE] = measured;
    } else if (measured > rate) cells[at + RATE] = rate + RISE_STEP * (measured - rate);
    else if (areAllSlower) this.#fall(measured / rate, now);
  }

  #isEstablished(octave: number): boolean {
    return this.#cell(octave, COUNT) >= ESTABLISHED;
  }

  #cell(octave: number, place: number): number {
    if (octave === 0) return this.#cells[this.#at + place] as number;
    return this.#beside === null ? 0 : (this.#beside[PACE_WIDTH * octave + place] as number);
  }

  /** What was established counts no more: the node has served, only slower. */
  forget(): void {
    this.#cells.fill(0, this.#at, this.#at + PACE_WIDTH);
    this.#beside = null;
  }

  /** All octaves fall together, by half per ten minutes, and no further than what is measured. */
  #fall(lowest: number, now: MonoUs): void {
    const sinceUs = Math.min(FALL_US_MAX, now - this.#fellAt);
    this.#fellAt = now;
    const part = Math.max(lowest, 2 ** (-sinceUs / GROWTH_WINDOW_US));
    const alone = this.#at + RATE;
    this.#cells[alone] = (this.#cells[alone] as number) * part;
    const beside = this.#beside;
    for (let at = PACE_WIDTH + RATE; beside !== null && at < beside.length; at += PACE_WIDTH)
      beside[at] = (beside[at] as number) * part;
  }
}

const SERVED_AT = 0;
const STRETCHED_AT = 1;
/** The pace of whole answers lies beside it, since whoever asks for the one asks for the other. */
const WHOLE_PACE = 2;
export const PATIENCE_WIDTH: number = 2 + PACE_WIDTH;
const PATIENCES: NumberRows = new NumberRows(PATIENCE_WIDTH);

/** What is known of one node's times. Made with the node; the tables inside on first use. */
export class NodePatience {
  /** Of whole answers, and of first bytes. */
  #ofWhole: NodePace | undefined;
  #ofFirstByte: NodePace | undefined;
  readonly #cells: Float64Array;
  readonly #at: number;
  /** Cuts since it last served: each doubles the next bound. */
  stretch = 0;

  /** It is given a row of zeros where its owner keeps more numbers beside it. */
  constructor({ cells, at }: NumberRow = PATIENCES.next()) {
    this.#cells = cells;
    this.#at = at;
    cells[at + STRETCHED_AT] = Number.NEGATIVE_INFINITY;
    cells[at + SERVED_AT] = Number.NEGATIVE_INFINITY;
  }

  get stretchedAt(): MonoUs {
    return this.#cells[this.#at + STRETCHED_AT] as number;
  }

  get servedAt(): MonoUs {
    return this.#cells[this.#at + SERVED_AT] as number;
  }

  /** Silence inside a stream is measured by the pace of whole ones. */
  pace(kind: WaitKind): NodePace | undefined {
    return kind === FIRST_BYTE ? this.#ofFirstByte : this.#ofWhole;
  }

  paceToLearn(kind: WaitKind): NodePace {
    if (kind === FIRST_BYTE) return (this.#ofFirstByte ??= new NodePace());
    return (this.#ofWhole ??= new NodePace({ cells: this.#cells, at: this.#at + WHOLE_PACE }));
  }

  /** A node was cut. What began before the last cut is the same silence. */
  cut(startedAt: MonoUs, now: MonoUs): void {
    if (startedAt <= this.stretchedAt) return;
    this.stretch = Math.min(STRETCH_MAX, this.stretch + 1);
    this.#cells[this.#at + STRETCHED_AT] = now;
  }

  /** It served: within its usual bound it is as before, and beyond it it is what it is now. */
  served(startedAt: MonoUs, isWithin: boolean, now: MonoUs): void {
    this.#cells[this.#at + SERVED_AT] = now;
    if (this.stretch === 0 || startedAt < this.stretchedAt) return;
    this.stretch = 0;
    if (isWithin) return;
    this.#ofWhole?.forget();
    this.#ofFirstByte?.forget();
  }
}

/** Times of one model and size: their sketch, and how far its percentile may have grown. */
class TimeCell {
  readonly sketch: LogSketch = new LogSketch();
  /** Node of the last cut, by its order. */
  lastCut = -1;
  #base = 0;
  #windowAt: MonoUs = 0;

  /** The percentile that counts now; 0 before there are enough. */
  quantile(now: MonoUs): number {
    if (this.sketch.total < OBSERVATIONS_MIN) return this.#base;
    const found = this.sketch.quantile(QUANTILE);
    if (this.#base === 0 || found < this.#base) {
      this.#base = found;
      this.#windowAt = now;
      return found;
    }
    const inForce = Math.min(found, 2 * this.#base);
    if (now - this.#windowAt >= GROWTH_WINDOW_US) {
      this.#base = inForce;
      this.#windowAt = now;
    }
    return inForce;
  }
}

class ModelTimes {
  readonly #cells: (TimeCell | undefined)[] = [];
  /** Running median of time over expected time, over all nodes, by kind. */
  readonly medians: [number, number, number] = [1, 1, 1];

  cell(kind: WaitKind, workUs: RefUs): TimeCell | undefined {
    return this.#cells[cellIndex(kind, workUs)];
  }

  cellToLearn(kind: WaitKind, workUs: RefUs): TimeCell {
    const index = cellIndex(kind, workUs);
    this.#cells[index] ??= new TimeCell();
    return this.#cells[index];
  }

  follow(kind: WaitKind, ratio: number): void {
    const median = this.medians[kind] * (ratio > this.medians[kind] ? MEDIAN_STEP : 1 / MEDIAN_STEP);
    this.medians[kind] = Math.min(QUANTILE_MAX, Math.max(1 / 2, median));
  }
}

export interface WaitQuestion extends TimedModel {
  readonly workUs: RefUs;
  readonly patience: NodePatience;
  readonly prior: RatePrior;
  /** Tasks in flight on the node with this one, and the most that it takes. */
  readonly inflight: number;
  readonly slots: number;
}

export class Timeouts {
  readonly #models: Map<string, ModelTimes> = new Map();
  readonly #byNumber: ByNumber<ModelTimes> = new ByNumber();

  get models(): number {
    return this.#models.size;
  }

  /** Bound on the time until the kind's end, before floor and deadline; Infinity while nothing is known. O(1). */
  limitUs(kind: WaitKind, asked: WaitQuestion, now: MonoUs): DurationUs {
    const company = Math.min(asked.slots, Math.max(COMPANY_MIN, 2 * asked.inflight));
    const cell = this.#known(asked)?.cell(kind, asked.workUs);
    const found = cell?.quantile(now) ?? 0;
    const rate = asked.patience.pace(kind)?.rate(company) ?? 0;
    if (kind === IDLE) return found === 0 || rate === 0 ? NEVER : (found * asked.workUs) / rate;
    const quantile = found === 0 ? QUANTILE_PRIOR : Math.min(QUANTILE_MAX, Math.max(QUANTILE_MIN, found));
    if (rate > 0) return (quantile * asked.workUs) / rate;
    const { prior } = asked;
    if (prior.span > TRUSTED_SPAN_MAX) return NEVER;
    return (quantile * asked.workUs * prior.span * company) / prior.rate;
  }

  /** A success. */
  learn(kind: WaitKind, sample: TimeSample): void {
    if (isNear(sample)) return;
    const times = this.#toLearn(sample);
    const pace = sample.patience.paceToLearn(kind);
    const rate = pace.established(sample.inflight);
    if (rate > 0) {
      const ratio = (sample.elapsedUs * rate) / sample.workUs;
      times.follow(kind, ratio);
      if (!pace.isSlow(sample.inflight)) times.cellToLearn(kind, sample.workUs).sketch.add(ratio);
    }
    pace.observe(sample, times.medians[kind] > ALL_SLOWER);
  }

  /** The longest silence inside a stream that ended well; `workUs` is the work after its first byte. */
  learnSilence(sample: TimeSample): void {
    const pace = sample.patience.pace(IDLE);
    const rate = pace?.established(sample.inflight) ?? 0;
    if (isNear(sample) || rate === 0 || pace?.isSlow(sample.inflight) !== false) return;
    const ratio = Math.max(IDLE_QUANTILE_MIN, (sample.elapsedUs * rate) / sample.workUs);
    this.#toLearn(sample).cellToLearn(IDLE, sample.workUs).sketch.add(ratio);
  }

  /**
   * An attempt was cut at its bound. One node that is cut again and again is that node's affair; another one in turn
   * says that the size takes so long, and the bound would otherwise never learn of it.
   */
  learnCut(
    kind: WaitKind,
    cut: WaitQuestion & { readonly nodeOrder: number; readonly elapsedUs: DurationUs },
  ): void {
    const cell = this.#toLearn(cut).cellToLearn(kind, cut.workUs);
    const isOtherNode = cell.lastCut !== cut.nodeOrder && cell.lastCut !== -1;
    cell.lastCut = cut.nodeOrder;
    const rate = cut.patience.pace(kind)?.rate(cut.inflight) ?? 0;
    if (isOtherNode && rate > 0) cell.sketch.add((cut.elapsedUs * rate) / cut.workUs);
  }

  #known({ model, modelNumber }: TimedModel): ModelTimes | undefined {
    return this.#byNumber.get(modelNumber) ?? this.#models.get(model) ?? this.#models.get(SHARED_MODEL);
  }

  #toLearn({ model, modelNumber }: TimedModel): ModelTimes {
    const numbered = this.#byNumber.get(modelNumber);
    if (numbered !== undefined) return numbered;
    const hasOwn = this.#models.has(model) || this.#models.size < TIMED_MODELS_MAX - 1;
    const key = hasOwn ? model : SHARED_MODEL;
    const times = this.#models.get(key) ?? new ModelTimes();
    this.#models.set(key, times);
    this.#byNumber.set(modelNumber, times);
    return times;
  }
}

const NEVER: DurationUs = Number.POSITIVE_INFINITY;

function isNear({ elapsedUs, limitUs }: TimeSample): boolean {
  return limitUs > 0 && elapsedUs > NEAR_BOUND * limitUs;
}

function cellIndex(kind: WaitKind, workUs: RefUs): number {
  const octave = workUs < 2_000 ? 0 : Math.min(WORK_OCTAVES - 1, 31 - Math.clz32(workUs / 1_000));
  return kind * WORK_OCTAVES + octave;
}
