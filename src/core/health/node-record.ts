/**
 * A node inside the scheduler: what was stated, what was measured, which marks it carries, what it runs.
 * Every negative mark is an instant at which it ends by itself.
 */
import { NO_HANDLE } from '../../base/keyed-heap.ts';
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, NodeId, Rate, Ratio, RefUs } from '../../base/units.ts';
import type { ConcurrencyLimit } from '../capacity/concurrency.ts';
import { priorOf, type RatePrior } from '../capacity/hardware.ts';
import { FirstBytes } from '../capacity/first-bytes.ts';
import { CURVE_WIDTH, RateCurve } from '../capacity/rate-curve.ts';
import type { ReadLimit } from '../capacity/read-limit.ts';
import { type TimeLeftLaw, timeLeftUs } from '../capacity/time-left.ts';
import { NodePatience } from '../capacity/timeouts.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { AcceleratorMemory } from '../overload/accelerator-memory.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import type { Seat } from '../placement/pool.ts';
import type { PrefixHolder } from '../placement/prefix-index.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { ModelOffer } from '../request/needs.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeSpec } from '../scheduler/events.ts';
import { type ModelPace, type NodeTally, TALLY_WIDTH } from '../signals/index.ts';
import { FailureScore } from './failure-score.ts';
import { ModelOnNode } from './model-breakers.ts';
import { NodeNumbers } from './node-numbers.ts';
import { PACE_WIDTH, PaceScore } from './pace-score.ts';
import type { NodeState } from './state.ts';

/** Baseline of a node's own speed moves this slowly: it is what the rate was before it changed. */
const BASELINE_STEP = 0.01;
const BASELINE_MIN_OBSERVATIONS = 20;
/** Tasks of a model after which its rate counts as known against the node's speed. */
const SPREAD_MIN_OBSERVATIONS = 10;

const NO_RATES: Float64Array = new Float64Array(0);

/** How strongly a node that has not proven itself is ranked down, fading with its successes (slow start). */
const UNPROVEN_PENALTY = 0.25;

/** The pace score and the tally of one model on one node in one cache line; in the next one its rate curve, where there is one. */
const TALLY = PACE_WIDTH;
const CURVE: number = TALLY + TALLY_WIDTH;
const ROWS: NumberRows = new NumberRows(8 * Math.ceil((CURVE + CURVE_WIDTH) / 8));

/** What is known of one model on one node: an end of a task asks for all of it, looks it up once, and finds its numbers in one row. */
class ModelHere {
  readonly model: string;
  /** Made by the first task of the model, on a node of several. */
  curve: RateCurve | null = null;
  /** Made by the first task that tells something of its speed. */
  pace: PaceScore | null = null;
  /** Made by the first stream of the model that begins, on a node of several. */
  firstBytes: FirstBytes | null = null;
  /** Null beyond the bound on those that are told apart. */
  tally: ModelPace | null;
  readonly #row: NumberRow;

  constructor(model: string, node: NodeTally) {
    this.model = model;
    this.#row = ROWS.next();
    this.tally = node.tallyFor(model, this.#from(TALLY));
  }

  beginCurve(prior: RatePrior): RateCurve {
    return (this.curve = new RateCurve(prior, this.#from(CURVE)));
  }

  beginPace(sharesSteps: boolean): PaceScore {
    return (this.pace = new PaceScore(sharesSteps, this.#row));
  }

  #from(place: number): NumberRow {
    return { cells: this.#row.cells, at: this.#row.at + place };
  }
}

export class NodeRecord extends NodeNumbers {
  // First what every start and end of a task touches, in few cache lines: the members from `spec` on are cold.
  readonly id: NodeId;
  /** As its specification states: slots, or 0, and whether the tasks share every step. */
  slotsStated: number;
  batches: boolean;
  /** Whether it serves a single model: then the overall rate is that model's, and nothing is ever swapped. */
  isSingleModel: boolean;
  /** Tasks that hold a permit, in no order; each knows its place (`runningIndex`). */
  readonly running: TaskRecord[] = [];
  /** The first of its seats, which knows the next one; `seats` has all of them. */
  firstSeat: Seat | null = null;
  /** Slots, as of the last `plan`. */
  slotsNow = 1;
  /** Of models that failed here, while anything speaks against them; never on a node of one model. */
  breakers: Map<string, ModelOnNode> | null = null;
  /** Its node group, and what the group counts of it; see placement/bulkhead.ts. */
  group: NodeGroup | null = null;
  /** What it is believed to keep of prompts; null where it keeps nothing that we know of. */
  prefixes: PrefixHolder<NodeRecord> | null = null;
  /** Bound on tasks at once, learned from its pace; null for a node that states slots. */
  concurrency: ConcurrencyLimit | null = null;
  residentModel = '';
  state: NodeState = 'unverified';
  cordoned = false;
  draining = false;
  /** False until it has served: new, back from a restart, or back from an ejection. */
  verified = false;
  /** Exactly one task may try a node that comes back from an ejection. */
  isTrial = false;
  successes = 0;
  ejections = 0;
  /** Work until the first bytes of the streams here that still wait for theirs. */
  awaitedUs: RefUs = 0;
  #overall: RateCurve;
  #prior: RatePrior;
  readonly failures: FailureScore = new FailureScore();
  /** Its times, for bounds on its silence. */
  readonly patience: NodePatience = new NodePatience(this.patienceRow);
  /** The model that was asked for last: most nodes do one for long, and several ask of it in turn. */
  #last: ModelHere | null = null;
  /** Handle of its timer (see node-timer.ts). */
  timer: number = NO_HANDLE;

  spec: NodeSpec;
  readonly order: number;
  offers: ReadonlyMap<string, ModelOffer>;
  failedProbes = 0;
  groupSlots = 0;
  groupFree = 0;
  /** The one model that all failures since a clean score were of; '' when there were several, or it is not known. */
  culprit = '';
  /** Bodies that broke it lately, the newest last; see poison.ts. */
  struckBy: readonly string[] = [];
  /** The learned bound where it holds; 0 where slots, readings or the configuration decide. */
  slotsLearned = 0;
  /** At most one per model that it offers or has measured. */
  readonly #models: Map<string, ModelHere> = new Map();
  /** How soon streams begin where the engine batches, over all models. */
  #firstBytes: FirstBytes;
  /** The same by the fleet's number of the model, once it was asked for: placement asks for many nodes per task. */
  readonly #curves: (RateCurve | undefined)[] = [];
  /** Rates of one task alone by that number, 0 where unknown: with many models every curve that is asked comes from memory. */
  #soloRates: Float64Array = NO_RATES;
  /** One of its tasks is being aborted so that another task has its place. */
  isGivingWay = false;
  readingFull = false;
  /** The bound by what it tells of those who wait inside it; null while it tells nothing. */
  readLimit: ReadLimit | null = null;
  /** What is told of its accelerators' memory; null while nothing ever was. */
  memory: AcceleratorMemory | null = null;

  constructor(spec: NodeSpec, order: number) {
    super();
    this.id = spec.id;
    this.spec = spec;
    this.order = order;
    this.offers = offersOf(spec);
    this.isSingleModel = this.offers.size === 1;
    this.slotsStated = spec.slots;
    this.batches = spec.batching;
    this.#prior = priorOf(spec.hardware);
    this.#overall = new RateCurve(this.#prior, this.overallRow);
    this.#firstBytes = new FirstBytes(this.#prior);
  }

  restate(spec: NodeSpec): void {
    this.spec = spec;
    this.offers = offersOf(spec);
    this.isSingleModel = this.offers.size === 1;
    this.slotsStated = spec.slots;
    this.batches = spec.batching;
    for (const here of this.#models.values()) {
      if (this.offers.has(here.model)) continue;
      here.pace = null;
      here.firstBytes = null;
      if (here.curve === null) this.#models.delete(here.model);
    }
    this.#last = null;
    for (const model of this.breakers?.keys() ?? []) {
      if (this.offers.size === 1 || !this.offers.has(model)) this.forgetBreaker(model);
    }
  }

  /** The breaker of a model here, made if there is none. At most one per model that the node offers. */
  breakerOf(model: string): ModelOnNode {
    this.breakers ??= new Map();
    const known = this.breakers.get(model);
    if (known !== undefined) return known;
    const created = new ModelOnNode(model);
    this.breakers.set(model, created);
    return created;
  }

  forgetBreaker(model: string): void {
    this.breakers?.delete(model);
    if (this.breakers?.size === 0) this.breakers = null;
  }

  /** Its seats: none before it joins the fleet, and after it left. */
  get seats(): readonly Seat[] {
    const seats: Seat[] = [];
    for (let seat = this.firstSeat; seat !== null; seat = seat.next) seats.push(seat);
    return seats;
  }

  /** Whether the index counts it among the open nodes of the model. */
  isSeatedFor(model: string): boolean {
    return this.seats.some((seat) => seat.isIndexed && seat.pool.offers.has(model));
  }

  /** Rate of one task of a model while `inflight` run. Cost: one map look-up when the node serves several models. */
  rateOf(model: string, inflight: number): Rate {
    const curve = this.isSingleModel ? null : this.#models.get(model)?.curve;
    return (curve ?? this.#overall).perTask(inflight);
  }

  /** The same of one task alone, as of the last `plan` where it serves a single model. `number` is the fleet's for the model, or -1. */
  soloRateOf(model: string, number: number): Rate {
    if (this.isSingleModel) return this.soloRate;
    const known = number >= 0 && number < this.#soloRates.length ? (this.#soloRates[number] as number) : 0;
    return known > 0 ? known : this.rateOf(model, 1);
  }

  /**
   * Work until first bytes per time, where the engine computes the prompts of streams in turn; 0 where it does not. '' stands
   * for all models. See first-bytes.ts.
   */
  rateInTurnOf(model: string): Rate {
    if (!this.batches) return 0;
    const own = this.isSingleModel || model === '' ? null : this.#models.get(model)?.firstBytes;
    const { rate } = own ?? this.#firstBytes;
    return rate > 0 ? rate : this.rateOf(model, 1);
  }

  /** Rate at which it does what a deadline bounds, as one of so many tasks and with no prompt before its own. */
  deadlineRateOf({ model, stream }: TaskSpec, inflight: number): Rate {
    const rateInTurn = stream ? this.rateInTurnOf(model) : 0;
    return rateInTurn > 0 ? rateInTurn : this.rateOf(model, inflight);
  }

  /** Speed over all models: what the index orders by. */
  speed(inflight: number): Rate {
    return this.#overall.perTask(inflight);
  }

  /** Refreshes what placement reads. Call after every change of the node's work, marks or rates. */
  plan(config: SchedulerConfig, now: MonoUs): void {
    this.slotsNow = this.slotsMax(config);
    this.rankFactor = rankFactor(this, config);
    this.drainLongUntil =
      this.slotsStated > 0 ? 0 : now + this.drainUs(now) - config.placement.drainMsMax * 1_000;
    this.soloRate = this.#overall.perTask(1);
    this.nextRate = this.slotsNow === 1 ? this.soloRate : this.#overall.perTask(this.#nextInflight());
  }

  /** Rate at which the next task of a model would run. `number` is the fleet's for the model, or -1. */
  nextRateOf(model: string, number: number): Rate {
    if (this.isSingleModel) return this.nextRate;
    const inflight = this.#nextInflight();
    const alone = inflight === 1 && number >= 0 && number < this.#soloRates.length;
    const soloRate = alone ? (this.#soloRates[number] as number) : 0;
    if (soloRate > 0) return soloRate;
    const known = number >= 0 && number < this.#curves.length ? this.#curves[number] : undefined;
    const curve = known ?? this.#numbered(model, number);
    return curve === undefined ? this.nextRate : curve.perTask(inflight);
  }

  #numbered(model: string, number: number): RateCurve | undefined {
    const curve = this.#models.get(model)?.curve ?? undefined;
    if (curve === undefined || number < 0) return curve;
    this.#curves[number] = curve;
    curve.modelNumber = number;
    this.#noteSoloRate(curve);
    return curve;
  }

  #noteSoloRate({ modelNumber, soloRate }: RateCurve): void {
    if (modelNumber < 0) return;
    if (modelNumber >= this.#soloRates.length) {
      const grown = new Float64Array(Math.max(modelNumber + 1, this.offers.size, 2 * this.#soloRates.length));
      grown.set(this.#soloRates);
      this.#soloRates = grown;
    }
    this.#soloRates[modelNumber] = soloRate;
  }

  #nextInflight(): number {
    return Math.min(this.running.length + 1, this.slotsNow);
  }

  /** Whole rate at full use: the node's part of a lane's capacity. */
  capacity(config: SchedulerConfig): Rate {
    return this.#overall.total(this.slotsMax(config), { isStated: this.slotsStated > 0 });
  }

  /**
   * The same as it usually is: with all its slots, whatever a trial or the slow start leaves it, and at the pace before it
   * became slower.
   */
  usualCapacity(config: SchedulerConfig): Rate {
    const total = this.#overall.total(this.#slotsProven(config), { isStated: this.slotsStated > 0 });
    return total * Math.max(1, this.baselineRate / this.speed(1));
  }

  /** What its hardware class promises, before anything was measured. */
  get priorRate(): Rate {
    return this.#prior.rate;
  }

  get prior(): RatePrior {
    return this.#prior;
  }

  get observations(): number {
    return this.#overall.observations;
  }

  /** The first byte of a stream came so long after it was sent. Once per attempt. */
  learnFirstByte(task: TaskRecord, elapsedUs: DurationUs): void {
    if (this.batches) {
      const { model } = task;
      const seen = { workUs: task.awaitedBeforeUs + task.awaitedUs, elapsedUs };
      if (!this.isSingleModel) {
        const here = this.#here(model);
        here.firstBytes ??= new FirstBytes(this.#prior);
        here.firstBytes.observe(seen, this.rateOf(model, 1));
      }
      this.#firstBytes.observe(seen, this.speed(1));
    }
    this.#noLongerAwaits(task);
  }

  #noLongerAwaits(task: TaskRecord): void {
    this.awaitedUs -= task.awaitedUs;
    task.awaitedUs = 0;
  }

  learn(model: string, workUs: RefUs, timeUs: DurationUs, inflight: number): void {
    this.#overall.observe(workUs, timeUs, inflight);
    const rate = this.#overall.perTask(1);
    if (!this.isSingleModel) {
      const curve = this.#curveOf(model);
      curve.observe(workUs, timeUs, inflight);
      this.#noteSoloRate(curve);
      if (curve.observations >= SPREAD_MIN_OBSERVATIONS) this.#widenSpread(curve.perTask(1) / rate);
    }
    if (this.#overall.observations === BASELINE_MIN_OBSERVATIONS) this.baselineRate = rate;
    else if (this.baselineRate > 0) this.baselineRate += BASELINE_STEP * (rate - this.baselineRate);
  }

  /** Whether the node does this model as fast as it used to. At most one score per model that it offers. */
  paceOf(model: string): PaceScore {
    const here = this.#here(model);
    return here.pace ?? here.beginPace(this.batches);
  }

  /** The same where there is one; makes none. */
  knownPaceOf(model: string): PaceScore | null {
    return this.#models.get(model)?.pace ?? null;
  }

  /** Counts how fast the model ran here, for those who compare nodes. */
  tallyPace(model: string, ln: number, inflight: number): void {
    this.#here(model).tally?.note(ln, inflight);
  }

  #here(model: string): ModelHere {
    if (this.#last?.model === model) return this.#last;
    let here = this.#models.get(model);
    if (here === undefined) {
      here = new ModelHere(model, this);
      this.#models.set(model, here);
    }
    return (this.#last = here);
  }

  /** What it does now is what it does: it is not exiled for being slower than it was. */
  acceptPace(): void {
    this.baselineRate = this.speed(1);
    for (const here of this.#models.values()) here.pace = null;
  }

  /**
   * What was measured a while ago is no proof any more: a node that was slow for a time would be refused everything
   * with a short deadline, and so never show that it has recovered.
   */
  doubtRates(): void {
    this.#overall.doubt();
    this.#firstBytes = new FirstBytes(this.#prior);
    this.#models.clear();
    this.#last = null;
    this.#curves.length = 0;
    this.#soloRates = NO_RATES;
    this.baselineRate = 0;
  }

  /** How much faster than its speed over all models it runs the best of them, as far as that is known; at least 1. O(models). */
  get modelSpread(): number {
    let spread = 1;
    for (const { curve } of this.#models.values())
      if (curve !== null && curve.observations >= SPREAD_MIN_OBSERVATIONS)
        spread = Math.max(spread, curve.perTask(1) / this.#overall.perTask(1));
    return spread;
  }

  #widenSpread(ratio: number): void {
    for (let seat = this.firstSeat; seat !== null; seat = seat.next)
      seat.pool.modelSpread = Math.max(seat.pool.modelSpread, ratio);
  }

  restoreRate(model: string, rate: Rate, observations: number): void {
    if (model === '') this.#overall.restore(rate, observations);
    else if (this.offers.has(model)) {
      const curve = this.#curveOf(model);
      curve.restore(rate, observations);
      this.#noteSoloRate(curve);
    }
  }

  rates(): readonly { readonly model: string; readonly rate: Rate; readonly observations: number }[] {
    const overall = { model: '', rate: this.#overall.perTask(1), observations: this.#overall.observations };
    const rows = [...this.#models.values()].flatMap(({ model, curve }) =>
      curve === null ? [] : [{ model, rate: curve.perTask(1), observations: curve.observations }],
    );
    return [overall, ...rows];
  }

  /** Success rate of the last 20 outcomes times speed against the node's own baseline; 0.8 at most while unverified. */
  get health(): Ratio {
    const pace = this.baselineRate > 0 ? Math.min(1, this.#overall.perTask(1) / this.baselineRate) : 1;
    return this.failures.successRatio * pace * (this.verified ? 1 : 0.8);
  }

  /** Whether its marks let it take new tasks at all. */
  isOpen(now: MonoUs): boolean {
    return !this.cordoned && !this.draining && this.suspectUntil <= now && this.ejectedUntil <= now;
  }

  /** Most tasks at once. A node on trial gets one; a new batching node grows with its successes. */
  slotsMax(config: SchedulerConfig): number {
    if (this.isTrial) return 1;
    const proven = this.#slotsProven(config);
    return this.verified ? proven : Math.min(proven, 1 + this.successes);
  }

  #slotsProven(config: SchedulerConfig): number {
    if (this.slotsStated > 0) return this.slotsStated;
    if (this.slotsLearned > 0) return this.slotsLearned;
    return this.batches ? config.placement.batchSlotsMax : config.placement.slotsDefault;
  }

  hasRoom(now: MonoUs, config: SchedulerConfig): boolean {
    return this.takesNew(now) && this.running.length < this.slotsMax(config);
  }

  /** Whether it has room, by the slots of the last `plan`. */
  hasRoomAsPlanned(now: MonoUs): boolean {
    return this.takesNew(now) && this.running.length < this.slotsNow;
  }

  /** Whether nothing but its slots bounds what it takes. */
  takesNew(now: MonoUs): boolean {
    return this.refusedUntil <= now && this.readingUntil <= now && this.drainLongUntil <= now;
  }

  /** Books a task as running here. */
  start(task: TaskRecord, now: MonoUs): void {
    this.#integrate(now);
    task.inflightUsAtStart = this.inflightUs;
    this.boundUs =
      this.remainingUs(now) + task.workUs - task.savedUs + task.swapUs * this.speed(this.running.length + 1);
    this.progressAt = now;
    this.lastUsedAt = now;
    task.awaitedBeforeUs = this.awaitedUs;
    this.awaitedUs += task.awaitedUs;
    this.noteStarted(task.workUs);
    task.runningIndex = this.running.push(task) - 1;
    if (this.group !== null) this.group.enter(task);
    this.residentModel = task.model;
    this.#plan(now);
  }

  /** The one release of a node's permit. What the others have left is taken as their mean. */
  release(task: TaskRecord, now: MonoUs): void {
    const inflight = this.running.length;
    this.#integrate(now);
    if (!this.#dropRunning(task)) return;
    this.#noLongerAwaits(task);
    if (this.group !== null) this.group.leave(task);
    this.boundUs = (this.#remainingOf(inflight, now) * (inflight - 1)) / inflight;
    this.progressAt = now;
    this.lastDoneAt = now;
    this.noteEnded(now - task.decidedAt);
    this.#plan(now);
  }

  /** Mean number of tasks beside each other, itself included, since the task was started here. */
  meanInflight(task: TaskRecord, now: MonoUs): number {
    const elapsedUs = now - task.decidedAt;
    return elapsedUs <= 0
      ? 1
      : Math.max(1, Math.round((this.inflightUsAt(now) - task.inflightUsAtStart) / elapsedUs));
  }

  /** Integral of its tasks over time, up to this instant. */
  inflightUsAt(now: MonoUs): number {
    return this.inflightUs + this.running.length * (now - this.integratedAt);
  }

  #integrate(now: MonoUs): void {
    this.inflightUs = this.inflightUsAt(now);
    this.integratedAt = now;
  }

  #dropRunning(task: TaskRecord): boolean {
    const index = task.runningIndex;
    if (this.running[index] !== task) return false;
    const last = this.running.pop() as TaskRecord;
    if (last !== task) {
      this.running[index] = last;
      last.runningIndex = index;
    }
    task.runningIndex = -1;
    return true;
  }

  /** Work bound to the node and not yet done, assuming that it progresses at its rate. */
  remainingUs(now: MonoUs): RefUs {
    return this.#remainingOf(this.running.length, now);
  }

  drainUs(now: MonoUs): DurationUs {
    const inflight = Math.max(1, this.running.length);
    return this.remainingUs(now) / (this.speed(inflight) * inflight);
  }

  /** When it should next have room. Past its estimate: after half of the elapsed time more, never "now". O(1). */
  roomAt(now: MonoUs): MonoUs {
    const inflight = this.running.length;
    if (inflight === 0) return Math.max(now, this.refusedUntil);
    if (this.plannedRoomAt > now) return Math.max(this.refusedUntil, this.plannedRoomAt);
    return Math.max(
      this.refusedUntil,
      now + Math.max(1_000, Math.round((now - this.progressAt) / 2 / inflight)),
    );
  }

  /** The same by the law of errors, which tells what a lone task still takes in the mean. O(1). */
  roomByLawAt(now: MonoUs, law: TimeLeftLaw): MonoUs {
    const planned = this.plannedRoomAt;
    if (planned <= now || this.running.length !== 1) return this.roomAt(now);
    const startedAt = this.progressAt;
    const leftUs = timeLeftUs(law, now - startedAt, planned - startedAt);
    return Math.max(this.refusedUntil, now + Math.round(leftUs));
  }

  #plan(now: MonoUs): void {
    const inflight = this.running.length;
    if (inflight === 0) return;
    const drain = this.boundUs / (this.speed(inflight) * inflight);
    this.plannedRoomAt = now + Math.round(drain / inflight);
  }

  #remainingOf(inflight: number, now: MonoUs): RefUs {
    if (inflight === 0) return 0;
    return Math.max(0, this.boundUs - (now - this.progressAt) * this.speed(inflight) * inflight);
  }

  #curveOf(model: string): RateCurve {
    const here = this.#here(model);
    return here.curve ?? here.beginCurve({ rate: this.#overall.perTask(1), span: this.#prior.span });
  }
}

function offersOf(spec: NodeSpec): ReadonlyMap<string, ModelOffer> {
  return new Map(spec.models.map((offer) => [offer.model, offer]));
}

/** Below 1 while a node is new, returned or failing: it is ranked as slower than measured, never planned as slower. */
function rankFactor(node: NodeRecord, config: SchedulerConfig): Rate {
  if (!node.verified) return 1 - UNPROVEN_PENALTY;
  const proven = Math.min(1, node.successes / config.health.slowStartTasks);
  return (
    (1 - UNPROVEN_PENALTY * (1 - proven)) * Math.max(config.placement.healthMin, node.failures.successRatio)
  );
}
