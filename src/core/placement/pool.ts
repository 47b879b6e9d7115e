/**
 * The index over nodes. A pool holds nodes that offer the same (same models, same limits), so that eligibility by
 * needs is decided once per pool and placement never scans a fleet.
 *
 * Inside a pool, seats lie in buckets of 25 % of speed. A bucket keeps the seats with room by exact rank and the busy
 * ones by when they would complete a typical task. Looking at the top of each bucket costs O(buckets), whatever the
 * number of nodes. Nodes whose marks close them are in no pool's index at all.
 */
import { KeyedHeap, NO_HANDLE } from '../../base/keyed-heap.ts';
import { NumberRows } from '../../base/number-rows.ts';
import type { MonoUs, Rate, RefUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Lane } from '../queue/lane.ts';
import type { ModelOffer } from '../request/needs.ts';
import type { NodeGroup } from './bulkhead.ts';

const BUCKET_FACTOR = 1.25;
const BUCKETS = 64;
export const SPEED_CLASS_MAX: number = BUCKETS;
/** Lower edges of the buckets: 1/1,000 and up by 25 % each, to about 1,300. */
const EDGES: readonly number[] = Array.from({ length: BUCKETS }, (_, i) => 0.001 * BUCKET_FACTOR ** i);
/** Weight of the newest task in the typical work by which busy seats are ordered. */
const TYPICAL_STEP = 0.05;
/** A model of which the pool has no number to find its rate by. */
const UNNUMBERED = -1;
/** Seats looked at per search for a node to explore. */
const EXPLORED_PER_LOOK = 8;
/** Numbers of a seat that are no small integers: its speed, and what the pool's order by speed has it for. */
const SPEED = 0;
const SPEED_BOUND = 1;
const ROWS: NumberRows = new NumberRows(2);

/** A node's place in one pool. It keeps its handles itself: each end of a task looks at all that is here. */
export class Seat {
  readonly node: NodeRecord;
  readonly pool: Pool;
  readonly order: number;
  readonly #cells: Float64Array;
  readonly #at: number;
  /** The same node's next seat. */
  next: Seat | null = null;
  bucket: Bucket | null = null;
  residents: Residents | null = null;
  hasRoom = false;
  /** Its handles in the bucket, among those with its model loaded, and in the pool by speed. */
  place: number = NO_HANDLE;
  home: number = NO_HANDLE;
  bySpeed: number = NO_HANDLE;
  /** The same in the pool by how soon streams begin, while they begin in turn there. */
  byTurn: number = NO_HANDLE;
  /** What the pool counts for it while it is open. */
  capacityMicro = 0;
  slots = 0;

  constructor(node: NodeRecord, pool: Pool) {
    this.node = node;
    this.pool = pool;
    this.order = node.order;
    const { cells, at } = ROWS.next();
    this.#cells = cells;
    this.#at = at;
  }

  /** Rate of one task alone, when it was last placed. */
  get speed(): Rate {
    return this.#cells[this.#at + SPEED] as number;
  }

  set speed(value: Rate) {
    this.#cells[this.#at + SPEED] = value;
  }

  /** At least its speed: where it lies in the pool by speed. */
  get speedBound(): Rate {
    return this.#cells[this.#at + SPEED_BOUND] as number;
  }

  set speedBound(value: Rate) {
    this.#cells[this.#at + SPEED_BOUND] = value;
  }

  /** Whether the index counts it among the open ones; behind the node's marks until the node is refreshed. */
  get isIndexed(): boolean {
    return this.bySpeed !== NO_HANDLE;
  }
}

/** Seats that are alike in one respect: those with room, and the busy ones by when they would complete a typical task. */
export interface SeatGroup {
  readonly roomy: KeyedHeap<Seat>;
  readonly busy: KeyedHeap<Seat>;
  /** The seat's handle in these heaps. */
  handleOf(seat: Seat): number;
}

/** Seats of nodes that have the same model loaded. */
class Residents implements SeatGroup {
  readonly roomy: KeyedHeap<Seat> = new KeyedHeap<Seat>();
  readonly busy: KeyedHeap<Seat> = new KeyedHeap<Seat>();

  handleOf(seat: Seat): number {
    return seat.home;
  }
}

export class Bucket implements SeatGroup {
  readonly index: number;
  /** Seats in this bucket have at least this speed, and less than the next one. */
  readonly speedMin: Rate;
  readonly speedMax: Rate;
  readonly roomy: KeyedHeap<Seat> = new KeyedHeap<Seat>();
  readonly busy: KeyedHeap<Seat> = new KeyedHeap<Seat>();
  constructor(index: number) {
    this.index = index;
    this.speedMin = EDGES[index] as number;
    this.speedMax = EDGES[index + 1] ?? Number.POSITIVE_INFINITY;
  }

  handleOf(seat: Seat): number {
    return seat.place;
  }
}

export class Pool {
  readonly key: string;
  readonly order: number;
  readonly offers: ReadonlyMap<string, ModelOffer>;
  readonly zone: string;
  /** The one model of the pool, or null where it is shared by nodes of many. */
  readonly soleModel: string | null;
  /** The node group that all its nodes are of, if any. */
  readonly group: NodeGroup | null;
  readonly seats: Set<Seat> = new Set();
  readonly lanes: Lane[] = [];
  backloggedLanes = 0;
  /** Pools that compete with this one are of the same domain; see fleet.ts. */
  domain = 0;
  roomySeats = 0;
  /** How much faster than its node's speed any single model was seen to run; 1 where nodes serve one model. */
  modelSpread = 1;
  /** Whether a node of it serves several models: then speed over all of them does not bound that of one. */
  mixesModels = false;
  typicalWorkUs: RefUs = 1_000_000;
  /** When an idle node may next be explored; the search goes on where it stopped. */
  exploreAt: MonoUs = 0;
  #exploring: IterableIterator<Seat> | null = null;
  /** Buckets that were ever used, the fastest first. */
  readonly buckets: Bucket[] = [];
  /** By the bounds of their speed: who becomes slower moves when it comes to the top, since nearly none ever does. */
  readonly #bySpeed: KeyedHeap<Seat> = new KeyedHeap<Seat>();
  readonly #byTurn: KeyedHeap<Seat> = new KeyedHeap<Seat>();
  /** By loaded model, of those that the pool offers; empty where loading costs nothing. */
  readonly #residents: Map<string, Residents> = new Map();
  /** Summed rate of the open nodes at full use; in whole millionths, so that sums of it stay exact. */
  capacity: Rate = 0;
  #capacityMicro = 0;
  #openSlots = 0;

  constructor(key: string, order: number, node: NodeRecord, models: readonly string[]) {
    this.key = key;
    this.order = order;
    this.offers = new Map(models.map((model) => [model, node.offers.get(model) as ModelOffer]));
    this.soleModel = models.length === 1 ? (models[0] as string) : null;
    this.zone = node.spec.labels['zone'] ?? '';
    this.group = node.group;
  }

  /** Tasks that the open nodes take at once. */
  get openSlots(): number {
    return this.#openSlots;
  }

  /** Nodes whose marks let them take work, busy or not. */
  get openSeats(): number {
    return this.#bySpeed.size;
  }

  /** The open node with the greatest speed: in the one model of the pool, or over all models where it has several. */
  fastest(): NodeRecord | undefined {
    let seat = this.#bySpeed.peek();
    while (seat !== undefined && seat.speedBound > seat.speed) {
      seat.speedBound = seat.speed;
      this.#bySpeed.move(seat.bySpeed, -seat.speed);
      seat = this.#bySpeed.peek();
    }
    return seat?.node;
  }

  /** The open node that begins streams soonest, of those that begin them in turn; over all models where it has several. */
  fastestInTurn(): NodeRecord | undefined {
    return this.#byTurn.peek()?.node;
  }

  /** The seats of nodes that have the model loaded, or undefined while there never was one. */
  residentsOf(model: string): SeatGroup | undefined {
    return this.#residents.get(model);
  }

  join(node: NodeRecord): Seat {
    const seat = new Seat(node, this);
    this.seats.add(seat);
    this.mixesModels ||= !node.isSingleModel;
    this.modelSpread = Math.max(this.modelSpread, node.modelSpread);
    return seat;
  }

  leave(seat: Seat): void {
    this.unplace(seat);
    this.seats.delete(seat);
  }

  /** Puts a seat where its node belongs, as it has just planned. O(log nodes of the bucket). */
  place(seat: Seat, now: MonoUs, config: SchedulerConfig): void {
    const { node } = seat;
    const hasRoom = node.hasRoomAsPlanned(now);
    const speed = node.nextRate;
    const key = hasRoom ? -speed * node.rankFactor : busyKey(seat, now, speed);
    const bucket = this.#bucketFor(speed, seat.bucket);
    if (seat.bucket === bucket && seat.hasRoom === hasRoom) {
      (hasRoom ? bucket.roomy : bucket.busy).move(seat.place, key);
    } else {
      this.#takeOut(seat);
      seat.bucket = bucket;
      seat.hasRoom = hasRoom;
      seat.place = (hasRoom ? bucket.roomy : bucket.busy).insert(seat, seat.order, key);
      if (hasRoom) this.roomySeats += 1;
    }
    this.#placeHome(seat, config.placement.swapMs > 0 ? this.#residentsFor(node) : null, key);
    this.#rate(seat, config);
  }

  /** Takes a seat out of the index: its node is closed. */
  unplace(seat: Seat): void {
    this.#takeOut(seat);
    if (seat.isIndexed) this.#bySpeed.delete(seat.bySpeed, seat);
    seat.bySpeed = NO_HANDLE;
    this.#leaveTurn(seat);
    this.#countCapacity(seat, 0);
    this.#openSlots -= seat.slots;
    seat.slots = 0;
  }

  /** Reorders a busy seat after its node's reservations changed, or after the node overran its estimate. */
  postpone(seat: Seat, now: MonoUs): void {
    if (seat.bucket === null || seat.hasRoom) return;
    const key = busyKey(seat, now, seat.node.nextRate);
    seat.bucket.busy.move(seat.place, key);
    if (seat.residents !== null) seat.residents.busy.move(seat.home, key);
  }

  /**
   * An idle node that nothing was sent to since `unusedSince`, or undefined: looks at a few seats, each time the next
   * ones, so that every node has its turn. O(1).
   */
  unusedSeat(unusedSince: MonoUs): Seat | undefined {
    for (let looked = 0; looked < EXPLORED_PER_LOOK; looked++) {
      this.#exploring ??= this.seats.values();
      const next = this.#exploring.next();
      if (next.done === true) {
        this.#exploring = null;
        return undefined;
      }
      const seat = next.value;
      if (seat.hasRoom && seat.node.running.length === 0 && seat.node.lastUsedAt <= unusedSince) return seat;
    }
    return undefined;
  }

  noteWork(workUs: RefUs): void {
    this.typicalWorkUs += TYPICAL_STEP * (workUs - this.typicalWorkUs);
  }

  #rate(seat: Seat, config: SchedulerConfig): void {
    this.#rateInTurn(seat);
    const { slotsNow } = seat.node;
    const soloRate =
      this.soleModel === null ? seat.node.soloRate : seat.node.soloRateOf(this.soleModel, UNNUMBERED);
    this.#openSlots += slotsNow - seat.slots;
    seat.slots = slotsNow;
    if (seat.isIndexed && seat.speed === soloRate && slotsNow === 1) return;
    this.#order(seat, soloRate);
    this.#countCapacity(seat, Math.round(seat.node.capacity(config) * 1_000_000));
  }

  #countCapacity(seat: Seat, capacityMicro: number): void {
    this.#capacityMicro += capacityMicro - seat.capacityMicro;
    seat.capacityMicro = capacityMicro;
    this.capacity = this.#capacityMicro / 1_000_000;
  }

  #order(seat: Seat, speed: Rate): void {
    seat.speed = speed;
    if (!seat.isIndexed) seat.bySpeed = this.#bySpeed.insert(seat, seat.order, -speed);
    else if (speed > seat.speedBound) this.#bySpeed.move(seat.bySpeed, -speed);
    else return;
    seat.speedBound = speed;
  }

  #rateInTurn(seat: Seat): void {
    const rate = seat.node.rateInTurnOf(this.soleModel ?? '');
    if (rate === 0) this.#leaveTurn(seat);
    else if (seat.byTurn === NO_HANDLE) seat.byTurn = this.#byTurn.insert(seat, seat.order, -rate);
    else this.#byTurn.move(seat.byTurn, -rate);
  }

  #leaveTurn(seat: Seat): void {
    if (seat.byTurn === NO_HANDLE) return;
    this.#byTurn.delete(seat.byTurn, seat);
    seat.byTurn = NO_HANDLE;
  }

  #residentsFor(node: NodeRecord): Residents | null {
    const { residentModel } = node;
    if (node.isSingleModel || !this.offers.has(residentModel)) return null;
    const known = this.#residents.get(residentModel);
    if (known !== undefined) return known;
    const created = new Residents();
    this.#residents.set(residentModel, created);
    return created;
  }

  /** Puts the seat, as it lies in its bucket, among those with its model loaded. */
  #placeHome(seat: Seat, residents: Residents | null, key: number): void {
    if (seat.residents !== residents) {
      this.#leaveHome(seat);
      seat.residents = residents;
      if (residents !== null)
        seat.home = (seat.hasRoom ? residents.roomy : residents.busy).insert(seat, seat.order, key);
    } else if (residents !== null) (seat.hasRoom ? residents.roomy : residents.busy).move(seat.home, key);
  }

  #leaveHome(seat: Seat): void {
    if (seat.residents === null) return;
    (seat.hasRoom ? seat.residents.roomy : seat.residents.busy).delete(seat.home, seat);
    seat.residents = null;
    seat.home = NO_HANDLE;
  }

  #takeOut(seat: Seat): void {
    if (seat.bucket === null) return;
    this.#leaveHome(seat);
    (seat.hasRoom ? seat.bucket.roomy : seat.bucket.busy).delete(seat.place, seat);
    seat.place = NO_HANDLE;
    if (seat.hasRoom) this.roomySeats -= 1;
    seat.bucket = null;
    seat.hasRoom = false;
  }

  #bucketFor(speed: Rate, current: Bucket | null): Bucket {
    if (current !== null && speed >= current.speedMin && speed < current.speedMax) return current;
    let low = 0;
    let high = BUCKETS - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((EDGES[middle] as number) <= speed) low = middle;
      else high = middle - 1;
    }
    let at = 0;
    while (at < this.buckets.length && (this.buckets[at] as Bucket).index > low) at += 1;
    const known = this.buckets[at];
    if (known?.index === low) return known;
    const bucket = new Bucket(low);
    this.buckets.splice(at, 0, bucket);
    return bucket;
  }
}

/** The class of speed in which the node lies, from 1 for the slowest to `SPEED_CLASS_MAX`; 0 while it is in no pool. */
export function speedClassOf(node: NodeRecord): number {
  let speedClass = 0;
  for (let seat = node.firstSeat; seat !== null; seat = seat.next)
    if (seat.bucket !== null) speedClass = Math.max(speedClass, seat.bucket.index + 1);
  return speedClass;
}

function busyKey(seat: Seat, now: MonoUs, speed: Rate): number {
  const { node, pool } = seat;
  return node.roomAt(now) + node.reservedUs + Math.round(pool.typicalWorkUs / speed);
}
