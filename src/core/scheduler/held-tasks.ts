/**
 * Tasks that a pass over a lane stepped over, in fair order, each with the instant at which it would be done on the node
 * that it waits for (Infinity when it waits for none), and the node with room that it did not take. One per scheduler, used by one pass at a time: a list of its own
 * for every freed node would be most of what dispatch allocates. Holds at most `placement.heldMax`.
 */
import type { MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';

interface HeldTask {
  task: TaskRecord;
  doneAt: MonoUs;
  offered: NodeRecord | null;
}

export class HeldTasks {
  /** Entries stay for the next pass; those from `size` on are not held. */
  readonly #entries: HeldTask[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  clear(): void {
    this.#size = 0;
  }

  push(task: TaskRecord, doneAt: MonoUs, offered: NodeRecord | null): void {
    const entry = this.#entries[this.#size++];
    if (entry === undefined) {
      this.#entries.push({ task, doneAt, offered });
      return;
    }
    entry.task = task;
    entry.doneAt = doneAt;
    entry.offered = offered;
  }

  task(index: number): TaskRecord {
    return (this.#entries[index] as HeldTask).task;
  }

  doneAt(index: number): MonoUs {
    return (this.#entries[index] as HeldTask).doneAt;
  }

  offered(index: number): NodeRecord | null {
    return (this.#entries[index] as HeldTask).offered;
  }

  /** Takes one out; the order of the others stays. O(held). */
  remove(index: number): void {
    const entries = this.#entries;
    const removed = entries[index] as HeldTask;
    this.#size -= 1;
    for (let at = index; at < this.#size; at++) entries[at] = entries[at + 1] as HeldTask;
    entries[this.#size] = removed;
  }
}
