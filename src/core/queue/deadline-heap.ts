/**
 * Tasks of one flow in one lane and size octave, earliest deadline first: a pairing heap.
 * push O(1), peek O(1), pop and remove by handle O(log n) amortised (Fredman, Sedgewick, Sleator, Tarjan 1986).
 * Empty flows cost one small object, which matters with ten thousand tenants.
 *
 * The heaps of a lane keep their links in one block of rows of 32 bytes, two to a cache line: deadline, first child, right
 * sibling, and what is on the left (the left sibling, or the parent of a first child). A task that leaves compares and
 * links a dozen others; in their records, scattered over the heap of a hundred thousand, each would be a cache miss.
 */
import { isMoreUrgent, type TaskRecord } from './task-record.ts';

const NONE = -1;
const CAPACITY_MIN = 16;
/** Numbers of 8 and of 4 bytes to a row. */
const WIDE = 4;
const NARROW = 8;
/** Places in a row, in numbers of 4 bytes; the deadline is the first one of 8. */
const CHILD = 2;
const SIBLING = 3;
const PREVIOUS = 4;

/** The rows of several heaps, by handle. Grows with the tasks that wait in them at once, and keeps that size. */
export class DeadlineRows {
  #deadlines: Float64Array<ArrayBuffer> = new Float64Array(WIDE * CAPACITY_MIN);
  #links: Int32Array<ArrayBuffer> = new Int32Array(this.#deadlines.buffer);
  readonly #tasks: (TaskRecord | null)[] = [];
  /** The first of the handles that nobody has; each links to the next one as its sibling. */
  #spare = NONE;

  task(handle: number): TaskRecord {
    return this.#tasks[handle] as TaskRecord;
  }

  /** The instant that a handle's task is due. */
  deadlineAt(handle: number): number {
    return this.#deadlines[WIDE * handle] as number;
  }

  enter(task: TaskRecord): number {
    const handle = this.#spare === NONE ? this.#newHandle() : this.#spare;
    this.#spare = this.#link(handle, SIBLING);
    this.#tasks[handle] = task;
    this.#deadlines[WIDE * handle] = task.deadlineAt;
    this.#clear(handle);
    return handle;
  }

  leave(handle: number): void {
    this.#tasks[handle] = null;
    this.#set(handle, SIBLING, this.#spare);
    this.#spare = handle;
  }

  firstChild(handle: number): number {
    return this.#link(handle, CHILD);
  }

  nextSibling(handle: number): number {
    return this.#link(handle, SIBLING);
  }

  /** Joins two heaps; both are roots without siblings. Returns the root. */
  meld(a: number, b: number): number {
    const isFirst = this.#isAhead(a, b);
    const winner = isFirst ? a : b;
    const loser = isFirst ? b : a;
    const child = this.#link(winner, CHILD);
    this.#set(loser, SIBLING, child);
    if (child !== NONE) this.#set(child, PREVIOUS, loser);
    this.#set(loser, PREVIOUS, winner);
    this.#set(winner, CHILD, loser);
    return winner;
  }

  /** Unlinks a task, together with its subtree, from its parent or left sibling. */
  detach(handle: number): void {
    const previous = this.#link(handle, PREVIOUS);
    const sibling = this.#link(handle, SIBLING);
    this.#set(previous, this.#link(previous, CHILD) === handle ? CHILD : SIBLING, sibling);
    if (sibling !== NONE) this.#set(sibling, PREVIOUS, previous);
  }

  /**
   * Makes one heap of a task's children, or none: joined in pairs from the left, then all from the right. Iterative, since
   * lists of siblings grow with load.
   */
  mergeChildren(parent: number): number {
    let pairs = NONE;
    for (let a = this.#link(parent, CHILD); a !== NONE; ) {
      const b = this.#link(a, SIBLING);
      const next = b === NONE ? NONE : this.#link(b, SIBLING);
      this.#part(a);
      if (b !== NONE) this.#part(b);
      const joined = b === NONE ? a : this.meld(a, b);
      this.#set(joined, SIBLING, pairs);
      pairs = joined;
      a = next;
    }
    let root = NONE;
    while (pairs !== NONE) {
      const following = this.#link(pairs, SIBLING);
      this.#set(pairs, SIBLING, NONE);
      root = root === NONE ? pairs : this.meld(root, pairs);
      pairs = following;
    }
    return root;
  }

  #isAhead(a: number, b: number): boolean {
    const one = this.#deadlines[WIDE * a] as number;
    const other = this.#deadlines[WIDE * b] as number;
    return one < other || (one === other && isMoreUrgent(this.task(a), this.task(b)));
  }

  #link(handle: number, place: number): number {
    return this.#links[NARROW * handle + place] as number;
  }

  #set(handle: number, place: number, value: number): void {
    this.#links[NARROW * handle + place] = value;
  }

  #part(handle: number): void {
    this.#set(handle, SIBLING, NONE);
    this.#set(handle, PREVIOUS, NONE);
  }

  #clear(handle: number): void {
    this.#part(handle);
    this.#set(handle, CHILD, NONE);
  }

  #newHandle(): number {
    const handle = this.#tasks.push(null) - 1;
    if (WIDE * handle === this.#deadlines.length) {
      const grown = new Float64Array(2 * this.#deadlines.length);
      grown.set(this.#deadlines);
      this.#deadlines = grown;
      this.#links = new Int32Array(grown.buffer);
    }
    this.#set(handle, SIBLING, NONE);
    return handle;
  }
}

export class DeadlineHeap {
  readonly #rows: DeadlineRows;
  #root = NONE;

  constructor(rows: DeadlineRows = new DeadlineRows()) {
    this.#rows = rows;
  }

  get isEmpty(): boolean {
    return this.#root === NONE;
  }

  peek(): TaskRecord | null {
    return this.#root === NONE ? null : this.#rows.task(this.#root);
  }

  /** When the first one is due, or Infinity. Without a look at its record. */
  get leastDeadlineAt(): number {
    return this.#root === NONE ? Number.POSITIVE_INFINITY : this.#rows.deadlineAt(this.#root);
  }

  push(task: TaskRecord): void {
    const handle = this.#rows.enter(task);
    task.queueHandle = handle;
    this.#root = this.#root === NONE ? handle : this.#rows.meld(this.#root, handle);
  }

  remove(task: TaskRecord): void {
    const rows = this.#rows;
    const handle = task.queueHandle;
    const children = rows.mergeChildren(handle);
    if (handle === this.#root) {
      this.#root = children;
    } else {
      rows.detach(handle);
      if (children !== NONE) this.#root = rows.meld(this.#root, children);
    }
    rows.leave(handle);
    task.queueHandle = NONE;
  }

  /** Visits every task in no particular order; for people, never on the hot path. */
  forEach(visit: (task: TaskRecord) => void): void {
    const rows = this.#rows;
    const pending: number[] = this.#root === NONE ? [] : [this.#root];
    for (let handle = pending.pop(); handle !== undefined; handle = pending.pop()) {
      const child = rows.firstChild(handle);
      const sibling = rows.nextSibling(handle);
      if (child !== NONE) pending.push(child);
      if (sibling !== NONE) pending.push(sibling);
      visit(rows.task(handle));
    }
  }
}
