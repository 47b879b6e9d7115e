/**
 * What a task counts and measures, in a row of numbers, and its yes-or-no facts, as bits: a tenth of the cache lines that
 * they would fill as members. Each is read and written by its name.
 */
import { NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';

const DEADLINE_AT = 0;
const SUBMITTED_AT = 1;
const WORK_US = 2;
const DEADLINE_WORK_US = 3;
const RESERVED_US = 4;
const RESERVED_DONE_AT = 5;
const RESERVED_UNTIL = 6;
const DECIDED_AT = 7;
const SENT_AT = 8;
const INFLIGHT_US_AT_START = 9;
const PREDICTED_US = 10;
const FIRST_BYTE_LIMIT_US = 11;
const IDLE_LIMIT_US = 12;
const CHARGED_US = 13;
const SAVED_US = 14;
const PASSABLE_UNTIL = 15;
/** How many there are; a row has a power of two, so that none begins inside a cache line more than it must. */
const NUMBERS = 16;
const ROWS: NumberRows = new NumberRows(16);

const IS_RUNNING = 1 << 0;
const IS_SETTLED = 1 << 1;
const IS_TOLD = 1 << 2;
const IS_ABORTING = 1 << 3;
const WAS_ASKED = 1 << 4;
const GAVE_WAY = 1 << 5;
const HAS_TAKEN_PLACE = 1 << 6;
const IS_ANSWERING = 1 << 7;
const WAS_SHUT_OUT = 1 << 8;
const HAS_FIRST_BYTE = 1 << 9;
const HAS_EXPIRED = 1 << 10;
const IS_STREAM = 1 << 11;

export class TaskNumbers {
  readonly #cells: Float64Array;
  readonly #at: number;
  #facts = 0;

  constructor() {
    const { cells, at } = ROWS.next();
    this.#cells = cells;
    this.#at = at;
  }

  /** All of it back to 0 and no. */
  protected clear(): void {
    const cells = this.#cells;
    for (let at = this.#at, end = at + NUMBERS; at < end; at++) cells[at] = 0;
    this.#facts = 0;
  }

  #mark(fact: number, isSo: boolean): void {
    this.#facts = isSo ? this.#facts | fact : this.#facts & ~fact;
  }

  /** Raised over the spec's for a class default that no node could meet. */
  get deadlineAt(): MonoUs {
    return this.#cells[this.#at + DEADLINE_AT] as number;
  }

  set deadlineAt(value: MonoUs) {
    this.#cells[this.#at + DEADLINE_AT] = value;
  }

  get submittedAt(): MonoUs {
    return this.#cells[this.#at + SUBMITTED_AT] as number;
  }

  set submittedAt(value: MonoUs) {
    this.#cells[this.#at + SUBMITTED_AT] = value;
  }

  get workUs(): RefUs {
    return this.#cells[this.#at + WORK_US] as number;
  }

  set workUs(value: RefUs) {
    this.#cells[this.#at + WORK_US] = value;
  }

  /** Work that must be done by the deadline: up to the first byte for streams. */
  get deadlineWorkUs(): RefUs {
    return this.#cells[this.#at + DEADLINE_WORK_US] as number;
  }

  set deadlineWorkUs(value: RefUs) {
    this.#cells[this.#at + DEADLINE_WORK_US] = value;
  }

  /** The time that it would occupy on the node that it reserves. */
  get reservedUs(): DurationUs {
    return this.#cells[this.#at + RESERVED_US] as number;
  }

  set reservedUs(value: DurationUs) {
    this.#cells[this.#at + RESERVED_US] = value;
  }

  /** When it would be done there, and until when that estimate is used without choosing anew. */
  get reservedDoneAt(): MonoUs {
    return this.#cells[this.#at + RESERVED_DONE_AT] as number;
  }

  set reservedDoneAt(value: MonoUs) {
    this.#cells[this.#at + RESERVED_DONE_AT] = value;
  }

  get reservedUntil(): MonoUs {
    return this.#cells[this.#at + RESERVED_UNTIL] as number;
  }

  set reservedUntil(value: MonoUs) {
    this.#cells[this.#at + RESERVED_UNTIL] = value;
  }

  /** When the attempt under way was decided, and when it was sent; 0 before. */
  get decidedAt(): MonoUs {
    return this.#cells[this.#at + DECIDED_AT] as number;
  }

  set decidedAt(value: MonoUs) {
    this.#cells[this.#at + DECIDED_AT] = value;
  }

  get sentAt(): MonoUs {
    return this.#cells[this.#at + SENT_AT] as number;
  }

  set sentAt(value: MonoUs) {
    this.#cells[this.#at + SENT_AT] = value;
  }

  /** The node's integral of tasks in flight when this one started; tells how many ran beside it. */
  get inflightUsAtStart(): number {
    return this.#cells[this.#at + INFLIGHT_US_AT_START] as number;
  }

  set inflightUsAtStart(value: number) {
    this.#cells[this.#at + INFLIGHT_US_AT_START] = value;
  }

  get predictedUs(): DurationUs {
    return this.#cells[this.#at + PREDICTED_US] as number;
  }

  set predictedUs(value: DurationUs) {
    this.#cells[this.#at + PREDICTED_US] = value;
  }

  /** Learned bounds on the attempt's silence, from when it was sent and inside its stream; 0 for none. */
  get firstByteLimitUs(): DurationUs {
    return this.#cells[this.#at + FIRST_BYTE_LIMIT_US] as number;
  }

  set firstByteLimitUs(value: DurationUs) {
    this.#cells[this.#at + FIRST_BYTE_LIMIT_US] = value;
  }

  get idleLimitUs(): DurationUs {
    return this.#cells[this.#at + IDLE_LIMIT_US] as number;
  }

  set idleLimitUs(value: DurationUs) {
    this.#cells[this.#at + IDLE_LIMIT_US] = value;
  }

  get chargedUs(): RefUs {
    return this.#cells[this.#at + CHARGED_US] as number;
  }

  set chargedUs(value: RefUs) {
    this.#cells[this.#at + CHARGED_US] = value;
  }

  /** Dispatches of its lane up to which those that go before it may have come before it; see signals/tally.ts. */
  get passableUntil(): number {
    return this.#cells[this.#at + PASSABLE_UNTIL] as number;
  }

  set passableUntil(value: number) {
    this.#cells[this.#at + PASSABLE_UNTIL] = value;
  }

  /** Work that its node was believed to have done already when the attempt under way was decided. */
  get savedUs(): RefUs {
    return this.#cells[this.#at + SAVED_US] as number;
  }

  set savedUs(value: RefUs) {
    this.#cells[this.#at + SAVED_US] = value;
  }

  get isRunning(): boolean {
    return (this.#facts & IS_RUNNING) !== 0;
  }

  set isRunning(isSo: boolean) {
    this.#mark(IS_RUNNING, isSo);
  }

  /** The outcome was given; only the node's permit is still out. */
  get isSettled(): boolean {
    return (this.#facts & IS_SETTLED) !== 0;
  }

  set isSettled(isSo: boolean) {
    this.#mark(IS_SETTLED, isSo);
  }

  /** It was told a place in line (see scheduler/retry-hint.ts), which is kept for it if the refusal stands. */
  get isTold(): boolean {
    return (this.#facts & IS_TOLD) !== 0;
  }

  set isTold(isSo: boolean) {
    this.#mark(IS_TOLD, isSo);
  }

  get isAborting(): boolean {
    return (this.#facts & IS_ABORTING) !== 0;
  }

  set isAborting(isSo: boolean) {
    this.#mark(IS_ABORTING, isSo);
  }

  /** It was asked to give its place; once in its life. */
  get wasAsked(): boolean {
    return (this.#facts & WAS_ASKED) !== 0;
  }

  set wasAsked(isSo: boolean) {
    this.#mark(WAS_ASKED, isSo);
  }

  /** It gave its place: one of its attempts was ours to end. */
  get gaveWay(): boolean {
    return (this.#facts & GAVE_WAY) !== 0;
  }

  set gaveWay(isSo: boolean) {
    this.#mark(GAVE_WAY, isSo);
  }

  /** It was given the place of another task, or would have been in shadow: it is given one at most. */
  get hasTakenPlace(): boolean {
    return (this.#facts & HAS_TAKEN_PLACE) !== 0;
  }

  set hasTakenPlace(isSo: boolean) {
    this.#mark(HAS_TAKEN_PLACE, isSo);
  }

  /** The node has begun to answer: of a whole answer too, which is held. */
  get isAnswering(): boolean {
    return (this.#facts & IS_ANSWERING) !== 0;
  }

  set isAnswering(isSo: boolean) {
    this.#mark(IS_ANSWERING, isSo);
  }

  /** A node group was closed to it once; counted once. */
  get wasShutOut(): boolean {
    return (this.#facts & WAS_SHUT_OUT) !== 0;
  }

  set wasShutOut(isSo: boolean) {
    this.#mark(WAS_SHUT_OUT, isSo);
  }

  get hasFirstByte(): boolean {
    return (this.#facts & HAS_FIRST_BYTE) !== 0;
  }

  set hasFirstByte(isSo: boolean) {
    this.#mark(HAS_FIRST_BYTE, isSo);
  }

  /** Its deadline passed while it ran. */
  get hasExpired(): boolean {
    return (this.#facts & HAS_EXPIRED) !== 0;
  }

  set hasExpired(isSo: boolean) {
    this.#mark(HAS_EXPIRED, isSo);
  }

  /** Its spec's. */
  get isStream(): boolean {
    return (this.#facts & IS_STREAM) !== 0;
  }

  set isStream(isSo: boolean) {
    this.#mark(IS_STREAM, isSo);
  }
}
