/**
 * A first-in, first-out list of tasks whose members can be taken out anywhere in O(1): they are linked through their own
 * fields, so a task is in one list at most.
 */
import { invariant } from '../../../base/assert.ts';
import type { BaselineTask } from './baseline-task.ts';

export class TaskList {
  #first: BaselineTask | null = null;
  #last: BaselineTask | null = null;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): BaselineTask | null {
    return this.#first;
  }

  push(task: BaselineTask): void {
    invariant(task.list === null, 'A task is in one list at most');
    task.list = this;
    task.previous = this.#last;
    if (this.#last === null) this.#first = task;
    else this.#last.next = task;
    this.#last = task;
    this.#size += 1;
  }

  remove(task: BaselineTask): void {
    invariant(task.list === this, 'Only a member can be taken out');
    if (task.previous === null) this.#first = task.next;
    else task.previous.next = task.next;
    if (task.next === null) this.#last = task.previous;
    else task.next.previous = task.previous;
    task.list = null;
    task.previous = null;
    task.next = null;
    this.#size -= 1;
  }

  /** In order; the list may lose the member at hand meanwhile. */
  *[Symbol.iterator](): IterableIterator<BaselineTask> {
    for (let task = this.#first; task !== null; ) {
      const { next } = task;
      yield task;
      task = next;
    }
  }
}
