/**
 * Classes and flows: who is served how much, over all lanes that compete.
 *
 * A flow is (class, tenant). Its `served` counter grows by work/weight at each dispatch and is shared by every lane of
 * a domain (lanes that compete for nodes, see fleet.ts), so a tenant that is served in one lane falls behind in all
 * lanes of the domain where it waits at the same time. What it got in a lane while it did not wait in another is not
 * held against it there: see the offsets in lane.ts. What was served elsewhere took nothing from anybody here.
 */
import { ByNumber } from '../../base/by-number.ts';
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { Bytes, ModelId, MonoUs, RefUs, TenantId } from '../../base/units.ts';
import type { ClassConfig } from '../config/types.ts';
import { ClassTally } from '../signals/index.ts';
import type { LaneClass } from './lane.ts';
import type { LaneFlow } from './lane-flow.ts';
import { ArrivalRows, Arrivals, IN_FLOW } from './arrivals.ts';
import { ModelQueue } from './model-queue.ts';
import type { TaskRecord } from './task-record.ts';

const COUNTERS: NumberRows = new NumberRows(2);

/** A flow's numbers. */
const QUEUED_TASKS = 0;
const QUEUED_US = 1;
const QUEUED_BYTES = 2;
const TOLD_US = 3;
const COUNTER = 4;
const FLOWS: NumberRows = new NumberRows(8);

/** A counter's. */
const SERVED = 0;
const CREDIT = 1;

/** A counter of served work over weight. Only grows: what was charged too much is a credit on the next charge. */
export class ServedCounter {
  /** What was served, and the credit. */
  readonly #cells: Float64Array;
  readonly #at: number;

  /** It is given a row of zeros where its owner keeps more numbers beside it. */
  constructor({ cells, at }: NumberRow = COUNTERS.next()) {
    this.#cells = cells;
    this.#at = at;
  }

  get served(): number {
    return this.#cells[this.#at + SERVED] as number;
  }

  charge(work: RefUs, weight: number): void {
    const cells = this.#cells;
    const at = this.#at;
    const due = work / weight;
    const covered = Math.min(due, cells[at + CREDIT] as number);
    cells[at + CREDIT] = (cells[at + CREDIT] as number) - covered;
    cells[at + SERVED] = (cells[at + SERVED] as number) + (due - covered);
  }

  refund(work: RefUs, weight: number): void {
    const at = this.#at + CREDIT;
    this.#cells[at] = (this.#cells[at] as number) + work / weight;
  }
}

/** One counter per domain, made on first use. At most one per model. */
export class ServedCounters {
  readonly #byDomain: ServedCounter[] = [];
  #row: NumberRow | undefined;

  /** The row is for the first one: most have no other. */
  constructor(row?: NumberRow) {
    this.#row = row;
  }

  of(domain: number): ServedCounter {
    return (this.#byDomain[domain] ??= this.#first());
  }

  #first(): ServedCounter {
    const row = this.#row;
    this.#row = undefined;
    return new ServedCounter(row);
  }

  get total(): number {
    return this.#byDomain.reduce((sum, counter) => sum + counter.served, 0);
  }
}

/** How much is queued: the three bounded quantities. */
export interface Holding {
  tasks: number;
  workUs: RefUs;
  bytes: Bytes;
}

export class ClassRecord {
  readonly index: number;
  config: ClassConfig;
  /** Weight after the floor was applied; see `effectiveWeights`. */
  weight: number;
  readonly counters: ServedCounters;
  readonly tally: ClassTally;
  readonly queued: Holding = { tasks: 0, workUs: 0, bytes: 0 };
  readonly flows: Map<TenantId, Flow> = new Map();
  /** Links of the tasks that wait, of all flows and models. */
  readonly arrivals: ArrivalRows = new ArrivalRows();
  /** What waits by model. Emptied when lanes are laid anew, which is when models come and go. */
  readonly models: Map<ModelId, ModelQueue> = new Map();
  readonly #modelsByNumber: ByNumber<ModelQueue> = new ByNumber();
  /**
   * Flows by queued work, those that have none left too; a key may tell of more than is left, see `heaviestFlow`. So most
   * tasks come and go without a change here.
   */
  readonly victims: KeyedHeap<Flow> = new KeyedHeap<Flow>();

  constructor(
    index: number,
    config: ClassConfig,
    weight: number,
    known?: Pick<ClassRecord, 'counters' | 'tally'>,
  ) {
    this.counters = known?.counters ?? new ServedCounters();
    this.tally = known?.tally ?? new ClassTally();
    this.index = index;
    this.config = config;
    this.weight = weight;
  }

  /** `number` is the fleet's for the model, or -1. */
  queueOf(model: ModelId, number: number): ModelQueue {
    const numbered = this.#modelsByNumber.get(number);
    if (numbered !== undefined) return numbered;
    const queue = this.models.get(model) ?? new ModelQueue(this.arrivals);
    this.models.set(model, queue);
    this.#modelsByNumber.set(number, queue);
    return queue;
  }

  forgetModels(): void {
    this.models.clear();
    this.#modelsByNumber.clear();
  }

  /** The flow with most queued work, where the next victim is found. Work that left is accounted for only here. */
  heaviestFlow(): Flow | undefined {
    for (;;) {
      const top = this.victims.peek();
      if (top === undefined) return undefined;
      if (top.queuedTasks === 0) top.leaveVictims();
      else if (this.victims.leastKey === -top.queuedUs) return top;
      else top.tellVictims();
    }
  }
}

export interface FlowOwner {
  readonly tenant: TenantId;
  readonly weight: number;
  /** Unique among all flows. */
  readonly order: number;
  readonly tenantQueued: Holding;
}

/** Its order of arrival is over all lanes: the newest is evicted first. */
export class Flow extends Arrivals {
  readonly classRecord: ClassRecord;
  readonly tenant: TenantId;
  readonly order: number;
  weight: number;
  readonly counters: ServedCounters;
  /** What the tenant has queued in all classes together; shared by its flows. */
  readonly tenantQueued: Holding;
  running = 0;
  /** Until then work of it counts as refused: to a flow that gets less than it asks for, an idle node is pure loss. */
  refusedUntil: MonoUs = 0;
  readonly laneFlows: LaneFlow[] = [];
  #lastLaneFlow: LaneFlow | undefined;
  /** Place among the flows of the class by queued work. */
  readonly slot: HeapSlot<Flow>;
  /** What it has queued, what of it the class was told, and its first counter: all that a task changes as it comes and goes. */
  readonly #cells: Float64Array;
  readonly #at: number;

  constructor(classRecord: ClassRecord, owner: FlowOwner) {
    super(classRecord.arrivals, IN_FLOW);
    const { cells, at } = FLOWS.next();
    this.#cells = cells;
    this.#at = at;
    this.counters = new ServedCounters({ cells, at: at + COUNTER });
    this.classRecord = classRecord;
    this.tenant = owner.tenant;
    this.weight = owner.weight;
    this.order = owner.order;
    this.tenantQueued = owner.tenantQueued;
    this.slot = new HeapSlot<Flow>(this, owner.order);
  }

  get queuedTasks(): number {
    return this.#cells[this.#at + QUEUED_TASKS] as number;
  }

  get queuedUs(): RefUs {
    return this.#cells[this.#at + QUEUED_US] as number;
  }

  /** All of it together, as it is now. */
  get queued(): Holding {
    const bytes = this.#cells[this.#at + QUEUED_BYTES] as number;
    return { tasks: this.queuedTasks, workUs: this.queuedUs, bytes };
  }

  /** Books a task as queued. O(log flows), O(1) while the flow has had as much queued before. */
  enter(task: TaskRecord): void {
    this.classRecord.arrivals.enter(task);
    this.link(task);
    this.#book(task, 1);
    book(this.classRecord.queued, task, 1);
    book(this.tenantQueued, task, 1);
    this.classRecord.queueOf(task.model, task.modelNumber).enter(task);
    // What was told is at hand, beside the rest; the place in the heap is not.
    if (this.queuedUs > (this.#cells[this.#at + TOLD_US] as number)) this.tellVictims();
  }

  /** Tells its class how much it has queued now. O(log flows). */
  tellVictims(): void {
    const { victims } = this.classRecord;
    const { queuedUs } = this;
    this.#cells[this.#at + TOLD_US] = queuedUs;
    if (this.slot.isInHeap) victims.update(this.slot, -queuedUs);
    else victims.push(this.slot, -queuedUs);
  }

  /** A flow without queued tasks is none to take one from. */
  leaveVictims(): void {
    this.#cells[this.#at + TOLD_US] = 0;
    if (this.slot.isInHeap) this.classRecord.victims.remove(this.slot);
  }

  #book(task: TaskRecord, sign: 1 | -1): void {
    const cells = this.#cells;
    const at = this.#at;
    cells[at + QUEUED_TASKS] = (cells[at + QUEUED_TASKS] as number) + sign;
    cells[at + QUEUED_US] = (cells[at + QUEUED_US] as number) + sign * task.workUs;
    cells[at + QUEUED_BYTES] = (cells[at + QUEUED_BYTES] as number) + sign * task.bytes;
  }

  /** Books a task as no longer queued. O(1). */
  leave(task: TaskRecord): void {
    this.unlink(task);
    this.#book(task, -1);
    book(this.classRecord.queued, task, -1);
    book(this.tenantQueued, task, -1);
    task.modelQueue?.leave(task);
    this.classRecord.arrivals.leave(task);
  }

  /** Its place in a lane, or undefined where it never waited. O(lanes that it waited in), one step for the last asked. */
  laneFlowIn(laneClass: LaneClass): LaneFlow | undefined {
    if (this.#lastLaneFlow?.laneClass === laneClass) return this.#lastLaneFlow;
    const { laneFlows } = this;
    for (let index = 0; index < laneFlows.length; index++) {
      const laneFlow = laneFlows[index] as LaneFlow;
      if (laneFlow.laneClass === laneClass) return (this.#lastLaneFlow = laneFlow);
    }
    return undefined;
  }

  /** The lanes are gone; the counters stay. */
  forgetLanes(): void {
    this.laneFlows.length = 0;
    this.#lastLaneFlow = undefined;
  }

  get isIdle(): boolean {
    return this.queuedTasks === 0 && this.running === 0;
  }
}

function book(holding: Holding, task: TaskRecord, sign: 1 | -1): void {
  holding.tasks += sign;
  holding.workUs += sign * task.workUs;
  holding.bytes += sign * task.bytes;
}

/**
 * Weights under which each class gets at least `shareMin` while all are backlogged: classes below their floor are
 * raised to it, and the rest share what is left in proportion to their weights.
 */
export function effectiveWeights(classes: readonly ClassConfig[]): readonly number[] {
  const raised = new Set<number>();
  for (;;) {
    const floorSum = classes.reduce((sum, c, i) => sum + (raised.has(i) ? c.shareMin : 0), 0);
    const weightSum = classes.reduce((sum, c, i) => sum + (raised.has(i) ? 0 : c.weight), 0);
    const shares = classes.map((c, i) =>
      raised.has(i) ? c.shareMin : (c.weight / weightSum) * (1 - floorSum),
    );
    const below = classes.findIndex((c, i) => !raised.has(i) && (shares[i] as number) < c.shareMin);
    if (below === -1) return shares;
    raised.add(below);
  }
}
