/**
 * How many tasks at once do a node good that states no slots and gives no readings. Learned from its pace: wall time per
 * work, so that large tasks are not taken for congestion.
 *
 *   gradient = clamp(1.5 x pace of few / pace of now, 0.5, 1)
 *   limit    = half of itself + half of (limit x gradient + headroom)       headroom = sqrt(limit) while the gradient is 1
 *
 * decided once per window of tasks, between 1 and the configured most. After Gradient2 of Netflix' concurrency-limits, with
 * the square root of Envoy and the correlation check of failsafe-go, which takes headroom away and a part of the limit; unlike the first, the pace of few is no average of the
 * past, which a long overload would fill with its own waiting: it is measured anew with a third of the limit every two minutes
 * or so, at once when the limit has halved, and for nothing whenever few run anyway.
 *
 * Where fewer than half of the limit run, nothing is decided: the limit is not what holds them. A node that was idle for
 * half a minute starts again where new nodes start, without having served anything.
 */
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';

const TOLERANCE = 1.5;
const GRADIENT_MIN = 0.5;
const SMOOTHING = 0.5;
const WINDOW_TASKS_MIN = 8;
const WINDOW_TASKS_MAX = 32;
/** Tasks that measure the pace of few. */
const MEASURED_TASKS = 6;
const MEASURE_EVERY_US: DurationUs = 120_000_000;
const MEASURE_EVERY_WINDOWS = 32;
/** A measurement that gets no tasks ends by itself. */
const MEASURE_US_MAX: DurationUs = 60_000_000;
const MEASURE_PART = 1 / 3;
/** A measured pace further off than this replaces the old one instead of moving it by half. */
const MOVED = 2;
const REST_US: DurationUs = 30_000_000;
/** Weight left to the past, per window, in the relation of pace to tasks in flight. */
const RELATION_DECAY = 0.95;
/** Least spread of ln(tasks in flight) from which the relation tells something. */
const SPREAD_MIN = 0.02;
/** Slope of ln(pace) over ln(tasks in flight): at 1, twice as many take twice as long, and nothing is gained. */
const SLOPE_MAX = 0.8;
const CROWDED_PART = 0.95;
const REFUSED_PART = 0.9;

/** Why the limit is what it is, for people. */
export type LimitReason =
  | 'start'
  | 'grows'
  | 'slower-beside-others'
  | 'more-only-wait'
  | 'measuring'
  | 'refused'
  | 'rested';

export interface ConcurrencySample {
  readonly workUs: RefUs;
  readonly elapsedUs: DurationUs;
  /** Mean number of tasks in flight meanwhile, itself included. */
  readonly inflight: number;
}

export interface ConcurrencyBounds {
  readonly start: number;
  readonly max: number;
}

/** Sums over tasks. */
class Window {
  tasks = 0;
  #workUs = 0;
  #timeUs = 0;
  #inflight = 0;

  add({ workUs, elapsedUs, inflight }: ConcurrencySample): void {
    this.tasks += 1;
    this.#workUs += workUs;
    this.#timeUs += elapsedUs;
    this.#inflight += inflight;
  }

  /** Dividing sums, not averaging ratios, keeps the noise of short tasks from biasing it. */
  get pace(): number {
    return this.#timeUs / Math.max(1, this.#workUs);
  }

  get inflight(): number {
    return this.#inflight / Math.max(1, this.tasks);
  }

  clear(): void {
    this.tasks = 0;
    this.#workUs = 0;
    this.#timeUs = 0;
    this.#inflight = 0;
  }
}

/** Decayed least squares of ln(pace) over ln(tasks in flight). */
class Relation {
  #weight = 0;
  #x = 0;
  #y = 0;
  #xx = 0;
  #xy = 0;

  add(inflight: number, pace: number): void {
    const x = Math.log(inflight);
    const y = Math.log(pace);
    this.#weight = this.#weight * RELATION_DECAY + 1;
    this.#x = this.#x * RELATION_DECAY + x;
    this.#y = this.#y * RELATION_DECAY + y;
    this.#xx = this.#xx * RELATION_DECAY + x * x;
    this.#xy = this.#xy * RELATION_DECAY + x * y;
  }

  /** Whether more at once take so much longer that nothing is gained. */
  get isCrowded(): boolean {
    if (this.#weight === 0) return false;
    const spread = this.#xx / this.#weight - (this.#x / this.#weight) ** 2;
    if (spread < SPREAD_MIN) return false;
    const together = this.#xy / this.#weight - (this.#x * this.#y) / this.#weight ** 2;
    return together / spread > SLOPE_MAX;
  }
}

export class ConcurrencyLimit {
  #bounds: ConcurrencyBounds;
  /** Tasks at once that are allowed now: a whole number, at least 1. */
  limit: number;
  #reason: LimitReason = 'start';
  #exact: number;
  /** Wall time per work while few run; 0 before it is known. */
  #paceOfFew = 0;
  readonly #window: Window = new Window();
  readonly #measured: Window = new Window();
  readonly #relation: Relation = new Relation();
  #isMeasuring = false;
  #measureUntil: MonoUs = 0;
  #measuredAt: MonoUs = 0;
  #windowsSince = 0;
  #limitWhenMeasured = 0;

  constructor(bounds: ConcurrencyBounds) {
    this.#bounds = bounds;
    this.#exact = bounds.start;
    this.limit = bounds.start;
  }

  get reason(): LimitReason {
    return this.#isMeasuring ? 'measuring' : this.#reason;
  }

  /** The limit without a measurement under way. */
  get settled(): number {
    return Math.round(this.#exact);
  }

  /** Wall time per work while few run; 0 before it is known. */
  get paceOfFew(): number {
    return this.#paceOfFew;
  }

  configure(bounds: ConcurrencyBounds): void {
    this.#bounds = bounds;
    this.#set(this.#exact, this.#reason);
  }

  /** A task ended well. */
  observe(sample: ConcurrencySample, now: MonoUs): void {
    this.#endMeasuringWhenDue(now);
    if (sample.inflight <= this.#few) this.#measure(sample, now);
    if (this.#isMeasuring) return;
    this.#window.add(sample);
    const enough = Math.min(WINDOW_TASKS_MAX, Math.max(WINDOW_TASKS_MIN, this.limit));
    if (this.#window.tasks >= enough) this.#decide(now);
  }

  /** A task is about to start on the node, which was idle for so long; 0 when it is busy. */
  starting(idleUs: DurationUs, now: MonoUs): void {
    this.#endMeasuringWhenDue(now);
    if (idleUs < REST_US || this.#exact >= this.#bounds.start) return;
    this.#isMeasuring = false;
    this.#set(this.#bounds.start, 'rested');
  }

  /** The node said that it is full, with so many in flight. */
  refused(inflight: number): void {
    if (inflight * 2 >= this.#exact) this.#set(Math.min(this.#exact, inflight) * REFUSED_PART, 'refused');
  }

  get #few(): number {
    return Math.max(1, Math.floor(this.#exact * MEASURE_PART));
  }

  #decide(now: MonoUs): void {
    const { pace, inflight } = this.#window;
    this.#window.clear();
    this.#windowsSince += 1;
    this.#relation.add(inflight, pace);
    if (this.#paceOfFew === 0 || pace < this.#paceOfFew) this.#learnPace(pace);
    if (inflight * 2 < this.#exact) return;
    const gradient = Math.min(1, Math.max(GRADIENT_MIN, (TOLERANCE * this.#paceOfFew) / pace));
    const { isCrowded } = this.#relation;
    const reason = isCrowded ? 'more-only-wait' : gradient < 1 ? 'slower-beside-others' : 'grows';
    const headroom = reason === 'grows' ? Math.sqrt(this.#exact) : 0;
    const wanted = this.#exact * gradient * (isCrowded ? CROWDED_PART : 1) + headroom;
    this.#set(this.#exact + SMOOTHING * (wanted - this.#exact), reason);
    if (this.#shouldMeasure(now)) this.#startMeasuring(now);
  }

  #shouldMeasure(now: MonoUs): boolean {
    if (this.#measuredAt === 0 || this.#exact * 2 <= this.#limitWhenMeasured) return true;
    return this.#windowsSince >= MEASURE_EVERY_WINDOWS && now - this.#measuredAt >= MEASURE_EVERY_US;
  }

  #startMeasuring(now: MonoUs): void {
    this.#isMeasuring = true;
    this.#measureUntil = now + MEASURE_US_MAX;
    this.#measured.clear();
    this.limit = this.#few;
  }

  #measure(sample: ConcurrencySample, now: MonoUs): void {
    this.#measured.add(sample);
    if (this.#measured.tasks < MEASURED_TASKS) return;
    const { pace, inflight } = this.#measured;
    this.#measured.clear();
    const isFar = pace > this.#paceOfFew * MOVED || pace * MOVED < this.#paceOfFew;
    this.#paceOfFew = isFar ? pace : (this.#paceOfFew + pace) / 2;
    if (this.#isMeasuring) this.#relation.add(inflight, pace);
    this.#endMeasuring(now);
  }

  #endMeasuringWhenDue(now: MonoUs): void {
    if (this.#isMeasuring && now >= this.#measureUntil) this.#endMeasuring(now);
  }

  #endMeasuring(now: MonoUs): void {
    this.#measuredAt = now;
    this.#windowsSince = 0;
    this.#limitWhenMeasured = this.#exact;
    if (!this.#isMeasuring) return;
    this.#isMeasuring = false;
    this.#window.clear();
    this.#set(this.#exact, this.#reason);
  }

  #learnPace(pace: number): void {
    this.#paceOfFew = this.#paceOfFew === 0 ? pace : (this.#paceOfFew + pace) / 2;
  }

  #set(exact: number, reason: LimitReason): void {
    this.#exact = Math.min(this.#bounds.max, Math.max(1, exact));
    this.#reason = reason;
    this.limit = this.settled;
  }
}
