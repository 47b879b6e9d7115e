/**
 * Which tasks pass their deadline: a timing wheel of two levels (Varghese and Lauck 1987) over all live tasks, queued
 * and running. add and remove O(1); a task is moved between levels once, so far deadlines cost nothing while they
 * wait. A task may be found up to one slot late, never early.
 *
 * A turn is one slot of the near level; a block is one round of it and one slot of the far level. Deadlines beyond
 * the far level (4.7 hours) wait in its last slot and are laid again when it comes up.
 */
import type { MonoUs } from '../../base/units.ts';
import type { TaskRecord } from './task-record.ts';

/** 16.384 ms: a power of two, well below any deadline that a client may ask for. */
const SLOT_US = 16_384;
const SLOTS = 1_024;

export class DeadlineWheel {
  /** The near level, then the far level. */
  readonly #slots: (TaskRecord | null)[] = new Array<TaskRecord | null>(2 * SLOTS).fill(null);
  #size = 0;
  #nearSize = 0;
  #nextTurn = 0;

  get size(): number {
    return this.#size;
  }

  add(task: TaskRecord): void {
    const turn = Math.max(Math.floor(task.deadlineAt / SLOT_US), this.#nextTurn);
    const isNear = turn < this.#nextTurn + SLOTS;
    const block = Math.min(Math.floor(turn / SLOTS), Math.floor(this.#nextTurn / SLOTS) + SLOTS - 1);
    const slot = isNear ? turn % SLOTS : SLOTS + (block % SLOTS);
    const head = this.#slots[slot] as TaskRecord | null;
    task.wheelSlot = slot;
    task.wheelNext = head;
    task.wheelPrevious = null;
    if (head !== null) head.wheelPrevious = task;
    this.#slots[slot] = task;
    this.#size += 1;
    if (isNear) this.#nearSize += 1;
  }

  remove(task: TaskRecord): void {
    if (task.wheelSlot === -1) return;
    if (task.wheelPrevious === null) this.#slots[task.wheelSlot] = task.wheelNext;
    else task.wheelPrevious.wheelNext = task.wheelNext;
    if (task.wheelNext !== null) task.wheelNext.wheelPrevious = task.wheelPrevious;
    if (task.wheelSlot < SLOTS) this.#nearSize -= 1;
    task.wheelSlot = -1;
    task.wheelNext = null;
    task.wheelPrevious = null;
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
      for (
        let task = this.#slots[turn % SLOTS] ?? null;
        task !== null;
        task = this.#slots[turn % SLOTS] ?? null
      ) {
        this.remove(task);
        expired.push(task);
      }
      const blockEnd = (Math.floor(turn / SLOTS) + 1) * SLOTS;
      this.#nextTurn = this.#nearSize > 0 ? turn + 1 : Math.min(blockEnd, endTurn);
      if (this.#nextTurn === blockEnd) this.#relay(blockEnd / SLOTS);
    }
    return expired.length < 2
      ? expired
      : expired.sort((a, b) => a.deadlineAt - b.deadlineAt || a.spec.id - b.spec.id);
  }

  /** When `takeExpired` could find something next, or Infinity. At most SLOTS steps, usually few. */
  nextAt(): MonoUs {
    if (this.#size === 0) return Number.POSITIVE_INFINITY;
    const blockEnd = (Math.floor(this.#nextTurn / SLOTS) + 1) * SLOTS;
    const lastTurn = this.#size > this.#nearSize ? blockEnd : this.#nextTurn + SLOTS;
    if (this.#nearSize > 0) {
      for (let turn = this.#nextTurn; turn < lastTurn; turn++) {
        if (this.#slots[turn % SLOTS] !== null) return (turn + 1) * SLOT_US;
      }
    }
    return (lastTurn + 1) * SLOT_US;
  }

  /** A block begins: its tasks move from the far level to the near one. */
  #relay(block: number): void {
    const slot = SLOTS + (block % SLOTS);
    let task = this.#slots[slot] ?? null;
    while (task !== null) {
      const next: TaskRecord | null = task.wheelNext;
      this.remove(task);
      this.add(task);
      task = next;
    }
  }
}

const NONE: readonly TaskRecord[] = Object.freeze([]);
