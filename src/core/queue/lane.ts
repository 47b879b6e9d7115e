/**
 * A lane: the queue of tasks that the same nodes can serve. Order: class, then tenant, both by start-time fair
 * queueing over work; then earliest deadline inside the flow (Goyal, Vin, Chen 1996; counters as in VTC, OSDI'24).
 *
 * Tags. A flow's tag in a lane is `served + offset`. The counter is shared by the lanes of a domain; the offset is fixed
 * when the flow becomes backlogged *here*: its tag is then the greater of its last tag and the least tag of those
 * backlogged here. So nobody hoards credit while idle, a light class never waits behind a backlog, and a lane that
 * no node serves cannot hold everybody's clock back. Without a backlog the floor is the greatest tag ever served.
 *
 * Tags only grow until a scan ends, so heap keys may be stale-low and are refreshed at the top.
 * Complexity: push, take, remove O(log flows) + O(log tasks of the flow); scanning holds nothing out of place.
 */
import { KeyedHeap } from '../../base/keyed-heap.ts';
import type { MonoUs, Rate, RefUs } from '../../base/units.ts';
import type { LaneDrain } from '../overload/evidence.ts';
import type { ModelLadder } from '../overload/model-ladder.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import type { Pool } from '../placement/pool.ts';
import { DeadlineRows } from './deadline-heap.ts';
import type { ClassRecord, Flow, ServedCounter } from './flow.ts';
import { LaneFlow, type Octave } from './lane-flow.ts';
import type { TaskRecord } from './task-record.ts';

export class LaneClass {
  readonly classRecord: ClassRecord;
  readonly domain: number;
  readonly counter: ServedCounter;
  /** Backlogged flows by tag. */
  readonly flows: KeyedHeap<LaneFlow> = new KeyedHeap<LaneFlow>();
  tasks = 0;
  workUs: RefUs = 0;
  lastTag = 0;
  offset = 0;
  scanned = 0;
  /** Greatest tag of a flow served here: where everybody starts after an idle time. */
  ceiling = 0;
  /** Sum of the weights of backlogged flows. */
  activeWeight = 0;

  constructor(classRecord: ClassRecord, domain: number) {
    this.classRecord = classRecord;
    this.domain = domain;
    this.counter = classRecord.counters.of(domain);
  }

  get tag(): number {
    return this.counter.served + this.offset + this.scanned;
  }

  /** The backlogged flow with the least tag; its key is fresh. */
  leastFlow(): LaneFlow | undefined {
    for (;;) {
      const key = this.flows.leastKey;
      if (key === Number.POSITIVE_INFINITY) return undefined;
      const top = this.flows.peek() as LaneFlow;
      const tag = top.isSpent ? Number.POSITIVE_INFINITY : top.tag;
      if (tag <= key) return top;
      this.flows.update(top.slot, tag);
    }
  }
}

export interface LaneOptions {
  /** The only model of its tasks. */
  readonly model?: string;
  /** Loading another model takes a node's time. */
  readonly loadsModels?: boolean;
}

export class Lane {
  readonly key: string;
  readonly pools: readonly Pool[];
  readonly classes: readonly LaneClass[];
  /** The only model of its tasks where node groups have shares of models; else ''. */
  readonly model: string;
  /** Whether some of its nodes are of a group, so that not every task may take every node. */
  readonly hasGroups: boolean;
  /** Whether its nodes load models for their tasks: then tasks of different models do not wait for the same node. */
  readonly loadsModels: boolean;
  /** Its pools came or went: nothing is laid into it any more. */
  isGone = false;
  tasks = 0;
  workUs: RefUs = 0;
  /** Fairness between lanes that share a node: served work over the weight of the classes waiting. */
  laneTag = 0;
  /**
   * Nodes of the group, or of none, that are no faster than this and have no fewer prompts to compute first were declined by those
   * who wait, and need not be offered before that instant. Whom a share keeps from the group was not asked, and may take a node outside of it.
   */
  declinedRate: Rate = 0;
  declinedAwaitedUs: RefUs = 0;
  declinedGroup: NodeGroup | null = null;
  declinedUntil: MonoUs = 0;
  /** Unless more waits than this: then a longer loss can be afforded. */
  declinedWorkUs: RefUs = 0;
  /** Waiting tasks that reserve a busy node. */
  reservations = 0;
  /** Until then the lane counts as saturated: it refused work for queueing a moment ago. */
  saturatedUntil: MonoUs = 0;
  /** Until then it counts as crowded: it refused work, or had it wait for too long, a moment ago. */
  crowdedUntil: MonoUs = 0;
  /** Tasks that left it for a node. */
  dispatches = 0;
  /** The overload ladder of the model that was laid here last; see overload/ladder.ts. */
  ladder: ModelLadder | null = null;
  /** What its queues were at the last sample. */
  drain: LaneDrain | null = null;
  #ceiling = 0;
  /** Sum of the weights of the classes that wait here. */
  #waitingWeight = 0;
  /** Links of the tasks that wait here. */
  readonly rows: DeadlineRows = new DeadlineRows();
  /** Flows that the scan has stepped over: the first so many. */
  readonly #touched: LaneFlow[] = [];
  #touchedFlows = 0;

  constructor(key: string, pools: readonly Pool[], classes: readonly ClassRecord[], of: LaneOptions = {}) {
    this.model = of.model ?? '';
    this.loadsModels = of.loadsModels === true;
    this.hasGroups = pools.some((pool) => pool.group !== null);
    const domain = pools[0]?.domain ?? 0;
    this.key = key;
    this.pools = pools;
    this.classes = classes.map((classRecord) => new LaneClass(classRecord, domain));
  }

  /** Adds a task to its flow. The flow's own books (`Flow.enter`) are the caller's. */
  push(task: TaskRecord): void {
    const laneClass = this.classes[task.flow.classRecord.index] as LaneClass;
    const laneFlow = this.#laneFlow(task.flow, laneClass);
    if (laneClass.tasks === 0) this.#activateClass(laneClass);
    if (laneFlow.tasks === 0) activateFlow(laneFlow, laneClass);
    laneFlow.add(task);
    task.lane = this;
    task.laneFlow = laneFlow;
    this.#count(laneFlow, task, 1);
    if (laneClass.tasks === 1) this.#weigh();
    if (this.tasks === 1) this.#activate();
  }

  /** Takes a task out: dispatched, cancelled, evicted or expired. */
  remove(task: TaskRecord): void {
    const laneFlow = task.laneFlow as LaneFlow;
    const laneClass = laneFlow.laneClass;
    laneFlow.remove(task);
    task.lane = null;
    task.laneFlow = null;
    this.#count(laneFlow, task, -1);
    if (laneFlow.tasks === 0) {
      laneFlow.lastTag = laneFlow.tag - laneFlow.scanned;
      laneClass.flows.remove(laneFlow.slot);
      laneClass.activeWeight -= laneFlow.flow.weight;
    }
    if (laneClass.tasks === 0) {
      laneClass.lastTag = laneClass.tag - laneClass.scanned;
      laneClass.activeWeight = 0;
      this.#weigh();
    }
    if (this.tasks === 0) for (const pool of this.pools) pool.backloggedLanes -= 1;
  }

  /** Charges a dispatch to class, flow and lane. Call before `remove`, so that the last tag includes it. */
  charge(task: TaskRecord): void {
    const laneFlow = task.laneFlow as LaneFlow;
    const laneClass = laneFlow.laneClass;
    const { flow } = laneFlow;
    this.dispatches += 1;
    this.laneTag += task.workUs / this.#waitingWeight;
    laneClass.counter.charge(task.workUs, laneClass.classRecord.weight);
    laneFlow.counter.charge(task.workUs, flow.weight);
    task.classCounter = laneClass.counter;
    task.flowCounter = laneFlow.counter;
    laneClass.ceiling = Math.max(laneClass.ceiling, laneFlow.tag - laneFlow.scanned);
    this.#ceiling = Math.max(this.#ceiling, laneClass.tag - laneClass.scanned);
    task.chargedUs = task.workUs;
  }

  /**
   * The next task in fair order that the current scan has not held, or null. Of one flow the most urgent: by its deadline; while nobody
   * is turned away, larger tasks before smaller ones that came a little sooner.
   */
  next(now: MonoUs): TaskRecord | null {
    let best: LaneFlow | null = null;
    let bestTag = Number.POSITIVE_INFINITY;
    for (const laneClass of this.classes) {
      if (laneClass.tasks === 0) continue;
      const { tag } = laneClass;
      if (tag < bestTag) {
        const laneFlow = laneClass.leastFlow();
        if (laneFlow === undefined) continue;
        best = laneFlow;
        bestTag = tag;
      }
    }
    return best === null ? null : best.head(this.crowdedUntil <= now);
  }

  /**
   * Steps over a task for the rest of this scan: who is next is decided as if it had been served, and its size
   * octave of this flow is closed, since what is as big would wait too.
   */
  hold(task: TaskRecord): void {
    const laneFlow = task.laneFlow as LaneFlow;
    const { flow, laneClass } = laneFlow;
    this.#touch(laneFlow);
    laneFlow.close(task.octave as Octave);
    laneFlow.scanned += task.workUs / flow.weight;
    laneClass.scanned += task.workUs / laneClass.classRecord.weight;
  }

  /** Steps over all that the task's flow has here, for the rest of this scan, without counting it as served. */
  holdFlow(task: TaskRecord): void {
    const laneFlow = task.laneFlow as LaneFlow;
    this.#touch(laneFlow);
    laneFlow.setClosed(true);
  }

  #touch(laneFlow: LaneFlow): void {
    if (laneFlow.isTouched) return;
    laneFlow.isTouched = true;
    this.#touched[this.#touchedFlows++] = laneFlow;
  }

  /** The first task of a flow that the current scan has not held, or null. */
  headOf(flow: Flow): TaskRecord | null {
    const laneClass = this.classes[flow.classRecord.index];
    for (const laneFlow of flow.laneFlows) if (laneFlow.laneClass === laneClass) return laneFlow.head();
    return null;
  }

  /** Ends a scan: what was held counts as waiting again. */
  endScan(): void {
    for (let index = 0; index < this.#touchedFlows; index++) {
      const laneFlow = this.#touched[index] as LaneFlow;
      laneFlow.scanned = 0;
      laneFlow.isTouched = false;
      laneFlow.setClosed(false);
      laneFlow.laneClass.scanned = 0;
      if (laneFlow.slot.isInHeap) laneFlow.laneClass.flows.update(laneFlow.slot, laneFlow.tag);
    }
    this.#touchedFlows = 0;
  }

  /** Share of the lane that a flow gets while all who wait now go on waiting; the flow itself counts as waiting. */
  shareOf(flow: Flow): number {
    const own = this.classes[flow.classRecord.index] as LaneClass;
    const laneFlow = flow.laneFlowIn(own);
    const isFlowWaiting = laneFlow !== undefined && laneFlow.tasks > 0;
    const classWeight = this.#waitingWeight + (own.tasks === 0 ? own.classRecord.weight : 0);
    const flowWeight = own.activeWeight + (isFlowWaiting ? 0 : flow.weight);
    return (own.classRecord.weight / classWeight) * (flow.weight / flowWeight);
  }

  /** Sums the weights of what waits anew, after a configuration changed them. O(flows that wait). */
  reweigh(): void {
    this.#weigh();
    for (const laneClass of this.classes) {
      laneClass.activeWeight = 0;
      for (const laneFlow of laneClass.flows) laneClass.activeWeight += laneFlow.flow.weight;
    }
  }

  /** Work that the flow has waiting in this lane. */
  queuedUsOf(flow: Flow): RefUs {
    const laneFlow = this.flowHere(flow);
    // Not by `??`, for which the engine would box the number.
    return laneFlow === undefined ? 0 : laneFlow.workUs;
  }

  /** The flow's part in this lane, once it has had one. */
  flowHere(flow: Flow): LaneFlow | undefined {
    return flow.laneFlowIn(this.classes[flow.classRecord.index] as LaneClass);
  }

  #laneFlow(flow: Flow, laneClass: LaneClass): LaneFlow {
    const known = flow.laneFlowIn(laneClass);
    if (known !== undefined) return known;
    const laneFlow = new LaneFlow(flow, laneClass, this);
    flow.laneFlows.push(laneFlow);
    return laneFlow;
  }

  #activate(): void {
    let floor = Number.POSITIVE_INFINITY;
    for (const pool of this.pools) {
      for (const other of pool.lanes)
        if (other !== this && other.tasks > 0) floor = Math.min(floor, other.laneTag);
      pool.backloggedLanes += 1;
    }
    if (floor !== Number.POSITIVE_INFINITY) this.laneTag = Math.max(this.laneTag, floor);
  }

  #activateClass(laneClass: LaneClass): void {
    let floor = Number.POSITIVE_INFINITY;
    for (const other of this.classes) if (other.tasks > 0) floor = Math.min(floor, other.tag);
    if (floor === Number.POSITIVE_INFINITY) floor = this.#ceiling;
    laneClass.offset = Math.max(laneClass.lastTag, floor) - laneClass.counter.served;
  }

  #weigh(): void {
    this.#waitingWeight = 0;
    for (const { tasks, classRecord } of this.classes)
      if (tasks > 0) this.#waitingWeight += classRecord.weight;
  }

  #count(laneFlow: LaneFlow, task: TaskRecord, sign: 1 | -1): void {
    const work = sign * task.workUs;
    laneFlow.tasks += sign;
    laneFlow.workUs += work;
    laneFlow.laneClass.tasks += sign;
    laneFlow.laneClass.workUs += work;
    this.tasks += sign;
    this.workUs += work;
  }
}

function activateFlow(laneFlow: LaneFlow, laneClass: LaneClass): void {
  const least = laneClass.leastFlow();
  const floor = least === undefined ? laneClass.ceiling : least.tag;
  const tag = Math.max(laneFlow.lastTag, floor);
  laneFlow.offset = tag - laneFlow.counter.served;
  laneFlow.isSpent = false;
  laneClass.flows.push(laneFlow.slot, tag);
  laneClass.activeWeight += laneFlow.flow.weight;
}
