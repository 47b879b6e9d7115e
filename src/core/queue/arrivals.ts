/**
 * Tasks that wait, in order of arrival, so that the oldest and the newest are known without a walk:
 *
 *   enter ──► newest … oldest ──► leave, from anywhere          O(1) each
 *
 * Each waiting task is in two such orders: its flow's, and that of its class and model (see model-queue.ts). Who was tried and
 * waits again stands behind those that came meanwhile; who gave its place has its own back.
 *
 * A class keeps the links of both in one block of rows of 16 bytes, four to a cache line: a task's neighbours are any
 * tasks at all, and in their records they would be six cache misses for each task that comes and leaves.
 */
import { doubled } from '../../base/doubled.ts';
import type { TaskRecord } from './task-record.ts';

const NONE = -1;
const CAPACITY_MIN = 16;
const WIDTH = 4;

/** Where in a row the links of each order begin, and which is which. */
export const IN_FLOW = 0;
export const OF_MODEL = 2;
type Order = typeof IN_FLOW | typeof OF_MODEL;
const OLDER = 0;
const NEWER = 1;

/** The rows of all orders of a class, by handle. Grows with the tasks that wait at once, and keeps that size. */
export class ArrivalRows {
  #links: Int32Array<ArrayBuffer> = new Int32Array(WIDTH * CAPACITY_MIN);
  readonly #tasks: (TaskRecord | null)[] = [];
  /** The first of the handles that nobody has; each links to the next one as if it were older. */
  #spare = NONE;

  task(handle: number): TaskRecord | null {
    return handle === NONE ? null : (this.#tasks[handle] as TaskRecord);
  }

  enter(task: TaskRecord): void {
    const handle = this.#spare === NONE ? this.#newHandle() : this.#spare;
    this.#spare = this.#links[WIDTH * handle] as number;
    this.#tasks[handle] = task;
    task.arrivalHandle = handle;
  }

  leave(task: TaskRecord): void {
    const handle = task.arrivalHandle;
    this.#tasks[handle] = null;
    this.#links[WIDTH * handle] = this.#spare;
    this.#spare = handle;
    task.arrivalHandle = NONE;
  }

  /** The numbers of all rows, until another task enters. */
  get links(): Int32Array {
    return this.#links;
  }

  #newHandle(): number {
    const handle = this.#tasks.push(null) - 1;
    if (WIDTH * handle === this.#links.length) this.#links = doubled(this.#links);
    this.#links[WIDTH * handle] = NONE;
    return handle;
  }
}

/** One order. Its tasks have rows. */
export class Arrivals {
  readonly #rows: ArrivalRows;
  readonly #order: Order;
  #oldest = NONE;
  #newest = NONE;

  constructor(rows: ArrivalRows, order: Order) {
    this.#rows = rows;
    this.#order = order;
  }

  get oldest(): TaskRecord | null {
    return this.#rows.task(this.#oldest);
  }

  get newest(): TaskRecord | null {
    return this.#rows.task(this.#newest);
  }

  /** The next one that came before. */
  olderThan(task: TaskRecord): TaskRecord | null {
    return this.#rows.task(this.#rows.links[this.#at(task.arrivalHandle) + OLDER] as number);
  }

  /** The next one that came after. */
  newerThan(task: TaskRecord): TaskRecord | null {
    return this.#rows.task(this.#rows.links[this.#at(task.arrivalHandle) + NEWER] as number);
  }

  protected link(task: TaskRecord): void {
    const { links } = this.#rows;
    const handle = task.arrivalHandle;
    const at = this.#at(handle);
    const older = task.gaveWay ? this.#placeOf(task) : this.#newest;
    const newer = older === NONE ? this.#oldest : (links[this.#at(older) + NEWER] as number);
    links[at + OLDER] = older;
    links[at + NEWER] = newer;
    if (older === NONE) this.#oldest = handle;
    else links[this.#at(older) + NEWER] = handle;
    if (newer === NONE) this.#newest = handle;
    else links[this.#at(newer) + OLDER] = handle;
  }

  protected unlink(task: TaskRecord): void {
    const { links } = this.#rows;
    const at = this.#at(task.arrivalHandle);
    const older = links[at + OLDER] as number;
    const newer = links[at + NEWER] as number;
    if (older === NONE) this.#oldest = newer;
    else links[this.#at(older) + NEWER] = newer;
    if (newer === NONE) this.#newest = older;
    else links[this.#at(newer) + OLDER] = older;
  }

  /** Whom a task that gave its place to another follows, for it has its own back. O(arrived since), paid for by a budget. */
  #placeOf(task: TaskRecord): number {
    const { links } = this.#rows;
    let older = this.#newest;
    while (older !== NONE && (this.#rows.task(older) as TaskRecord).id > task.id)
      older = links[this.#at(older) + OLDER] as number;
    return older;
  }

  /** Where its links begin in the row of a task. */
  #at(handle: number): number {
    return WIDTH * handle + this.#order;
  }
}
