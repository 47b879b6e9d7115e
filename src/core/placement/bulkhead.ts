/**
 * Bulkheads: a node group with shares, so that what one model or tenant does to its nodes stays there.
 *
 * A node is of the first configured group that names its id or whose labels it all has. Over the slots of the group's
 * open nodes, at this moment:
 *
 *   max   a holder takes no slot while it holds floor(max x slots), at least one.
 *   min   floor(min x slots) belong to the holder. What of it is unused stays free: nobody else takes a slot unless
 *         `free - 1 >= sum of the unused minimums` (`kept`). It is never lent: tasks do not give a slot back before they end,
 *         so a lent slot is missing for one service time, which may be minutes.
 *   reservedFor   the group takes nobody else at all; see `Fleet.laneFor`.
 *
 * A holder below its minimum always may take a free slot. A task can count for two holders, its model and its tenant.
 * What runs on a node that was closed since goes on counting for its holder: hanging is what shares are for.
 * `free` are the slots of nodes with room; of an engine that says it is full none are. What is kept free is kept
 * somewhere in the group, so its nodes should serve the same models.
 *
 * Books: `enter` and `leave` follow a node's permits (NodeRecord.start and release), `count` follows its place in the
 * index, `adopt` and `abandon` follow the node itself. All O(1) but for changes of the number of slots: O(shares).
 */
import type { MonoUs, Ratio } from '../../base/units.ts';
import type { Gates } from '../admission/gates.ts';
import type { GroupConfig, SchedulerConfig, ShareConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { NodeSpec } from '../scheduler/events.ts';
import type { Pool } from './pool.ts';

/** Shares times slots, such as 0.29 x 100, must not fall below a whole number by rounding. */
const ROUNDING = 1e-9;

/** One model's or tenant's share of a group. */
export class Share {
  readonly config: ShareConfig;
  held = 0;
  /** Of the slots that there are now: kept for the holder, and the most it may hold. */
  slotsMin = 0;
  slotsMax = 1;

  constructor(config: ShareConfig) {
    this.config = config;
  }

  get unused(): number {
    return Math.max(0, this.slotsMin - this.held);
  }

  get isAtMost(): boolean {
    return this.held >= this.slotsMax;
  }

  resize(slots: number): void {
    this.slotsMin = Math.floor(this.config.min * slots + ROUNDING);
    this.slotsMax = Math.max(1, Math.floor(this.config.max * slots + ROUNDING));
  }
}

/** A node as it will be. */
export interface NodeThen {
  readonly slots: number;
  readonly running: readonly TaskRecord[];
}

export class NodeGroup {
  readonly config: GroupConfig;
  readonly pools: Set<Pool> = new Set();
  readonly shares: readonly Share[];
  /** Whether lanes have to be kept apart by model, so that a share closes whole lanes. */
  readonly hasModelShares: boolean;
  /** Slots of open nodes, those of them that a task could take now, and those kept for their holders. */
  slots = 0;
  free = 0;
  kept = 0;
  /** Set when somebody who was kept out may have a place now; whoever dispatches takes it back. */
  hasOpened = false;
  /** Whether there was a slot for who has no claim, when a node was last counted. */
  #hadSpare = true;
  readonly #gates: Gates;
  readonly #minimums: Ratio;
  readonly #byModel: ReadonlyMap<string, Share>;
  readonly #byTenant: ReadonlyMap<string, Share>;

  constructor(config: GroupConfig, gates: Gates) {
    this.config = config;
    this.#gates = gates;
    this.shares = config.shares.map((share) => new Share(share));
    this.#byModel = byName(this.shares, 'model');
    this.#byTenant = byName(this.shares, 'tenant');
    this.#minimums = this.shares.reduce((sum, share) => sum + share.config.min, 0);
    this.hasModelShares = this.#byModel.size > 0;
  }

  /** Whether the group is for this model and tenant at all. In shadow it is. */
  isFor(model: string, tenant: string): boolean {
    return this.#isReservedFor(model, tenant) || !this.#gates.isOn('bulkhead');
  }

  /** Whether somebody without a claim may take a slot, as far as minimums go; tasks of a model with one always may. */
  hasSpareFor(model: string): boolean {
    return this.#hasSpare || (this.#byModel.get(model)?.unused ?? 0) > 0 || !this.#gates.isOn('bulkhead');
  }

  /**
   * Whether the task is kept from taking a slot here now. Counted for the gate once per task, where a slot is free.
   * Two look-ups.
   */
  shutsOut(task: TaskRecord): boolean {
    if (this.mayTake(task)) return false;
    if (task.wasShutOut || this.free <= 0) return this.#gates.isOn('bulkhead');
    task.wasShutOut = true;
    return this.#gates.refuses('bulkhead');
  }

  /** Most of the group's capacity that the tenant's tasks with the model can get, while the others claim theirs. */
  partFor(model: string, tenant: string): Ratio {
    const ofModel = this.#byModel.get(model)?.config;
    const ofTenant = this.#byTenant.get(tenant)?.config;
    const own = (ofModel?.min ?? 0) + (ofTenant?.min ?? 0);
    return Math.min(ofModel?.max ?? 1, ofTenant?.max ?? 1, 1 - this.#minimums + own);
  }

  /** Whether shares keep a place that is free now from this model and tenant. In shadow they keep none. */
  isKeptFrom(model: string, tenant: string): boolean {
    return this.#gates.isOn('bulkhead') && !this.#leaves(model, tenant);
  }

  /** The rule alone. */
  mayTake({ spec: { model, tenant } }: TaskRecord): boolean {
    return this.#leaves(model, tenant);
  }

  #leaves(model: string, tenant: string): boolean {
    const ofModel = this.#byModel.get(model);
    const ofTenant = this.#byTenant.get(tenant);
    if (ofModel?.isAtMost === true || ofTenant?.isAtMost === true) return false;
    const hasClaim = (ofModel?.unused ?? 0) > 0 || (ofTenant?.unused ?? 0) > 0;
    return (hasClaim || this.#hasSpare) && this.#isReservedFor(model, tenant);
  }

  /** Whether the task may take the slot that another one would leave: the rule as it will be then. */
  mayTakePlaceOf(task: TaskRecord, other: TaskRecord): boolean {
    if (!this.#gates.isOn('bulkhead')) return true;
    if (!this.#isReservedFor(task.model, task.spec.tenant)) return false;
    const left = this.#sharesOf(other);
    let hasClaim = false;
    for (const share of this.#sharesOf(task)) {
      const held = left.includes(share) ? share.held - 1 : share.held;
      if (held >= share.slotsMax) return false;
      if (held < share.slotsMin) hasClaim = true;
    }
    const kept = this.kept + left.filter(({ held, slotsMin }) => held <= slotsMin).length;
    return hasClaim || kept === 0 || this.free + 1 > kept;
  }

  /** Whether the task may take a slot of the node once that is open beside what runs there: the rule as it will be then. */
  mayTakeOnceOpen(task: TaskRecord, node: NodeRecord, then: NodeThen): boolean {
    if (!this.#gates.isOn('bulkhead')) return true;
    if (!this.#isReservedFor(task.model, task.spec.tenant)) return false;
    const slots = this.slots - node.groupSlots + then.slots;
    const free = this.free - node.groupFree + Math.max(0, then.slots - then.running.length);
    const ended = node.running.filter((other) => !then.running.includes(other));
    let hasClaim = false;
    let kept = 0;
    for (const { config, held } of this.shares) {
      const share = new Share(config);
      share.resize(slots);
      share.held = held - ended.filter((other) => isOf(share, other)).length;
      kept += share.unused;
      if (!isOf(share, task)) continue;
      if (share.isAtMost) return false;
      hasClaim ||= share.unused > 0;
    }
    return hasClaim || kept === 0 || free > kept;
  }

  /** Why the task may not take a slot, for people; null when it may. */
  explain(task: TaskRecord): string | null {
    if (this.mayTake(task)) return null;
    const { model, tenant } = task.spec;
    const { name } = this.config;
    if (!this.#isReservedFor(model, tenant)) return `Group ${name} is reserved to others`;
    for (const { config, held, isAtMost, slotsMax } of this.#sharesOf(task)) {
      if (isAtMost)
        return `Group ${name}: ${config.holder} ${config.name} holds ${held} of its at most ${slotsMax} of ${this.slots} slots`;
    }
    return `Group ${name}: the ${this.free} free of ${this.slots} slots are kept for the minimums of others`;
  }

  /** A task got a permit of one of its nodes. */
  enter(task: TaskRecord): void {
    for (const share of this.#sharesOf(task)) {
      if (share.unused > 0) this.kept -= 1;
      share.held += 1;
    }
  }

  /** A permit came back: its holder may be below its most, or have a claim again. */
  leave(task: TaskRecord): void {
    for (const share of this.#sharesOf(task)) {
      const wasAtMost = share.isAtMost;
      share.held -= 1;
      if (share.unused > 0) this.kept += 1;
      if (wasAtMost || share.unused > 0) this.hasOpened = true;
    }
  }

  /** What a node has to offer changed. */
  count(node: NodeRecord, now: MonoUs, config: SchedulerConfig): void {
    const isOpen = node.isOpen(now);
    const slots = isOpen ? node.slotsMax(config) : 0;
    const free = isOpen && node.hasRoom(now, config) ? slots - node.running.length : 0;
    this.#offer(node, slots, free);
  }

  /** A node became one of the group, with what it runs. Its slots count when it is placed. */
  adopt(node: NodeRecord): void {
    node.group = this;
    for (const task of node.running) this.enter(task);
  }

  /** A node is no longer one of the group: with its slots goes what it runs. */
  abandon(node: NodeRecord): void {
    for (const task of node.running) this.leave(task);
    this.#offer(node, 0, 0);
    node.group = null;
  }

  #offer(node: NodeRecord, slots: number, free: number): void {
    this.free += free - node.groupFree;
    node.groupFree = free;
    if (slots !== node.groupSlots) {
      this.slots += slots - node.groupSlots;
      node.groupSlots = slots;
      this.#resize();
      this.hasOpened = true;
    }
    if (this.#hasSpare && !this.#hadSpare) this.hasOpened = true;
    this.#hadSpare = this.#hasSpare;
  }

  get #hasSpare(): boolean {
    return this.kept === 0 || this.free > this.kept;
  }

  #resize(): void {
    this.kept = 0;
    for (const share of this.shares) {
      share.resize(this.slots);
      this.kept += share.unused;
    }
  }

  #sharesOf({ spec: { model, tenant } }: TaskRecord): readonly Share[] {
    const ofModel = this.#byModel.get(model);
    const ofTenant = this.#byTenant.get(tenant);
    if (ofModel === undefined) return ofTenant === undefined ? NO_SHARES : [ofTenant];
    return ofTenant === undefined ? [ofModel] : [ofModel, ofTenant];
  }

  #isReservedFor(model: string, tenant: string): boolean {
    const { models, tenants } = this.config.reservedFor;
    return (
      (models.length === 0 || models.includes(model)) && (tenants.length === 0 || tenants.includes(tenant))
    );
  }
}

function isOf({ config: { holder, name } }: Share, { spec }: TaskRecord): boolean {
  return spec[holder] === name;
}

const NO_SHARES: readonly Share[] = Object.freeze([]);

function byName(shares: readonly Share[], holder: ShareConfig['holder']): ReadonlyMap<string, Share> {
  return new Map(
    shares.filter(({ config }) => config.holder === holder).map((share) => [share.config.name, share]),
  );
}

/** The groups of a configuration; none while the gate is off. */
export function groupsOf(config: SchedulerConfig, gates: Gates): readonly NodeGroup[] {
  return gates.isWatching('bulkhead') ? config.groups.map((group) => new NodeGroup(group, gates)) : [];
}

/** Whether two configurations group nodes and share them out alike. */
export function isGroupedAlike(before: SchedulerConfig, after: SchedulerConfig): boolean {
  return (
    before.gates.bulkhead === after.gates.bulkhead &&
    JSON.stringify(before.groups) === JSON.stringify(after.groups)
  );
}

/** The first group that names the node or whose labels it all has. O(groups x labels), only when a node registers. */
export function groupFor(groups: readonly NodeGroup[], { id, labels }: NodeSpec): NodeGroup | null {
  for (const group of groups) {
    const { nodes } = group.config;
    if (nodes.ids.includes(id)) return group;
    const wanted = Object.entries(nodes.labels);
    if (wanted.length > 0 && wanted.every(([name, value]) => labels[name] === value)) return group;
  }
  return null;
}
