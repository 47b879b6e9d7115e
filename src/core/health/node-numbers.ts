/**
 * The numbers of a node in a row, by their use: first its tally, then a cache line of what placement reads of a node that it
 * compares, one of what a start and an end change, and at the end what its curve and its patience keep there. Each is read and
 * written by its name.
 */
import { type NumberRow, NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, Rate, RefUs } from '../../base/units.ts';
import { CURVE_WIDTH } from '../capacity/rate-curve.ts';
import { PATIENCE_WIDTH } from '../capacity/timeouts.ts';
import { NODE_TALLY_WIDTH, NodeTally } from '../signals/index.ts';

const REFUSED_UNTIL = NODE_TALLY_WIDTH;
const READING_UNTIL = NODE_TALLY_WIDTH + 1;
const DRAIN_LONG_UNTIL = NODE_TALLY_WIDTH + 2;
const PLANNED_ROOM_AT = NODE_TALLY_WIDTH + 3;
const RESERVED_US = NODE_TALLY_WIDTH + 4;
const RANK_FACTOR = NODE_TALLY_WIDTH + 5;
const NEXT_RATE = NODE_TALLY_WIDTH + 6;
const SOLO_RATE = NODE_TALLY_WIDTH + 7;
const BOUND_US = NODE_TALLY_WIDTH + 8;
const PROGRESS_AT = NODE_TALLY_WIDTH + 9;
const INFLIGHT_US = NODE_TALLY_WIDTH + 10;
const INTEGRATED_AT = NODE_TALLY_WIDTH + 11;
const LAST_DONE_AT = NODE_TALLY_WIDTH + 12;
const LAST_USED_AT = NODE_TALLY_WIDTH + 13;
const SUCCEEDED_AT = NODE_TALLY_WIDTH + 14;
const BASELINE_RATE = NODE_TALLY_WIDTH + 15;
const SUSPECT_UNTIL = NODE_TALLY_WIDTH + 16;
const EJECTED_UNTIL = NODE_TALLY_WIDTH + 17;
const EJECTED_AT = NODE_TALLY_WIDTH + 18;
const HEARTBEAT_DUE_AT = NODE_TALLY_WIDTH + 19;
const READ_AT = NODE_TALLY_WIDTH + 20;
const SPARE_FROM = NODE_TALLY_WIDTH + 21;
const SPARE_SLOTS = NODE_TALLY_WIDTH + 22;
/** What others keep of the node, so that it lies beside what is read with it: its speed over all models, and its times. */
const OVERALL = NODE_TALLY_WIDTH + 24;
const PATIENCE: number = OVERALL + CURVE_WIDTH;
/** Whole cache lines. */
const ROWS: NumberRows = new NumberRows(8 * Math.ceil((PATIENCE + PATIENCE_WIDTH) / 8));

export class NodeNumbers extends NodeTally {
  constructor() {
    super(ROWS.next());
    this.rankFactor = 1;
    this.nextRate = 1;
    this.soloRate = 1;
    this.succeededAt = Number.NEGATIVE_INFINITY;
    this.ejectedAt = Number.NEGATIVE_INFINITY;
    this.heartbeatDueAt = Number.POSITIVE_INFINITY;
    this.readAt = Number.NEGATIVE_INFINITY;
    this.spareFrom = Number.POSITIVE_INFINITY;
  }

  /** The part of the row that its speed over all models is kept in; see rate-curve.ts. */
  protected get overallRow(): NumberRow {
    return { cells: this.cells, at: this.at + OVERALL };
  }

  /** The same of its patience; see timeouts.ts. */
  protected get patienceRow(): NumberRow {
    return { cells: this.cells, at: this.at + PATIENCE };
  }

  get refusedUntil(): MonoUs {
    return this.cells[this.at + REFUSED_UNTIL] as number;
  }

  set refusedUntil(value: MonoUs) {
    this.cells[this.at + REFUSED_UNTIL] = value;
  }

  /** The reading that closed the room is stale from here on. */
  get readingUntil(): MonoUs {
    return this.cells[this.at + READING_UNTIL] as number;
  }

  set readingUntil(value: MonoUs) {
    this.cells[this.at + READING_UNTIL] = value;
  }

  /** An engine without stated slots takes nothing new while its bound work takes longer than the limit. */
  get drainLongUntil(): MonoUs {
    return this.cells[this.at + DRAIN_LONG_UNTIL] as number;
  }

  set drainLongUntil(value: MonoUs) {
    this.cells[this.at + DRAIN_LONG_UNTIL] = value;
  }

  /** When room was expected when work was last added or finished. */
  get plannedRoomAt(): MonoUs {
    return this.cells[this.at + PLANNED_ROOM_AT] as number;
  }

  set plannedRoomAt(value: MonoUs) {
    this.cells[this.at + PLANNED_ROOM_AT] = value;
  }

  /** Time that waiting tasks have reserved after what runs here. */
  get reservedUs(): DurationUs {
    return this.cells[this.at + RESERVED_US] as number;
  }

  set reservedUs(value: DurationUs) {
    this.cells[this.at + RESERVED_US] = value;
  }

  /** How the node is ranked against its measured speed; see node-record.ts. */
  get rankFactor(): Rate {
    return this.cells[this.at + RANK_FACTOR] as number;
  }

  set rankFactor(value: Rate) {
    this.cells[this.at + RANK_FACTOR] = value;
  }

  /** Rate of the next task, and of one alone, as of the last `plan`: what placement reads. */
  get nextRate(): Rate {
    return this.cells[this.at + NEXT_RATE] as number;
  }

  set nextRate(value: Rate) {
    this.cells[this.at + NEXT_RATE] = value;
  }

  get soloRate(): Rate {
    return this.cells[this.at + SOLO_RATE] as number;
  }

  set soloRate(value: Rate) {
    this.cells[this.at + SOLO_RATE] = value;
  }

  get boundUs(): RefUs {
    return this.cells[this.at + BOUND_US] as number;
  }

  set boundUs(value: RefUs) {
    this.cells[this.at + BOUND_US] = value;
  }

  /** When the running work started to count, for remaining work. */
  get progressAt(): MonoUs {
    return this.cells[this.at + PROGRESS_AT] as number;
  }

  set progressAt(value: MonoUs) {
    this.cells[this.at + PROGRESS_AT] = value;
  }

  /** Integral of tasks in flight over time. */
  get inflightUs(): number {
    return this.cells[this.at + INFLIGHT_US] as number;
  }

  set inflightUs(value: number) {
    this.cells[this.at + INFLIGHT_US] = value;
  }

  get integratedAt(): MonoUs {
    return this.cells[this.at + INTEGRATED_AT] as number;
  }

  set integratedAt(value: MonoUs) {
    this.cells[this.at + INTEGRATED_AT] = value;
  }

  get lastDoneAt(): MonoUs {
    return this.cells[this.at + LAST_DONE_AT] as number;
  }

  set lastDoneAt(value: MonoUs) {
    this.cells[this.at + LAST_DONE_AT] = value;
  }

  get lastUsedAt(): MonoUs {
    return this.cells[this.at + LAST_USED_AT] as number;
  }

  set lastUsedAt(value: MonoUs) {
    this.cells[this.at + LAST_USED_AT] = value;
  }

  /** When an attempt last ended well here. */
  get succeededAt(): MonoUs {
    return this.cells[this.at + SUCCEEDED_AT] as number;
  }

  set succeededAt(value: MonoUs) {
    this.cells[this.at + SUCCEEDED_AT] = value;
  }

  get baselineRate(): Rate {
    return this.cells[this.at + BASELINE_RATE] as number;
  }

  set baselineRate(value: Rate) {
    this.cells[this.at + BASELINE_RATE] = value;
  }

  get suspectUntil(): MonoUs {
    return this.cells[this.at + SUSPECT_UNTIL] as number;
  }

  set suspectUntil(value: MonoUs) {
    this.cells[this.at + SUSPECT_UNTIL] = value;
  }

  get ejectedUntil(): MonoUs {
    return this.cells[this.at + EJECTED_UNTIL] as number;
  }

  set ejectedUntil(value: MonoUs) {
    this.cells[this.at + EJECTED_UNTIL] = value;
  }

  /** When it was last ejected; what began before says nothing of the node any more. */
  get ejectedAt(): MonoUs {
    return this.cells[this.at + EJECTED_AT] as number;
  }

  set ejectedAt(value: MonoUs) {
    this.cells[this.at + EJECTED_AT] = value;
  }

  get heartbeatDueAt(): MonoUs {
    return this.cells[this.at + HEARTBEAT_DUE_AT] as number;
  }

  set heartbeatDueAt(value: MonoUs) {
    this.cells[this.at + HEARTBEAT_DUE_AT] = value;
  }

  /** When its engine last told its load. */
  get readAt(): MonoUs {
    return this.cells[this.at + READ_AT] as number;
  }

  set readAt(value: MonoUs) {
    this.cells[this.at + READ_AT] = value;
  }

  /** Since when it has had a place free that no ledger has used; Infinity while it has none. */
  get spareFrom(): MonoUs {
    return this.cells[this.at + SPARE_FROM] as number;
  }

  set spareFrom(value: MonoUs) {
    this.cells[this.at + SPARE_FROM] = value;
  }

  /** The fewest places that were free since then. */
  get spareSlots(): number {
    return this.cells[this.at + SPARE_SLOTS] as number;
  }

  set spareSlots(value: number) {
    this.cells[this.at + SPARE_SLOTS] = value;
  }
}
