/**
 * The index over nodes. A pool holds nodes that offer the same (same models, same limits), so that eligibility by
 * needs is decided once per pool and placement never scans a fleet.
 *
 * Inside a pool, seats lie in buckets of 25 % of speed. A bucket keeps the seats with room by exact rank and the busy
 * ones by when they would complete a typical task. Looking at the top of each bucket costs O(buckets), whatever the
 * number of nodes. Nodes whose marks close them are in no pool's index at all.
 */
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import type { MonoUs, Rate, RefUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Lane } from '../queue/lane.ts';
import type { ModelOffer } from '../request/needs.ts';
import type { NodeGroup } from './bulkhead.ts';

const BUCKET_FACTOR = 1.25;
const BUCKETS = 64;
/** Lower edges of the buckets: 1/1,000 and up by 25 % each, to about 1,300. */
const EDGES: readonly number[] = Array.from({ length: BUCKETS }, (_, i) => 0.001 * BUCKET_FACTOR ** i);
/** Weight of the newest task in the typical work by which busy seats are ordered. */
const TYPICAL_STEP = 0.05;
/** Seats looked at per search for a node to explore. */
const EXPLORED_PER_LOOK = 8;
/** A node's place in one pool. */
export class Seat {
  readonly node: NodeRecord;
  readonly pool: Pool;
  readonly order: number;
  /** Place in its bucket, and in the pool by speed. */
  readonly place: HeapSlot<Seat>;
  readonly speed: HeapSlot<Seat>;
  bucket: Bucket | null = null;
  hasRoom = false;
  /** What the pool counts for it while it is open. */
  capacityMicro = 0;
  slots = 0;

  constructor(node: NodeRecord, pool: Pool) {
    this.node = node;
    this.pool = pool;
    this.order = node.order;
    this.place = new HeapSlot<Seat>(this, node.order);
    this.speed = new HeapSlot<Seat>(this, node.order);
  }

  /** Whether the index counts it among the open ones; behind the node's marks until the node is refreshed. */
  get isIndexed(): boolean {
    return this.speed.isInHeap;
  }
}

export class Bucket {
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
  typicalWorkUs: RefUs = 1_000_000;
  /** When an idle node may next be explored; the search goes on where it stopped. */
  exploreAt: MonoUs = 0;
  #exploring: IterableIterator<Seat> | null = null;
  /** Buckets that were ever used, the fastest first. */
  readonly buckets: Bucket[] = [];
  readonly #bySpeed: KeyedHeap<Seat> = new KeyedHeap<Seat>();
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

  /** Summed rate of the open nodes at full use. */
  get capacity(): Rate {
    return this.#capacityMicro / 1_000_000;
  }

  /** Tasks that the open nodes take at once. */
  get openSlots(): number {
    return this.#openSlots;
  }

  /** Nodes whose marks let them take work, busy or not. */
  get openSeats(): number {
    return this.#bySpeed.size;
  }

  /** The open node with the greatest speed. */
  fastest(): NodeRecord | undefined {
    return this.#bySpeed.peek()?.node;
  }

  join(node: NodeRecord): Seat {
    const seat = new Seat(node, this);
    this.seats.add(seat);
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
      (hasRoom ? bucket.roomy : bucket.busy).update(seat.place, key);
    } else {
      this.#takeOut(seat);
      seat.bucket = bucket;
      seat.hasRoom = hasRoom;
      (hasRoom ? bucket.roomy : bucket.busy).push(seat.place, key);
      if (hasRoom) this.roomySeats += 1;
    }
    this.#rate(seat, config);
  }

  /** Takes a seat out of the index: its node is closed. */
  unplace(seat: Seat): void {
    this.#takeOut(seat);
    if (seat.speed.isInHeap) this.#bySpeed.remove(seat.speed);
    this.#capacityMicro -= seat.capacityMicro;
    seat.capacityMicro = 0;
    this.#openSlots -= seat.slots;
    seat.slots = 0;
  }

  /** Reorders a busy seat after its node's reservations changed, or after the node overran its estimate. */
  postpone(seat: Seat, now: MonoUs): void {
    if (seat.bucket === null || seat.hasRoom) return;
    seat.bucket.busy.update(seat.place, busyKey(seat, now, seat.node.nextRate));
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
    const { soloRate, slotsNow } = seat.node;
    this.#openSlots += slotsNow - seat.slots;
    seat.slots = slotsNow;
    if (!seat.speed.isInHeap) this.#bySpeed.push(seat.speed, -soloRate);
    else if (this.#bySpeed.keyOf(seat.speed) === -soloRate && slotsNow === 1) return;
    else this.#bySpeed.update(seat.speed, -soloRate);
    const capacityMicro = Math.round(seat.node.capacity(config) * 1_000_000);
    this.#capacityMicro += capacityMicro - seat.capacityMicro;
    seat.capacityMicro = capacityMicro;
  }

  #takeOut(seat: Seat): void {
    if (seat.bucket === null) return;
    (seat.hasRoom ? seat.bucket.roomy : seat.bucket.busy).remove(seat.place);
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

function busyKey(seat: Seat, now: MonoUs, speed: Rate): number {
  const { node, pool } = seat;
  return node.roomAt(now) + node.reservedUs + Math.round(pool.typicalWorkUs / speed);
}
