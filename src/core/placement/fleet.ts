/**
 * The fleet as the scheduler holds it: nodes, the pools they sit in, the models they offer and the lanes that follow.
 *
 * A node with few models sits in one pool per model; a node with many sits in a single pool shared by all nodes of
 * the same offer. So a completion touches few pools, and a volunteer network with arbitrary model lists still gets
 * one pool per model. Lanes are identified by the set of pools that can serve: tasks that the same nodes can serve.
 *
 * Pools that a lane or a node connects are one domain: only there does service to one take something from another, so
 * shares are counted per domain. Without it, a class that keeps a node of its own busy would be starved elsewhere.
 */
import type { MonoUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { RefusalLedger } from '../ledgers/refusals.ts';
import type { ClassRecord } from '../queue/flow.ts';
import { Lane } from '../queue/lane.ts';
import type { ModelOffer, Needs } from '../request/needs.ts';
import type { NodeSpec } from '../scheduler/events.ts';
import type { IneligibleReason } from '../scheduler/views.ts';
import { groupFor, type NodeGroup } from './bulkhead.ts';
import { asksNothing, isShutFor, missingNeed } from './eligibility.ts';
import { Pool, type Seat } from './pool.ts';
import type { PrefixIndex } from './prefix-index.ts';

/** Up to here a node sits in a pool per model. */
const MODELS_PER_NODE_MAX = 8;
/** Models with a number: as many as have learned work. Those beyond it cost a look-up per node. */
export const NUMBERED_MODELS_MAX = 10_000;

interface ModelPools {
  /** See `Fleet.modelNumber`. */
  readonly number: number;
  readonly pools: Pool[];
  /** The lane of tasks that every pool of the model can serve; made on first use. */
  plain: Lane | null;
  /** Whether some of them are of a node group: only asked while there is a plain lane. */
  hasGroups: boolean;
  /** Whether one of its nodes keeps prompts, as of so many changes of the index; -1 before it was asked. */
  keepsPrompts: boolean;
  keepsAsOf: number;
}

export class Fleet {
  readonly nodes: Map<string, NodeRecord> = new Map();
  readonly lanes: Map<string, Lane> = new Map();
  /** Lays what nodes have free over what was refused. */
  readonly refusals: RefusalLedger = new RefusalLedger();
  /** Set when lanes no longer match the pools: queued tasks must be laid anew. */
  lanesAreStale = false;
  #loadsModels = false;
  readonly #pools: Map<string, Pool> = new Map();
  readonly #models: Map<string, ModelPools> = new Map();
  readonly #numbers: Map<string, number> = new Map();
  /** The model whose number was asked for last. */
  #lastModel: string | null = null;
  #lastNumber = -1;
  #classes: readonly ClassRecord[];
  #poolOrder = 0;
  #domainsAreStale = false;
  #groups: readonly NodeGroup[] = [];

  constructor(classes: readonly ClassRecord[]) {
    this.#classes = classes;
  }

  models(): readonly string[] {
    return [...this.#models.keys()].sort();
  }

  /** Whether a node of the model keeps prompts. Asked for each request: O(1), O(nodes) after one of them changed. */
  keepsPrompts(model: string, prefixes: PrefixIndex<NodeRecord>): boolean {
    const entry = this.#models.get(model);
    if (entry === undefined) return false;
    if (entry.keepsAsOf !== prefixes.changes) {
      entry.keepsAsOf = prefixes.changes;
      entry.keepsPrompts = prefixes.someOwner(({ offers }) => offers.has(model));
    }
    return entry.keepsPrompts;
  }

  hasModel(model: string): boolean {
    return this.#models.has(model);
  }

  /**
   * A small number for a name, the same for ever: what is looked up for many nodes is found by it. -1 for names beyond the
   * bound, which are looked up by name.
   */
  modelNumber(model: string): number {
    if (model === this.#lastModel) return this.#lastNumber;
    let number = this.#numbers.get(model) ?? -1;
    if (number < 0 && this.#numbers.size < NUMBERED_MODELS_MAX) {
      number = this.#numbers.size;
      this.#numbers.set(model, number);
    }
    this.#lastModel = model;
    this.#lastNumber = number;
    return number;
  }

  /** Seats of nodes that could take the model now, busy or not. O(pools of the model). */
  openSeats(model: string): number {
    let open = 0;
    for (const pool of this.#models.get(model)?.pools ?? []) open += pool.openSeats;
    return open;
  }

  /** Lanes in which nothing but the model waits; it may wait in lanes of nodes with many models as well. */
  *lanesOf(model: string): IterableIterator<Lane> {
    for (const pool of this.#models.get(model)?.pools ?? []) {
      if (pool.soleModel !== null) yield* pool.lanes;
    }
  }

  /** Whether loading another model takes a node's time. */
  setLoading(loadsModels: boolean): void {
    if (this.#loadsModels === loadsModels) return;
    this.#loadsModels = loadsModels;
    if (this.lanes.size > 0) this.lanesAreStale = true;
  }

  /** Node groups with shares; empty when none is configured. */
  get groups(): readonly NodeGroup[] {
    return this.#groups;
  }

  /** Takes over other groups: nodes of an old or a new one are seated anew. The caller places all nodes. */
  regroup(groups: readonly NodeGroup[]): void {
    this.#groups = groups;
    const moved = [...this.nodes.values()].filter(({ group, spec }) => group !== groupFor(groups, spec));
    for (const node of moved) this.unseat(node);
    for (const node of moved) this.seat(node);
  }

  groupFor(spec: NodeSpec): NodeGroup | null {
    return this.#groups.length === 0 ? null : groupFor(this.#groups, spec);
  }

  /** Seats a node in the pools of its offers. The caller places the seats. */
  seat(node: NodeRecord): void {
    this.groupFor(node.spec)?.adopt(node);
    const models = [...node.offers.keys()].sort();
    const groups = models.length > MODELS_PER_NODE_MAX ? [models] : models.map((model) => [model]);
    const seats = groups.map((group) => this.#poolFor(node, group).join(node));
    for (const [index, seat] of seats.entries()) seat.next = seats[index + 1] ?? null;
    const first = seats[0] ?? null;
    node.firstSeat = first;
    if (seats.some(({ pool }) => pool.domain !== first?.pool.domain)) this.#connect();
    this.nodes.set(node.spec.id, node);
  }

  /** Takes a node out of its pools; pools without nodes go. */
  unseat(node: NodeRecord): void {
    for (const seat of node.seats) {
      seat.pool.leave(seat);
      if (seat.pool.seats.size === 0) this.#dropPool(seat.pool);
    }
    node.firstSeat = null;
    node.group?.abandon(node);
    this.nodes.delete(node.spec.id);
  }

  /** Puts the node's seats where its state belongs, or out of the index while its marks close it. */
  place(node: NodeRecord, now: MonoUs, config: SchedulerConfig): void {
    const isOpen = node.isOpen(now);
    if (isOpen) node.plan(config, now);
    const hasRoom = isOpen && node.takesNew(now);
    this.refusals.placed(node, hasRoom ? Math.max(0, node.slotsNow - node.running.length) : 0, now);
    const failing = node.breakers === null ? null : { config, now };
    for (let seat = node.firstSeat; seat !== null; seat = seat.next) {
      const { soleModel } = seat.pool;
      const isShut = failing !== null && soleModel !== null && isShutFor(node, soleModel, failing);
      if (isOpen && !isShut) seat.pool.place(seat, now, config);
      else seat.pool.unplace(seat);
    }
    if (node.group !== null) node.group.count(node, now, config);
  }

  /**
   * The lane of a tenant's tasks with a model and needs, or why no registered node could ever serve them. O(pools of
   * the model).
   */
  laneFor(model: string, needs: Needs, tenant: string): Lane | IneligibleReason {
    const entry = this.#models.get(model);
    if (entry === undefined) return 'model-not-offered';
    // Who asks for the lane of a task asks for the model's number next.
    this.#lastModel = model;
    this.#lastNumber = entry.number;
    if (entry.plain !== null && !entry.hasGroups && asksNothing(needs)) return entry.plain;
    let missing: IneligibleReason | null = null;
    let matching = 0;
    for (const pool of entry.pools) {
      const reason = missingIn(pool, model, needs, tenant);
      if (reason === null) matching += 1;
      else if (missing !== 'bulkhead') missing = reason;
    }
    if (matching === entry.pools.length) {
      if (entry.plain === null) {
        entry.plain = this.#lane(entry.pools, model);
        entry.hasGroups = entry.plain.hasGroups;
      }
      return entry.plain;
    }
    if (matching === 0) return missing as IneligibleReason;
    return this.#lane(
      entry.pools.filter((pool) => missingIn(pool, model, needs, tenant) === null),
      model,
    );
  }

  /** Forgets all lanes: after pools came or went, or classes changed. Every queued task must be laid anew. */
  relay(classes: readonly ClassRecord[]): void {
    this.#classes = classes;
    this.refusals.forgetLanes();
    for (const lane of this.lanes.values()) {
      lane.isGone = true;
      for (const pool of lane.pools) {
        pool.lanes.length = 0;
        pool.backloggedLanes = 0;
      }
    }
    this.lanes.clear();
    this.#domainsAreStale = true;
    for (const entry of this.#models.values()) entry.plain = null;
    this.lanesAreStale = false;
  }

  /** A node connects what was apart: shares are counted together from the next relay on. */
  #connect(): void {
    this.#domainsAreStale = true;
    this.lanesAreStale = true;
  }

  /** Tells the domains apart. O(nodes + pools), and only when a lane is made after pools came, went or were connected. */
  #partition(): void {
    this.#domainsAreStale = false;
    const sets = new Map<Pool, Pool>();
    for (const { pools } of this.#models.values())
      for (const pool of pools) unite(sets, pool, pools[0] as Pool);
    for (const { seats } of this.nodes.values()) {
      for (const { pool } of seats) unite(sets, pool, (seats[0] as Seat).pool);
    }
    const ids = new Map<Pool, number>();
    for (const pool of this.#pools.values()) {
      const root = rootOf(sets, pool);
      const id = ids.get(root) ?? ids.size;
      ids.set(root, id);
      if (pool.domain !== id && pool.lanes.length > 0) this.lanesAreStale = true;
      pool.domain = id;
    }
  }

  /** Where models have shares, a lane is of one model: what closes its nodes to one task closes them to all. */
  #lane(pools: readonly Pool[], model: string): Lane {
    if (this.#domainsAreStale) this.#partition();
    const ownModel = pools.some(({ group }) => group?.hasModelShares === true) ? model : '';
    const key = `${pools.map((pool) => pool.order).join(',')}${ownModel === '' ? '' : `|${ownModel}`}`;
    const known = this.lanes.get(key);
    if (known !== undefined) return known;
    const lane = new Lane(key, [...pools], this.#classes, {
      model: ownModel,
      loadsModels: this.#loadsModels,
    });
    this.lanes.set(key, lane);
    for (const pool of pools) pool.lanes.push(lane);
    return lane;
  }

  #poolFor(node: NodeRecord, models: readonly string[]): Pool {
    const offers = models.map((model) => node.offers.get(model) as ModelOffer);
    const group = node.group?.config.name ?? '';
    const key = JSON.stringify([group, node.spec.labels['zone'] ?? '', offers.map(offerSignature)]);
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = new Pool(key, this.#poolOrder++, node, models);
    this.#pools.set(key, pool);
    node.group?.pools.add(pool);
    for (const model of models) {
      const entry = this.#models.get(model);
      if (entry === undefined) this.#models.set(model, newModelPools(pool, this.modelNumber(model)));
      else {
        entry.pools.push(pool);
        entry.plain = null;
      }
    }
    this.#connect();
    return pool;
  }

  #dropPool(pool: Pool): void {
    this.#pools.delete(pool.key);
    pool.group?.pools.delete(pool);
    for (const model of pool.offers.keys()) {
      const entry = this.#models.get(model) as ModelPools;
      entry.pools.splice(entry.pools.indexOf(pool), 1);
      entry.plain = null;
      if (entry.pools.length === 0) this.#models.delete(model);
    }
    this.lanesAreStale = true;
  }
}

/** What a pool lacks for the task, or null. */
function missingIn(pool: Pool, model: string, needs: Needs, tenant: string): IneligibleReason | null {
  const need = missingNeed(pool.offers.get(model) as ModelOffer, pool.zone, needs);
  if (need !== null || pool.group === null) return need;
  return pool.group.isFor(model, tenant) ? null : 'bulkhead';
}

function newModelPools(pool: Pool, number: number): ModelPools {
  return { number, pools: [pool], plain: null, hasGroups: false, keepsPrompts: false, keepsAsOf: -1 };
}

function rootOf(sets: ReadonlyMap<Pool, Pool>, pool: Pool): Pool {
  let root = pool;
  for (let next = sets.get(root); next !== undefined && next !== root; next = sets.get(root)) root = next;
  return root;
}

function unite(sets: Map<Pool, Pool>, a: Pool, b: Pool): void {
  const root = rootOf(sets, b);
  sets.set(root, root);
  sets.set(rootOf(sets, a), root);
  sets.set(a, root);
}

/** What matters for eligibility, in a fixed order; the upstream name does not. */
function offerSignature(offer: ModelOffer): readonly unknown[] {
  return [
    offer.model,
    offer.contextTokensMax ?? null,
    offer.capabilities === undefined ? null : [...offer.capabilities].sort(),
    offer.loras === undefined ? null : [...offer.loras].sort(),
    offer.pixelsMax ?? null,
    offer.embeddingSize ?? null,
  ];
}
