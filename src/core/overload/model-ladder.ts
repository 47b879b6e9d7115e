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
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { LadderConfig } from '../config/types.ts';
import type { Lane } from '../queue/lane.ts';
import { DeadlineWindow } from './deadline-window.ts';
import { NO_QUEUE, type QueueEvidence } from './evidence.ts';
import { type Thresholds, Trigger } from './trigger.ts';

export type LadderStage = 0 | 1 | 2 | 3;

/** Least time in a stage before the next one up. */
const STEP_UP_US: DurationUs = 1_000_000;
/** Weight of a new sample of the queue: two seconds of samples every half second. */
const PRESSURE_STEP = 0.22;
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

export class ModelLadder {
  readonly model: ModelId;
  stage: LadderStage = 0;
  /** When this stage began. */
  since: MonoUs = 0;
  /** When it ends unless evidence renews it; Infinity at stage 0. */
  expiresAt: MonoUs = Number.POSITIVE_INFINITY;
  readonly memory: Trigger = new Trigger();
  readonly queue: Trigger = new Trigger();
  readonly misses: Trigger = new Trigger();
  readonly window: DeadlineWindow = new DeadlineWindow();
  readonly #firstClass: DeadlineWindow = new DeadlineWindow();
  #isFirstClassFine = false;
  /** Lanes in which tasks of the model were laid. */
  readonly lanes: Lane[] = [];
  /** Set when it was dropped at the bound on ladders: whoever still refers to it asks anew. */
  isForgotten = false;
  /** What the last sample found waiting. */
  lastQueue: QueueEvidence = NO_QUEUE;
  #evidence: string | null = null;
  #pressure = 0;
  /** Worked out anew when the configuration changes. */
  #bounds: Bounds | null = null;
  /** By class: what the gate per flow lets wait, for the deadlines that come; a slow mean. */
  readonly gatesUs: DurationUs[] = [];
  readonly #arrived: number[] = [];

  constructor(model: ModelId) {
    this.model = model;
  }

  /** Takes a sample of the evidence and moves by one stage at most. Returns whether the stage changed. */
  sample(sample: Sample, now: MonoUs, config: LadderConfig): boolean {
    this.lastQueue = sample.queue;
    this.#pressure += PRESSURE_STEP * (sample.queue.pressure - this.#pressure);
    if (this.#bounds?.of !== config) this.#bounds = boundsOf(config);
    const { memory, queue, misses } = this.#bounds;
    this.memory.observe(sample.memoryUse, now, memory);
    this.queue.observe(this.#pressure, now, queue);
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
    return this.stage === 0 && this.queue.isQuiet && this.memory.isQuiet && this.#pressure < 0.01;
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
    if (wanted >= stage && stage > 0) this.expiresAt = now + leaseUs(stage, config);
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
    this.since = now;
    this.expiresAt = stage === 0 ? Number.POSITIVE_INFINITY : now + leaseUs(stage, config);
    if (stage === 3) this.#arrived.length = 0;
  }
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
