/**
 * The overload ladder: what is held back while a model's nodes, queue or deadlines show that demand is more than they
 * can do. One ladder per model (model-ladder.ts), so that what one model lacks takes nothing from another's nodes.
 *
 *   stage 1   requests of the last class begin with the first alternative that they consented to
 *   stage 2   classes below the first may have waiting what drains within a part of their gate, their retries are
 *             refused, and optional models that share nodes with this one are switched off
 *   stage 3   the first class alone, and one in a hundred of each other
 *
 * Samples are taken every half second while something waits or a stage is raised, and never otherwise: of sixteen models in turn,
 * so that thousands do not stop the others' requests, and of any other when a request of it comes. An operator may set the stage
 * for a time: for all models, shown, and over by itself.
 */
import { ByNumber } from '../../base/by-number.ts';
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { GateMode, LadderConfig, SchedulerConfig } from '../config/types.ts';
import type { Lane } from '../queue/lane.ts';
import { lookAtQueues, memoryEvidence, noQueue, type QueueEvidence } from './evidence.ts';
import { type LadderStage, ModelLadder, SAMPLE_US } from './model-ladder.ts';

/** Models that are looked at in one turn; each that no request asks for has its turn in so many as there are sixteens. */
const MODELS_PER_TURN = 16;
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
  /** When the next turn is due; Infinity while nothing could change. */
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
  /** Turns so far: within one, nothing that is sampled changes. */
  #turns = 0;
  /** Whose turn is next, in order of their first request, and how many before it were quiet, one after the other. */
  #next = 0;
  #quiet = 0;
  /** Since when samples are taken without a pause. */
  #busySince: MonoUs = 0;
  #inTurn: ModelLadder[] = [];
  readonly #found: QueueEvidence = noQueue();
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
    if (this.sampleAt === Number.POSITIVE_INFINITY) this.#wake(now);
    const known = lane.ladder;
    const ladder =
      known !== null && known.model === model && !known.isForgotten
        ? known
        : this.#find({ model, number, lane }, now);
    if (ladder !== null && now - Math.max(ladder.sampledAt, this.#busySince) >= SAMPLE_US) {
      this.#turns += 1;
      if (this.#sampleOf(ladder, now)) this.#sumUp(now);
    }
    return ladder;
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
    if (this.#mode !== 'off' && this.models.size > 0) this.#wake(now);
  }

  setOverride(override: LadderOverride | null, now: MonoUs): void {
    this.override = override;
    this.#wake(now);
    this.#sumUp(now);
  }

  /** Takes the samples of one turn. O(`MODELS_PER_TURN` x lanes x classes), and nodes where they tell memory. */
  sample(now: MonoUs): void {
    const { override } = this;
    if (override !== null && now >= override.until) this.override = null;
    let hasMoved = override !== this.override;
    const ladders = this.#inTurn;
    this.#turns += 1;
    for (let left = Math.min(MODELS_PER_TURN, ladders.length); left > 0; left--) {
      this.#next = this.#next + 1 < ladders.length ? this.#next + 1 : 0;
      this.#quiet += 1;
      hasMoved = this.#sampleOf(ladders[this.#next] as ModelLadder, now) || hasMoved;
    }
    if (hasMoved) this.#sumUp(now);
    const isQuiet = this.override === null && this.#quiet >= ladders.length;
    this.sampleAt = isQuiet ? Number.POSITIVE_INFINITY : now + SAMPLE_US;
    if (this.override !== null) this.sampleAt = Math.min(this.sampleAt, this.override.until);
  }

  /** Returns whether it moved to another stage, or lost a lane. */
  #sampleOf(ladder: ModelLadder, now: MonoUs): boolean {
    const lanesBefore = ladder.lanes.length;
    dropGone(ladder.lanes);
    const memoryUse = this.#readsMemory ? memoryEvidence(ladder.lanes, now) : undefined;
    const queue = this.#found;
    lookAtQueues(ladder.lanes, { gatesUs: ladder.gatesUs, round: this.#turns }, this.#config, queue);
    const sinceUs = now - Math.max(ladder.sampledAt, this.#busySince);
    const hasMoved = ladder.sample({ memoryUse, queue, sinceUs }, now, this.#config);
    if (hasMoved && this.onStage !== null) this.onStage(ladder.model, ladder.stage);
    if (!ladder.isQuiet || queue.depth > 0) this.#quiet = 0;
    return hasMoved || ladder.lanes.length < lanesBefore;
  }

  /** Lets a turn be taken soon. */
  #wake(now: MonoUs): void {
    if (this.sampleAt === Number.POSITIVE_INFINITY) this.#busySince = now;
    this.#quiet = 0;
    this.sampleAt = Math.min(this.sampleAt, now + SAMPLE_US);
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

  #find(
    { model, number, lane }: { readonly model: ModelId; readonly number: number; readonly lane: Lane },
    now: MonoUs,
  ): ModelLadder | null {
    let ladder = this.#byNumber.get(number) ?? this.models.get(model);
    if (ladder === undefined) {
      if (this.models.size >= LADDERS_MAX) this.#forgetQuiet();
      if (this.models.size >= LADDERS_MAX) return null;
      ladder = new ModelLadder(model, now);
      this.models.set(model, ladder);
      this.#inTurn.push(ladder);
    }
    this.#byNumber.set(number, ladder);
    if (!ladder.lanes.includes(lane) && ladder.lanes.length < LANES_PER_MODEL_MAX) this.#join(ladder, lane);
    lane.ladder = ladder;
    return ladder;
  }

  #join(ladder: ModelLadder, lane: Lane): void {
    ladder.lanes.push(lane);
    if (ladder.stage >= 2) this.#pressedDomains.add(domainOf(lane));
  }

  #forgetQuiet(): void {
    this.#byNumber.clear();
    for (const ladder of this.models.values()) {
      if (!ladder.isQuiet || ladder.lanes.some((lane) => lane.tasks > 0)) continue;
      ladder.isForgotten = true;
      this.models.delete(ladder.model);
    }
    this.#inTurn = this.#inTurn.filter((ladder) => !ladder.isForgotten);
  }

  #clear(): void {
    for (const ladder of this.models.values()) ladder.isForgotten = true;
    this.models.clear();
    this.#inTurn = [];
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
