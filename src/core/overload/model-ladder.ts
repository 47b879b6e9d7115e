/**
 * The ladder of one model: which stage of protection its requests are under, by evidence of its own queue, nodes and
 * deadlines. Another model that idles meanwhile is under none.
 *
 *            memory or queue            queue              queue and deadlines
 *   stage 0 ────────────────► stage 1 ────────► stage 2 ───────────────────────► stage 3
 *           ◄──────────────── lease over, one stage at a time ─────────────────
 *
 * Links. The queue alone carries to stage 2: memory that is unknown, or known and low, never blocks it. Missed
 * deadlines carry to stage 3 only while the queue holds as well: without a queue they are a broken node's, and refusing
 * would mend nothing. Nor while the first class keeps its own: stage 3 gives up the others for its sake. Going up takes one stage per step, so that each shows its effect before the next one.
 *
 * Every stage is a lease: evidence renews it, and without evidence it ends by itself and the stage below begins with a
 * lease of its own. Nothing needs completed work to leave.
 */
import { NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { LadderConfig } from '../config/types.ts';
import type { Lane } from '../queue/lane.ts';
import { DeadlineWindow, WINDOW_WIDTH } from './deadline-window.ts';
import type { QueueEvidence } from './evidence.ts';
import { type Thresholds, Trigger, TRIGGER_WIDTH } from './trigger.ts';

export type LadderStage = 0 | 1 | 2 | 3;

/** Least time in a stage before the next one up. */
const STEP_UP_US: DurationUs = 1_000_000;
/** Between two samples. */
export const SAMPLE_US: DurationUs = 500_000;
/** Weight of a new sample of the queue: two seconds of samples every half second. */
const PRESSURE_STEP = 0.22;
const PRESSURE_US: DurationUs = 2_000_000;
/** Weight of a new request in the mean of what gates let wait. */
const GATE_STEP = 0.05;
/** One part in this many of each refused class passes at the last stage. */
export const TRICKLE_PARTS = 100;
/** Missed deadlines in five minutes below which a ratio says nothing. */
export const MISSES_MIN = 5;

/** What a sample found of a model. */
export interface Sample {
  /** Mean use of accelerator memory, or undefined when it is unknown. */
  readonly memoryUse: number | undefined;
  readonly queue: QueueEvidence;
  /** Time since the sample before; one of a half second or less is a usual one. */
  readonly sinceUs: DurationUs;
}

/** The thresholds of the three triggers, and the configuration that they are of. */
interface Bounds {
  readonly of: LadderConfig;
  readonly memory: Thresholds;
  readonly queue: Thresholds;
  readonly misses: Thresholds;
}

function boundsOf(config: LadderConfig): Bounds {
  const leaveUs = config.calmMs * 1_000;
  const { memoryUseMax, memoryUseResume, queueResumeRatio, missRatioMax, missRatioResume } = config;
  return {
    of: config,
    memory: { enter: memoryUseMax, leave: memoryUseResume, enterUs: config.memoryMs * 1_000, leaveUs },
    queue: { enter: 1, leave: queueResumeRatio, enterUs: config.queueMs * 1_000, leaveUs },
    misses: { enter: missRatioMax, leave: missRatioResume, enterUs: 0, leaveUs },
  };
}

/** Places in the row of a model: what every sample reads and writes lies side by side. */
const SINCE = 0;
const EXPIRES_AT = 1;
const PRESSURE = 2;
/** What the last sample found waiting. */
const DRAIN_US = 3;
const TARGET_US = 4;
const DEPTH = 5;
const DEPTH_MAX = 6;
const SAMPLED_AT = 7;
const TRIGGERS = 8;
const WINDOWS = TRIGGERS + 3 * TRIGGER_WIDTH;
const ROWS: NumberRows = new NumberRows(WINDOWS + 2 * WINDOW_WIDTH);

export class ModelLadder {
  readonly model: ModelId;
  stage: LadderStage = 0;
  readonly #cells: Float64Array;
  readonly #at: number;
  readonly memory: Trigger;
  readonly queue: Trigger;
  readonly misses: Trigger;
  readonly window: DeadlineWindow;
  readonly #firstClass: DeadlineWindow;
  #isFirstClassFine = false;
  /** Lanes in which tasks of the model were laid. */
  readonly lanes: Lane[] = [];
  /** Set when it was dropped at the bound on ladders: whoever still refers to it asks anew. */
  isForgotten = false;
  /** Of the class that pressed most at the last sample. */
  #className = '';
  #evidence: string | null = null;
  /** Worked out anew when the configuration changes. */
  #bounds: Bounds | null = null;
  /** By class: what the gate per flow lets wait, for the deadlines that come; a slow mean. */
  readonly gatesUs: DurationUs[] = [];
  readonly #arrived: number[] = [];

  constructor(model: ModelId, now: MonoUs) {
    const { cells, at } = ROWS.next();
    const trigger = (index: number): Trigger =>
      new Trigger({ cells, at: at + TRIGGERS + index * TRIGGER_WIDTH });
    const window = (index: number): DeadlineWindow =>
      new DeadlineWindow({ cells, at: at + WINDOWS + index * WINDOW_WIDTH });
    this.model = model;
    this.#cells = cells;
    this.#at = at;
    this.memory = trigger(0);
    this.queue = trigger(1);
    this.misses = trigger(2);
    this.window = window(0);
    this.#firstClass = window(1);
    cells[at + EXPIRES_AT] = Number.POSITIVE_INFINITY;
    cells[at + SAMPLED_AT] = now;
  }

  /** When this stage began. */
  get since(): MonoUs {
    return this.#cells[this.#at + SINCE] as number;
  }

  /** When it ends unless evidence renews it; Infinity at stage 0. */
  get expiresAt(): MonoUs {
    return this.#cells[this.#at + EXPIRES_AT] as number;
  }

  /** When it was sampled last, or came to be. */
  get sampledAt(): MonoUs {
    return this.#cells[this.#at + SAMPLED_AT] as number;
  }

  /** What the last sample found waiting. */
  get lastQueue(): Omit<QueueEvidence, 'pressure'> {
    const cells = this.#cells;
    const at = this.#at;
    return {
      className: this.#className,
      drainUs: cells[at + DRAIN_US] as number,
      targetUs: cells[at + TARGET_US] as number,
      depth: cells[at + DEPTH] as number,
      depthMax: cells[at + DEPTH_MAX] as number,
    };
  }

  /** Takes a sample of the evidence and moves by one stage at most. Returns whether the stage changed. */
  sample({ memoryUse, queue: found, sinceUs }: Sample, now: MonoUs, config: LadderConfig): boolean {
    const cells = this.#cells;
    const at = this.#at;
    this.#className = found.className;
    cells[at + SAMPLED_AT] = now;
    cells[at + DRAIN_US] = found.drainUs;
    cells[at + TARGET_US] = found.targetUs;
    cells[at + DEPTH] = found.depth;
    cells[at + DEPTH_MAX] = found.depthMax;
    const before = cells[at + PRESSURE] as number;
    const pressure = before + stepOf(sinceUs) * (found.pressure - before);
    cells[at + PRESSURE] = pressure;
    if (this.#bounds?.of !== config) this.#bounds = boundsOf(config);
    const { memory, queue, misses } = this.#bounds;
    this.memory.observe(memoryUse, now, memory);
    this.queue.observe(pressure, now, queue);
    this.misses.observe(this.#burn(now), now, misses);
    this.#isFirstClassFine = keepsDeadlines(this.#firstClass, config.missRatioMax, now);
    const hasMoved = this.#move(now, config);
    this.#evidence = null;
    return hasMoved;
  }

  /** What holds the stage, for people; made once a sample at most, since a refusal must cost little. */
  get evidence(): string {
    this.#evidence ??= this.stage < 2 ? '' : this.#told();
    return this.#evidence;
  }

  /** An admitted task met its deadline or missed it. */
  noteDeadline(classIndex: number, isMet: boolean, now: MonoUs): void {
    this.window.add(isMet, now);
    if (classIndex === 0) this.#firstClass.add(isMet, now);
  }

  /** Takes how long the gate lets an arriving task's flow wait. O(1). */
  noteGate(classIndex: number, gateUs: DurationUs): void {
    const known = this.gatesUs[classIndex] ?? gateUs;
    this.gatesUs[classIndex] = known + GATE_STEP * (gateUs - known);
  }

  /** Whether one more task of a refused class passes all the same: the first one, and then each hundredth. */
  trickles(classIndex: number): boolean {
    const arrived = this.#arrived[classIndex] ?? 0;
    this.#arrived[classIndex] = arrived + 1;
    return arrived % TRICKLE_PARTS === 0;
  }

  /** Nothing is raised, lit or turning: samples would say the same until somebody waits again. */
  get isQuiet(): boolean {
    const pressure = this.#cells[this.#at + PRESSURE] as number;
    return this.stage === 0 && this.queue.isQuiet && this.memory.isQuiet && pressure < 0.01;
  }

  /** The stage that the evidence of now asks for. */
  get wanted(): LadderStage {
    if (this.queue.isLit) return this.misses.isLit && !this.#isFirstClassFine ? 3 : 2;
    return this.memory.isLit ? 1 : 0;
  }

  /** The lesser of the long and the recent ratio: misses that were many, and still are. */
  #burn(now: MonoUs): number | undefined {
    return this.window.missed(now) < MISSES_MIN ? undefined : burnOf(this.window, now);
  }

  #told(): string {
    const { className, drainUs, targetUs, depth } = this.lastQueue;
    const missed = this.misses.value;
    const misses = missed === undefined ? '' : `, ${percent(missed)} of deadlines missed`;
    if (depth === 0) return `no queue now${misses}`;
    return `${depth} waiting, ${className} for ${seconds(drainUs)} of ${seconds(targetUs)}${misses}`;
  }

  #move(now: MonoUs, config: LadderConfig): boolean {
    const { wanted, stage } = this;
    if (wanted >= stage && stage > 0) this.#cells[this.#at + EXPIRES_AT] = now + leaseUs(stage, config);
    if (wanted > stage) {
      if (stage > 0 && now - this.since < STEP_UP_US) return false;
      this.#enter((stage + 1) as LadderStage, now, config);
      return true;
    }
    if (stage === 0 || now < this.expiresAt) return false;
    this.#enter((stage - 1) as LadderStage, now, config);
    return true;
  }

  #enter(stage: LadderStage, now: MonoUs, config: LadderConfig): void {
    this.stage = stage;
    this.#cells[this.#at + SINCE] = now;
    this.#cells[this.#at + EXPIRES_AT] =
      stage === 0 ? Number.POSITIVE_INFINITY : now + leaseUs(stage, config);
    if (stage === 3) this.#arrived.length = 0;
  }
}

/** Of what was known before, so much is forgotten. */
function stepOf(sinceUs: DurationUs): number {
  return sinceUs <= SAMPLE_US ? PRESSURE_STEP : 1 - Math.exp(-sinceUs / PRESSURE_US);
}

function seconds(us: DurationUs): string {
  return Number.isFinite(us) ? `${(us / 1_000_000).toFixed(1)} s` : 'ever';
}

function burnOf(window: DeadlineWindow, now: MonoUs): number | undefined {
  const recent = window.recentRatio(now);
  const all = window.ratio(now);
  return recent === undefined || all === undefined ? undefined : Math.min(recent, all);
}

/** Whether outcomes are known, lately too, and not too many of them missed. */
function keepsDeadlines(window: DeadlineWindow, ratio: number, now: MonoUs): boolean {
  const burn = burnOf(window, now);
  return burn !== undefined && (burn < ratio || window.missed(now) < MISSES_MIN);
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(1)} %`;
}

function leaseUs(stage: LadderStage, config: LadderConfig): DurationUs {
  return (stage === 3 ? config.criticalOnlyMs : config.leaseMs) * 1_000;
}
