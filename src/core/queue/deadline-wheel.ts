/**
 * Which tasks pass their deadline: a timing wheel of two levels (Varghese and Lauck 1987) over all live tasks, queued
 * and running. add and remove O(1); a task is moved between levels once, so far deadlines cost nothing while they
 * wait. A task may be found up to one slot late, never early.
 *
 * A turn is one slot of the near level; a block is one round of it and one slot of the far level. Deadlines beyond
 * the far level (4.7 hours) wait in its last slot and are laid again when it comes up.
 */
import { doubled } from '../../base/doubled.ts';
import type { MonoUs } from '../../base/units.ts';
import type { TaskRecord } from './task-record.ts';

/** 16.384 ms: a power of two, well below any deadline that a client may ask for. */
const SLOT_US = 16_384;
const SLOTS = 1_024;

const NOBODY = -1;
const CAPACITY_MIN = 64;
/** Numbers to a row, a power of two, and the places in it. */
const WIDTH = 4;
const NEXT = 0;
const PREVIOUS = 1;
const SLOT = 2;

export class DeadlineWheel {
  /** First handle of each slot: the near level, then the far level. */
  readonly #heads = new Int32Array(2 * SLOTS).fill(NOBODY);
  /**
   * The lists of the slots, by handle, in rows of 16 bytes. Not in the records, because a task's neighbours are any tasks
   * at all: with a hundred thousand queued, links there would be two cache misses for each task that leaves.
   */
  #links = new Int32Array(WIDTH * CAPACITY_MIN);
  readonly #tasks: (TaskRecord | null)[] = [];
  readonly #spare: number[] = [];
  #size = 0;
  #nearSize = 0;
  #nextTurn = 0;

  get size(): number {
    return this.#size;
  }

  add(task: TaskRecord): void {
    const handle = this.#spare.pop() ?? this.#newHandle();
    this.#tasks[handle] = task;
    task.wheelHandle = handle;
    this.#size += 1;
    this.#lay(handle, task.deadlineAt);
  }

  remove(task: TaskRecord): void {
    const handle = task.wheelHandle;
    if (handle === NOBODY) return;
    this.#takeUp(handle);
    this.#tasks[handle] = null;
    this.#spare.push(handle);
    task.wheelHandle = NOBODY;
    this.#size -= 1;
  }

  /** Whether a slot has passed since the last look. Cheap enough to ask at every event. */
  isDue(now: MonoUs): boolean {
    return now >= (this.#nextTurn + 1) * SLOT_US;
  }

  /** Takes out every task whose deadline has passed, in order of (deadline, id). O(tasks found + slots passed). */
  takeExpired(now: MonoUs): readonly TaskRecord[] {
    const endTurn = Math.floor(now / SLOT_US);
    if (endTurn <= this.#nextTurn) return NONE;
    if (this.#size === 0) {
      this.#nextTurn = endTurn;
      return NONE;
    }
    const expired: TaskRecord[] = [];
    while (this.#nextTurn < endTurn) {
      const turn = this.#nextTurn;
      for (let handle = this.#headOf(turn % SLOTS); handle !== NOBODY; handle = this.#headOf(turn % SLOTS)) {
        const task = this.#tasks[handle] as TaskRecord;
        this.remove(task);
        expired.push(task);
      }
      const blockEnd = (Math.floor(turn / SLOTS) + 1) * SLOTS;
      this.#nextTurn = this.#nearSize > 0 ? turn + 1 : Math.min(blockEnd, endTurn);
      if (this.#nextTurn === blockEnd) this.#relay(blockEnd / SLOTS);
    }
    return expired.length < 2 ? expired : expired.sort((a, b) => a.deadlineAt - b.deadlineAt || a.id - b.id);
  }

  /** When `takeExpired` could find something next, or Infinity. At most SLOTS steps, usually few. */
  nextAt(): MonoUs {
    if (this.#size === 0) return Number.POSITIVE_INFINITY;
    const blockEnd = (Math.floor(this.#nextTurn / SLOTS) + 1) * SLOTS;
    const lastTurn = this.#size > this.#nearSize ? blockEnd : this.#nextTurn + SLOTS;
    if (this.#nearSize > 0) {
      for (let turn = this.#nextTurn; turn < lastTurn; turn++) {
        if (this.#headOf(turn % SLOTS) !== NOBODY) return (turn + 1) * SLOT_US;
      }
    }
    return (lastTurn + 1) * SLOT_US;
  }

  /** A block begins: its tasks move from the far level to the near one. */
  #relay(block: number): void {
    let handle = this.#headOf(SLOTS + (block % SLOTS));
    while (handle !== NOBODY) {
      const next = this.#links[WIDTH * handle + NEXT] as number;
      this.#takeUp(handle);
      this.#lay(handle, (this.#tasks[handle] as TaskRecord).deadlineAt);
      handle = next;
    }
  }

  #headOf(slot: number): number {
    return this.#heads[slot] as number;
  }

  /** Puts a member at the head of the slot where its deadline lies. */
  #lay(handle: number, deadlineAt: MonoUs): void {
    const turn = Math.max(Math.floor(deadlineAt / SLOT_US), this.#nextTurn);
    const isNear = turn < this.#nextTurn + SLOTS;
    const block = Math.min(Math.floor(turn / SLOTS), Math.floor(this.#nextTurn / SLOTS) + SLOTS - 1);
    const slot = isNear ? turn % SLOTS : SLOTS + (block % SLOTS);
    const head = this.#headOf(slot);
    const links = this.#links;
    const at = WIDTH * handle;
    links[at + NEXT] = head;
    links[at + PREVIOUS] = NOBODY;
    links[at + SLOT] = slot;
    if (head !== NOBODY) links[WIDTH * head + PREVIOUS] = handle;
    this.#heads[slot] = handle;
    if (isNear) this.#nearSize += 1;
  }

  #takeUp(handle: number): void {
    const links = this.#links;
    const at = WIDTH * handle;
    const next = links[at + NEXT] as number;
    const previous = links[at + PREVIOUS] as number;
    const slot = links[at + SLOT] as number;
    if (previous === NOBODY) this.#heads[slot] = next;
    else links[WIDTH * previous + NEXT] = next;
    if (next !== NOBODY) links[WIDTH * next + PREVIOUS] = previous;
    if (slot < SLOTS) this.#nearSize -= 1;
  }

  #newHandle(): number {
    const handle = this.#tasks.push(null) - 1;
    if (WIDTH * handle === this.#links.length) this.#links = doubled(this.#links);
    return handle;
  }
}

const NONE: readonly TaskRecord[] = Object.freeze([]);
