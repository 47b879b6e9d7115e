/**
 * A flow's part in a lane: its tag, its waiting tasks by size and deadline. Its numbers lie in a row: with ten thousand
 * tenants, each one that is asked for comes from memory.
 */
import { HeapSlot } from '../../base/keyed-heap.ts';
import { NumberRows } from '../../base/number-rows.ts';
import type { DurationUs, MonoUs, Ratio, RefUs } from '../../base/units.ts';
import { DeadlineHeap, type DeadlineRows } from './deadline-heap.ts';
import type { Flow, ServedCounter } from './flow.ts';
import type { Lane, LaneClass } from './lane.ts';
import { isMoreUrgent, type TaskRecord } from './task-record.ts';

const WORK_US = 0;
const LAST_TAG = 1;
const OFFSET = 2;
const SCANNED = 3;
const PROMISED_UNTIL = 4;
const REFUSED_SHARE = 5;
const ARRIVED_AT = 6;
const ROWS: NumberRows = new NumberRows(8);
const LEAD_US_MAX: DurationUs = 5_000_000;

/** Size octaves of a flow are told apart by the power of two of its work in milliseconds, up to 2^30. */
export function octaveOf(workUs: RefUs): number {
  return 31 - Math.clz32(Math.min(1 << 30, 1 + Math.floor(workUs / 1_000)));
}

/**
 * Lead of a size octave: the work of its middle, but no more than 5 s. Who needs long is late soonest; a larger lead than that has the
 * small ones wait for more than the large ones gain.
 */
function leadOf(octave: number): DurationUs {
  return Math.min(LEAD_US_MAX, Math.SQRT2 * 1_000 * 2 ** octave);
}

/** Octaves there are: a kind is an octave of a speed floor, and the kinds of one floor follow those of the floor below. */
const OCTAVES = 32;

/** Waiting tasks of one flow, lane, size octave and speed floor; and of one model, where nodes load models for their tasks. */
export class Octave extends DeadlineHeap {
  kind = 0;
  model = '';
  /** How much sooner than others it is served, where larger tasks are served before smaller ones. */
  leadUs: DurationUs = 0;
  /** The scan under way has stepped over it. */
  isClosed = false;
}

export class LaneFlow {
  readonly counter: ServedCounter;
  readonly flow: Flow;
  readonly laneClass: LaneClass;
  /** Place among the backlogged flows of its class. */
  readonly slot: HeapSlot<LaneFlow>;
  tasks = 0;
  /** The scan under way has stepped over some of it. */
  isTouched = false;
  /** It has stepped over all of it. */
  isSpent = false;
  /** Those with tasks, in no order; behind them, empty ones that are kept for the next size. */
  readonly #octaves: Octave[] = [];
  #octavesInUse = 0;
  readonly #rows: DeadlineRows;
  readonly #loadsModels: boolean;
  readonly #cells: Float64Array;
  readonly #at: number;

  constructor(flow: Flow, laneClass: LaneClass, lane: Pick<Lane, 'rows' | 'loadsModels'>) {
    const { cells, at } = ROWS.next();
    this.#cells = cells;
    this.#at = at;
    this.#rows = lane.rows;
    this.#loadsModels = lane.loadsModels;
    this.counter = flow.counters.of(laneClass.domain);
    this.flow = flow;
    this.laneClass = laneClass;
    this.slot = new HeapSlot(this, flow.order);
  }

  get workUs(): RefUs {
    return this.#cells[this.#at + WORK_US] as number;
  }

  set workUs(value: RefUs) {
    this.#cells[this.#at + WORK_US] = value;
  }

  get lastTag(): number {
    return this.#cells[this.#at + LAST_TAG] as number;
  }

  set lastTag(value: number) {
    this.#cells[this.#at + LAST_TAG] = value;
  }

  get offset(): number {
    return this.#cells[this.#at + OFFSET] as number;
  }

  set offset(value: number) {
    this.#cells[this.#at + OFFSET] = value;
  }

  /** Work that this scan has promised to the flow without serving it yet, over weight. */
  get scanned(): number {
    return this.#cells[this.#at + SCANNED] as number;
  }

  set scanned(value: number) {
    this.#cells[this.#at + SCANNED] = value;
  }

  /** Until then places are promised to tasks that were refused; see admission/retry-shed.ts. */
  get promisedUntil(): MonoUs {
    return this.#cells[this.#at + PROMISED_UNTIL] as number;
  }

  set promisedUntil(value: MonoUs) {
    this.#cells[this.#at + PROMISED_UNTIL] = value;
  }

  /** Share of its arrivals that the gate refused, as of the last one; see admission/standing-queue.ts. */
  get refusedShare(): Ratio {
    return this.#cells[this.#at + REFUSED_SHARE] as number;
  }

  set refusedShare(value: Ratio) {
    this.#cells[this.#at + REFUSED_SHARE] = value;
  }

  /** When the last task came to the gate. */
  get arrivedAt(): MonoUs {
    return this.#cells[this.#at + ARRIVED_AT] as number;
  }

  set arrivedAt(value: MonoUs) {
    this.#cells[this.#at + ARRIVED_AT] = value;
  }

  get tag(): number {
    return this.counter.served + this.offset + this.scanned;
  }

  /**
   * The most urgent task among the octaves that this scan has not closed: the earliest deadline, or, with `largerFirst`, the earliest
   * instant at which the reference accelerator would have to begin.
   */
  head(largerFirst: boolean = false): TaskRecord | null {
    let best: Octave | null = null;
    let bestAt = Number.POSITIVE_INFINITY;
    for (let index = 0; index < this.#octavesInUse; index++) {
      const entry = this.#octaves[index] as Octave;
      if (entry.isClosed) continue;
      const dueAt = entry.leastDeadlineAt - (largerFirst ? entry.leadUs : 0);
      if (dueAt > bestAt) continue;
      if (
        best !== null &&
        dueAt === bestAt &&
        !isMoreUrgent(entry.peek() as TaskRecord, best.peek() as TaskRecord)
      )
        continue;
      best = entry;
      bestAt = dueAt;
    }
    return best === null ? null : best.peek();
  }

  add(task: TaskRecord): void {
    const kind = octaveOf(task.workUs) + task.speedFloor * OCTAVES;
    const entry = this.#octaveOf(kind, this.#loadsModels ? task.model : '');
    entry.push(task);
    task.octave = entry;
  }

  remove(task: TaskRecord): void {
    const entry = task.octave as Octave;
    entry.remove(task);
    task.octave = null;
    if (!entry.isEmpty) return;
    const octaves = this.#octaves;
    const last = --this.#octavesInUse;
    octaves[octaves.indexOf(entry)] = octaves[last] as Octave;
    octaves[last] = entry;
  }

  /** Files the task with those for which nodes of that speed class are none. It was filed lower, or with none. */
  raiseSpeedFloor(task: TaskRecord, floor: number): void {
    this.remove(task);
    task.speedFloor = floor;
    this.add(task);
  }

  /** Steps over an octave in the scan under way. */
  close(octave: Octave): void {
    octave.isClosed = true;
    this.isSpent = false;
    for (let index = 0; index < this.#octavesInUse; index++) {
      if (!(this.#octaves[index] as Octave).isClosed) return;
    }
    this.isSpent = true;
  }

  /** Steps over everything, or over nothing any more, in the scan under way. */
  setClosed(isClosed: boolean): void {
    this.isSpent = isClosed;
    for (let index = 0; index < this.#octavesInUse; index++)
      (this.#octaves[index] as Octave).isClosed = isClosed;
  }

  #octaveOf(kind: number, model: string): Octave {
    const octaves = this.#octaves;
    for (let index = 0; index < this.#octavesInUse; index++) {
      const entry = octaves[index] as Octave;
      if (entry.kind === kind && entry.model === model) return entry;
    }
    if (this.#octavesInUse === octaves.length) octaves.push(new Octave(this.#rows));
    const entry = octaves[this.#octavesInUse++] as Octave;
    entry.kind = kind;
    entry.leadUs = leadOf(kind % OCTAVES);
    entry.model = model;
    entry.isClosed = false;
    return entry;
  }
}
