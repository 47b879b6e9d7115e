/**
 * Refusals that could have been served. A gate that refuses too much looks like one that works: nothing is late. So each
 * refusal for want of capacity leaves a record, and free time of nodes is laid over the records afterwards.
 *
 *   refused at t ──► pending ──a node of its lane has a place free for long enough──► could have been served
 *                       └──its time is over──► could not
 *
 * The rule. A refusal counts when one node that could serve it had a place free without a break from some instant after the
 * refusal for as long as it needs for the work at its measured rate with all places taken, what the deadline bounds was done
 * by the deadline, and all of it before the place was taken. Whatever was served in fact stays where it was, and each
 * stretch of free time is used once: first by higher classes, then by earlier refusals.
 *
 * A place that a share of a node group keeps for others, as it stands when the free time is laid over the records, is not free.
 *
 * Its bias. Too low: nothing is moved to make room, a stretch that a real task ends counts for nobody, at most the first
 * minute after a refusal is looked at, and of many idle nodes some at a time. Too high by nothing but the errors of
 * estimated work and measured rates, and by less than one task for each stretch of a node with several places.
 *
 * Its bound. `PENDING_MAX` records; as they fill up, one record stands for 4, 16 or 64 refusals of its class and claims as
 * much time as these. Adding is O(1). A node that gets or loses room costs two comparisons while nothing is pending, and at
 * most `LOOKED_AT_MAX` records per lane otherwise.
 */
import type {
  ClassName,
  DurationUs,
  ModelId,
  MonoUs,
  NodeId,
  RefUs,
  TaskId,
  TenantId,
} from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Seat } from '../placement/pool.ts';
import type { Lane } from '../queue/lane.ts';
import type { EvictReason, Outcome, RejectReason } from '../request/outcome.ts';

export const PENDING_MAX = 4_096;
/** Records looked at per lane when a stretch of free time ends. */
const LOOKED_AT_MAX = 64;
/** Nodes whose free time goes on that are looked at per lane and settlement, each time the next ones. */
const NODES_PER_LOOK = 256;
/** A verdict may come late: what was free is known all the same. */
const SETTLE_EVERY_US: DurationUs = 1_000_000;
const WINDOW_US_MAX: DurationUs = 60_000_000;
/** What a stream does after its first byte is waited for as long as a node of a quarter of the reference rate needs. */
const REST_FACTOR = 4;
/** Kept for people: the newest refusals that could have been served. */
export const EXAMPLES_MAX = 100;
/** Class names that are told apart; a configuration has 16 at most, and may be changed. */
const CLASSES_MAX = 64;
const NEVER: MonoUs = Number.POSITIVE_INFINITY;

export type JudgedReason = RejectReason | EvictReason;

/** Refusals for want of capacity: by a gate, a bound, the ladder, the gateway's own survival, or a deadline in the queue. */
const JUDGED: ReadonlySet<JudgedReason> = new Set<JudgedReason>([
  'deadline-infeasible',
  'shed',
  'queue-full',
  'self-protection',
  'evicted',
  'wait-expired',
  'preempted',
]);

export function isJudged(outcome: Outcome): outcome is Extract<Outcome, { kind: 'rejected' | 'evicted' }> {
  return (outcome.kind === 'rejected' || outcome.kind === 'evicted') && JUDGED.has(outcome.reason);
}

/** A refusal that gets a record. */
export interface Refusal {
  readonly taskId: TaskId;
  readonly className: ClassName;
  readonly classIndex: number;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly reason: JudgedReason;
  readonly at: MonoUs;
  readonly deadlineAt: MonoUs;
  readonly workUs: RefUs;
  readonly deadlineWorkUs: RefUs;
}

/** One that could have been served, and where. */
export interface MissedChance {
  readonly taskId: TaskId;
  readonly className: ClassName;
  readonly model: ModelId;
  readonly reason: JudgedReason;
  readonly refusedAt: MonoUs;
  readonly deadlineAt: MonoUs;
  readonly nodeId: NodeId;
  readonly startAt: MonoUs;
  readonly doneAt: MonoUs;
}

/** refused = couldHaveServed + couldNot + pending + unjudged, at every instant. */
export interface RefusalCounts {
  refused: number;
  couldHaveServed: number;
  couldNot: number;
  pending: number;
  /** The fleet or the classes were laid anew before their time was over. */
  unjudged: number;
}

interface ClassBook extends RefusalCounts {
  readonly name: ClassName;
  readonly byReason: Map<JudgedReason, number>;
  /** Refusals since the last one that left a record. */
  unrecorded: number;
}

interface Pending {
  readonly refusal: Refusal;
  /** At most `WINDOW_US_MAX` after the refusal. */
  readonly deadlineAt: MonoUs;
  readonly book: ClassBook;
  /** Refusals that it stands for and that found no place yet. */
  copies: number;
  /** When nothing can be said for it any more. */
  readonly until: MonoUs;
  next: Pending | null;
}

/** First in, first out. */
interface PendingList {
  first: Pending | null;
  last: Pending | null;
}

interface LaneRefusals {
  readonly lane: Lane;
  readonly byClass: PendingList[];
  size: number;
  /** No pending one is less work, or over sooner. */
  leastWorkUs: RefUs;
  leastUntil: MonoUs;
  walk: Iterator<Seat> | null;
}

/** A class, since its method `placed` is called at every change of a node. */
export class RefusalLedger {
  readonly #lanes: Map<Lane, LaneRefusals> = new Map();
  readonly #books: Map<ClassName, ClassBook> = new Map();
  readonly #examples: MissedChance[] = [];
  #oldest = 0;
  #pending = 0;
  #settleAt: MonoUs = NEVER;
  /** What a node of several models may need to load one. */
  swapUs: DurationUs = 0;

  /** Records that wait for judgement, at most `PENDING_MAX`. */
  get size(): number {
    return this.#pending;
  }

  /** When `settle` is to be called next; Infinity while nothing is pending. */
  get settleAt(): MonoUs {
    return this.#settleAt;
  }

  /** Counts a refusal; true when a record of it is due, which `record` is to be called with in the same event. */
  count(className: ClassName, reason: JudgedReason, lane: Lane | null): boolean {
    const book = this.#bookOf(className);
    book.refused += 1;
    book.byReason.set(reason, (book.byReason.get(reason) ?? 0) + 1);
    if (lane === null) {
      book.couldNot += 1;
      return false;
    }
    book.pending += 1;
    book.unrecorded += 1;
    return this.#pending < PENDING_MAX && book.unrecorded >= strideOf(this.#pending);
  }

  /** Keeps a refusal until it is judged, for itself and those of its class that were counted since the last record. */
  record(refusal: Refusal, lane: Lane): void {
    const book = this.#bookOf(refusal.className);
    const deadlineAt = Math.min(refusal.deadlineAt, refusal.at + WINDOW_US_MAX);
    const restUs = (refusal.workUs - refusal.deadlineWorkUs) * REST_FACTOR;
    const until = deadlineAt + Math.min(WINDOW_US_MAX, restUs);
    this.#push(lane, { refusal, deadlineAt, book, copies: book.unrecorded, until, next: null });
    book.unrecorded = 0;
    if (this.#settleAt === NEVER) this.#settleAt = refusal.at + SETTLE_EVERY_US;
  }

  /** A node was placed anew: what it has free may have begun, changed or ended. Called at every change of a node. */
  placed(node: NodeRecord, free: number, now: MonoUs): void {
    const isSpare = node.spareFrom !== NEVER;
    if (isSpare && this.#pending > 0) {
      if (free < node.spareSlots && now > node.spareFrom) this.#fill(node, now);
      if (free > 0) node.spareSlots = Math.min(node.spareSlots, free);
      else node.spareFrom = NEVER;
      return;
    }
    node.spareFrom = free > 0 ? now : NEVER;
    node.spareSlots = free;
  }

  /** Lays free time that goes on over what is pending, and ends what can not count any more. O(pending + nodes looked at). */
  settle(now: MonoUs): void {
    for (const refusals of this.#lanes.values()) {
      this.#look(refusals, now);
      this.#expire(refusals, now);
      if (refusals.size === 0) this.#lanes.delete(refusals.lane);
    }
    this.#settleAt = this.#pending === 0 ? NEVER : now + SETTLE_EVERY_US;
    if (this.#pending === 0) this.#closeBooks();
  }

  /** Lanes were laid anew: whose lane is gone cannot be judged any more. */
  forgetLanes(): void {
    for (const { byClass } of this.#lanes.values()) {
      for (const { first } of byClass) {
        for (let record = first; record !== null; record = record.next) {
          record.book.pending -= record.copies;
          record.book.unjudged += record.copies;
        }
      }
    }
    this.#lanes.clear();
    this.#pending = 0;
    this.#settleAt = NEVER;
  }

  counts(): readonly (RefusalCounts & {
    readonly name: ClassName;
    readonly byReason: ReadonlyMap<JudgedReason, number>;
  })[] {
    return [...this.#books.values()];
  }

  /** Newest first. */
  examples(): readonly MissedChance[] {
    const { length } = this.#examples;
    return Array.from(
      { length },
      (_, age) => this.#examples[(this.#oldest + 2 * length - 1 - age) % length] as MissedChance,
    );
  }

  /** A class is told from the start, so that its first refusal is a step from 0 and no new series. */
  expect(className: ClassName): void {
    this.#bookOf(className);
  }

  #bookOf(name: ClassName): ClassBook {
    const known = this.#books.get(name);
    if (known !== undefined) return known;
    if (this.#books.size >= CLASSES_MAX) return this.#books.get('other') ?? this.#open('other');
    return this.#open(name);
  }

  #open(name: ClassName): ClassBook {
    const counts = { refused: 0, couldHaveServed: 0, couldNot: 0, pending: 0, unjudged: 0 };
    const book: ClassBook = { name, ...counts, byReason: new Map(), unrecorded: 0 };
    this.#books.set(name, book);
    return book;
  }

  /** Nothing is pending: those that wait for a record to stand for them get none. */
  #closeBooks(): void {
    for (const book of this.#books.values()) {
      book.pending -= book.unrecorded;
      book.unjudged += book.unrecorded;
      book.unrecorded = 0;
    }
  }

  #push(lane: Lane, record: Pending): void {
    let refusals = this.#lanes.get(lane);
    if (refusals === undefined) {
      refusals = {
        lane,
        byClass: [],
        size: 0,
        leastWorkUs: Number.POSITIVE_INFINITY,
        leastUntil: NEVER,
        walk: null,
      };
      this.#lanes.set(lane, refusals);
    }
    const { classIndex, workUs } = record.refusal;
    refusals.leastWorkUs = Math.min(refusals.leastWorkUs, workUs);
    refusals.leastUntil = Math.min(refusals.leastUntil, record.until);
    while (refusals.byClass.length <= classIndex) refusals.byClass.push({ first: null, last: null });
    const list = refusals.byClass[classIndex] as PendingList;
    if (list.last === null) list.first = record;
    else list.last.next = record;
    list.last = record;
    refusals.size += 1;
    this.#pending += 1;
  }

  /** The node's free time up to now goes to what is pending in its lanes. */
  #fill(node: NodeRecord, now: MonoUs): void {
    for (const { pool } of node.seats) {
      for (const lane of pool.lanes) {
        const refusals = this.#lanes.get(lane);
        if (refusals !== undefined && refusals.size > 0) this.#fillFrom(refusals, node, now);
      }
    }
  }

  #fillFrom(refusals: LaneRefusals, node: NodeRecord, now: MonoUs): void {
    const usedMax = (now - node.spareFrom) * node.soloRate;
    if (node.isSingleModel && usedMax < refusals.leastWorkUs) return;
    let looked = 0;
    for (const list of refusals.byClass) {
      let before: Pending | null = null;
      for (let record = list.first; record !== null; record = record.next) {
        looked += 1;
        if (looked > LOOKED_AT_MAX || node.spareFrom >= now) return;
        this.#claim(record, node, now);
        if (record.copies > 0) before = record;
        else this.#take(refusals, list, { record, before });
      }
    }
  }

  /** Uses the node's free time for as many of those that the record stands for as fit. */
  #claim(record: Pending, node: NodeRecord, now: MonoUs): void {
    const { model, tenant, at, workUs, deadlineWorkUs } = record.refusal;
    const rate = node.rateOf(model, node.slotsNow);
    const loadUs = node.isSingleModel ? 0 : this.swapUs;
    const serviceUs = loadUs + workUs / rate;
    const boundedUs = loadUs + deadlineWorkUs / rate;
    for (let startAt = Math.max(node.spareFrom, at); record.copies > 0; startAt = node.spareFrom) {
      if (startAt + serviceUs > now || startAt + boundedUs > record.deadlineAt) return;
      if (isClosedTo(node, model, tenant)) return;
      node.spareFrom = startAt + serviceUs / node.spareSlots;
      record.copies -= 1;
      record.book.pending -= 1;
      record.book.couldHaveServed += 1;
      this.#keep(record, { nodeId: node.spec.id, startAt, doneAt: startAt + serviceUs });
    }
  }

  #keep({ refusal, deadlineAt }: Pending, where: Pick<MissedChance, 'nodeId' | 'startAt' | 'doneAt'>): void {
    const { taskId, className, model, reason, at } = refusal;
    this.#examples[this.#oldest] = { taskId, className, model, reason, refusedAt: at, deadlineAt, ...where };
    this.#oldest = (this.#oldest + 1) % EXAMPLES_MAX;
  }

  #take(
    refusals: LaneRefusals,
    list: PendingList,
    { record, before }: { readonly record: Pending; readonly before: Pending | null },
  ): void {
    if (before === null) list.first = record.next;
    else before.next = record.next;
    if (list.last === record) list.last = before;
    refusals.size -= 1;
    this.#pending -= 1;
  }

  #look(refusals: LaneRefusals, now: MonoUs): void {
    for (let looked = 0; looked < NODES_PER_LOOK && refusals.size > 0; looked++) {
      refusals.walk ??= seatsOf(refusals.lane);
      const next = refusals.walk.next();
      if (next.done === true) {
        refusals.walk = null;
        return;
      }
      const { node } = next.value;
      if (node.spareFrom < now && node.state !== 'gone') this.#fillFrom(refusals, node, now);
    }
  }

  #expire(refusals: LaneRefusals, now: MonoUs): void {
    if (refusals.leastUntil > now) return;
    refusals.leastUntil = NEVER;
    refusals.leastWorkUs = Number.POSITIVE_INFINITY;
    for (const list of refusals.byClass) {
      let before: Pending | null = null;
      for (let record = list.first; record !== null; record = record.next) {
        if (record.until > now) {
          before = record;
          refusals.leastUntil = Math.min(refusals.leastUntil, record.until);
          refusals.leastWorkUs = Math.min(refusals.leastWorkUs, record.refusal.workUs);
          continue;
        }
        record.book.pending -= record.copies;
        record.book.couldNot += record.copies;
        this.#take(refusals, list, { record, before });
      }
    }
  }
}

/** What a node's free places are not free to: a model that fails there, somebody from whom a share keeps them. */
function isClosedTo(node: NodeRecord, model: ModelId, tenant: TenantId): boolean {
  return node.breakers?.has(model) === true || node.group?.isKeptFrom(model, tenant) === true;
}

function* seatsOf(lane: Lane): Generator<Seat> {
  for (const { seats } of lane.pools) yield* seats;
}

/** How many refusals one record stands for: all are kept apart while half of the room is free. */
function strideOf(pending: number): number {
  if (pending < PENDING_MAX / 2) return 1;
  if (pending < (PENDING_MAX * 3) / 4) return 4;
  return pending < (PENDING_MAX * 7) / 8 ? 16 : 64;
}
