/**
 * Which tasks pass their deadline: a hashed timing wheel (Varghese and Lauck 1987) over all live tasks, queued and
 * running. add and remove O(1). A task may be found up to one slot late, never early; far deadlines are seen once
 * per turn of the wheel and stay.
 */
import type { MonoUs } from '../../base/units.ts';
import type { TaskRecord } from './task-record.ts';

/** 16.384 ms: a power of two, well below any deadline that a client may ask for. */
const SLOT_US = 16_384;
const SLOTS = 1_024;

export class DeadlineWheel {
  readonly #slots: (TaskRecord | null)[] = new Array<TaskRecord | null>(SLOTS).fill(null);
  #size = 0;
  #nextTurn = 0;

  get size(): number {
    return this.#size;
  }

  add(task: TaskRecord): void {
    const turn = Math.max(turnOf(task.deadlineAt), this.#nextTurn);
    const slot = turn % SLOTS;
    const head = this.#slots[slot] as TaskRecord | null;
    task.wheelSlot = slot;
    task.wheelNext = head;
    task.wheelPrevious = null;
    if (head !== null) head.wheelPrevious = task;
    this.#slots[slot] = task;
    this.#size += 1;
  }

  remove(task: TaskRecord): void {
    if (task.wheelSlot === -1) return;
    if (task.wheelPrevious === null) this.#slots[task.wheelSlot] = task.wheelNext;
    else task.wheelPrevious.wheelNext = task.wheelNext;
    if (task.wheelNext !== null) task.wheelNext.wheelPrevious = task.wheelPrevious;
    task.wheelSlot = -1;
    task.wheelNext = null;
    task.wheelPrevious = null;
    this.#size -= 1;
  }

  /** Takes out every task whose deadline has passed, in order of (deadline, id). O(tasks in the slots passed). */
  takeExpired(now: MonoUs): TaskRecord[] {
    const lastTurn = Math.floor(now / SLOT_US) - 1;
    if (lastTurn < this.#nextTurn) return [];
    const expired: TaskRecord[] = [];
    const turns = Math.min(SLOTS, lastTurn - this.#nextTurn + 1);
    for (let i = 0; i < turns; i++) {
      let task = this.#slots[(lastTurn - i) % SLOTS] as TaskRecord | null;
      while (task !== null) {
        const next: TaskRecord | null = task.wheelNext;
        if (task.deadlineAt <= now) {
          this.remove(task);
          expired.push(task);
        }
        task = next;
      }
    }
    this.#nextTurn = lastTurn + 1;
    return expired.sort((a, b) => a.deadlineAt - b.deadlineAt || a.spec.id - b.spec.id);
  }

  /** When `takeExpired` could find something next, or Infinity. At most SLOTS steps, usually few. */
  nextAt(): MonoUs {
    if (this.#size === 0) return Number.POSITIVE_INFINITY;
    for (let turn = this.#nextTurn; turn < this.#nextTurn + SLOTS; turn++) {
      if (this.#slots[turn % SLOTS] !== null) return (turn + 1) * SLOT_US;
    }
    return (this.#nextTurn + SLOTS) * SLOT_US;
  }
}

/** The turn during which the deadline falls; it is looked at when the turn is over. */
function turnOf(deadlineAt: MonoUs): number {
  return Math.floor(deadlineAt / SLOT_US);
}
