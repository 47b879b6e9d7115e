/**
 * The overload ladder: what is held back while a model's nodes, queue or deadlines show that demand is more than they
 * can do. One ladder per model (model-ladder.ts), so that what one model lacks takes nothing from another's nodes.
 *
 *   stage 1   requests of the last class begin with the first alternative that they consented to
 *   stage 2   classes below the first may have waiting what drains within a part of their gate, their retries are
 *             refused, and optional models that share nodes with this one are switched off
 *   stage 3   the first class alone, and one in a hundred of each other
 *
 * Samples are taken every half second while something waits or a stage is raised, and never otherwise. An operator may
 * set the stage for a time: for all models, shown, and over by itself.
 */
import { ByNumber } from '../../base/by-number.ts';
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { GateMode, LadderConfig, SchedulerConfig } from '../config/types.ts';
import type { Lane } from '../queue/lane.ts';
import { lookAtQueues, memoryEvidence, noQueue } from './evidence.ts';
import { type LadderStage, ModelLadder } from './model-ladder.ts';

const SAMPLE_US: DurationUs = 500_000;
/** Models with a ladder; beyond it those forget theirs that need none now, and after them new ones have none. */
export const LADDERS_MAX = 10_000;
/** Lanes of one model whose queues are looked at; a model has one for each combination of needs that tells nodes apart. */
const LANES_PER_MODEL_MAX = 64;

export interface LadderOverride {
  readonly stage: LadderStage;
  readonly since: MonoUs;
  readonly until: MonoUs;
  /** For people: who set it, and why. */
  readonly who: string;
  readonly why: string;
}

export class Ladder {
  /** When the next sample is due; Infinity while nothing could change. */
  sampleAt: MonoUs = Number.POSITIVE_INFINITY;
  /** Whether any stage is raised or set: one test on the way of a request that none concerns. */
  isRaised = false;
  /** The highest stage of any model, or the one that was set. */
  stage: LadderStage = 0;
  override: LadderOverride | null = null;
  readonly models: Map<ModelId, ModelLadder> = new Map();
  /** The same, those that were asked for since one was forgotten. */
  readonly #byNumber: ByNumber<ModelLadder> = new ByNumber();
  /** Told of each change of a model's stage by evidence; null while nobody watches. */
  onStage: ((model: ModelId, stage: LadderStage) => void) | null = null;
  #mode: GateMode = 'off';
  #config!: LadderConfig;
  #classes = 0;
  /** Samples taken so far. */
  #rounds = 0;
  #optional: ReadonlySet<ModelId> = new Set();
  /** Nodes that tell memory; without any it is not looked at. */
  #readsMemory = false;
  /** Domains of nodes on which a model is at stage 2 or above. */
  readonly #pressedDomains: Set<number> = new Set();

  constructor(config: SchedulerConfig) {
    this.configure(config);
  }

  configure(config: SchedulerConfig): void {
    this.#mode = config.gates.ladder;
    this.#config = config.ladder;
    this.#classes = config.classes.length;
    this.#optional = new Set(config.models.filter((model) => model.optional).map((model) => model.id));
    if (this.#mode === 'off') this.#clear();
  }

  /**
   * The ladder under which a task of the model in this lane stands; null while the gate is off. `number` is the fleet's for
   * the model, or -1. O(1).
   */
  of(model: ModelId, number: number, lane: Lane, now: MonoUs): ModelLadder | null {
    if (this.#mode === 'off') return null;
    if (this.sampleAt === Number.POSITIVE_INFINITY) this.sampleAt = now + SAMPLE_US;
    const known = lane.ladder;
    if (known !== null && known.model === model && !known.isForgotten) return known;
    return this.#find(model, number, lane);
  }

  isSetByHand(now: MonoUs): boolean {
    return this.override !== null && now < this.override.until;
  }

  /** The stage that holds for a model's requests now. */
  stageOf(ladder: ModelLadder | null, now: MonoUs): LadderStage {
    if (this.override !== null && now < this.override.until) return this.override.stage;
    return ladder === null ? 0 : ladder.stage;
  }

  /** Whether requests of the class begin with a lesser result, if their clients consented to one. */
  degradesClass(classIndex: number, ladder: ModelLadder | null, now: MonoUs): boolean {
    if (!this.isRaised || this.#mode !== 'on') return false;
    return this.#classes > 1 && classIndex === this.#classes - 1 && this.stageOf(ladder, now) >= 1;
  }

  /** Whether the ladder has switched an optional model off, for itself or for one that shares its nodes. */
  isModelOff(model: ModelId, lane: Lane, now: MonoUs): boolean {
    if (!this.isRaised || this.#mode === 'off' || !this.#optional.has(model)) return false;
    if (this.override !== null && now < this.override.until) return this.override.stage >= 2;
    return this.#pressedDomains.has(domainOf(lane));
  }

  /** How long the stage of a model lasts if no evidence renews it. */
  remainingUs(ladder: ModelLadder | null, now: MonoUs): DurationUs {
    if (this.override !== null && now < this.override.until) return this.override.until - now;
    return ladder === null || ladder.stage === 0 ? 0 : Math.max(0, ladder.expiresAt - now);
  }

  /** A node told its memory: a stage may be due although nothing waits. */
  noteMemory(now: MonoUs): void {
    this.#readsMemory = true;
    if (this.#mode !== 'off' && this.models.size > 0)
      this.sampleAt = Math.min(this.sampleAt, now + SAMPLE_US);
  }

  setOverride(override: LadderOverride | null, now: MonoUs): void {
    this.override = override;
    this.sampleAt = Math.min(this.sampleAt, now + SAMPLE_US);
    this.#sumUp(now);
  }

  /** Takes a sample of every model. O(models x lanes x classes), and nodes where they tell memory. */
  sample(now: MonoUs): void {
    if (this.override !== null && now >= this.override.until) this.override = null;
    let isQuiet = this.override === null;
    const round = ++this.#rounds;
    const queue = noQueue();
    for (const ladder of this.models.values()) {
      dropGone(ladder.lanes);
      const memoryUse = this.#readsMemory ? memoryEvidence(ladder.lanes, now) : undefined;
      lookAtQueues(ladder.lanes, { gatesUs: ladder.gatesUs, round }, this.#config, queue);
      const hasMoved = ladder.sample({ memoryUse, queue }, now, this.#config);
      if (hasMoved && this.onStage !== null) this.onStage(ladder.model, ladder.stage);
      isQuiet &&= ladder.isQuiet && queue.depth === 0;
    }
    this.#sumUp(now);
    this.sampleAt = isQuiet ? Number.POSITIVE_INFINITY : now + SAMPLE_US;
    if (this.override !== null) this.sampleAt = Math.min(this.sampleAt, this.override.until);
  }

  #sumUp(now: MonoUs): void {
    let highest: LadderStage = 0;
    this.#pressedDomains.clear();
    for (const ladder of this.models.values()) {
      if (ladder.stage > highest) highest = ladder.stage;
      if (ladder.stage >= 2) for (const lane of ladder.lanes) this.#pressedDomains.add(domainOf(lane));
    }
    const isSet = this.override !== null && now < this.override.until;
    this.stage = isSet ? (this.override as LadderOverride).stage : highest;
    this.isRaised = isSet || highest > 0;
  }

  #find(model: ModelId, number: number, lane: Lane): ModelLadder | null {
    let ladder = this.#byNumber.get(number) ?? this.models.get(model);
    if (ladder === undefined) {
      if (this.models.size >= LADDERS_MAX) this.#forgetQuiet();
      if (this.models.size >= LADDERS_MAX) return null;
      ladder = new ModelLadder(model);
      this.models.set(model, ladder);
    }
    this.#byNumber.set(number, ladder);
    if (!ladder.lanes.includes(lane) && ladder.lanes.length < LANES_PER_MODEL_MAX) ladder.lanes.push(lane);
    lane.ladder = ladder;
    return ladder;
  }

  #forgetQuiet(): void {
    this.#byNumber.clear();
    for (const ladder of this.models.values()) {
      if (!ladder.isQuiet || ladder.lanes.some((lane) => lane.tasks > 0)) continue;
      ladder.isForgotten = true;
      this.models.delete(ladder.model);
    }
  }

  #clear(): void {
    for (const ladder of this.models.values()) ladder.isForgotten = true;
    this.models.clear();
    this.#byNumber.clear();
    this.override = null;
    this.sampleAt = Number.POSITIVE_INFINITY;
    this.#sumUp(Number.NEGATIVE_INFINITY);
  }
}

function domainOf(lane: Lane): number {
  return lane.pools[0]?.domain ?? -1;
}

/** Lanes end when pools come or go; the tasks that wait are laid into new ones. */
function dropGone(own: Lane[]): void {
  for (let i = own.length - 1; i >= 0; i--) if (own[i]?.isGone === true) own.splice(i, 1);
}
