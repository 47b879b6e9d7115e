/**
 * The live tasks by id: a table of slots that an id finds by its lowest bits.
 *
 * Ids are numbered in order of arrival, so those of the tasks that live at the same time lie close to each other, have slots of
 * their own, and the newest ones are neighbours in memory; a hash map scatters them. Who lives so long that a later id
 * comes by its slot makes way to a map of strays. Grows with the tasks that live at once, and keeps that size.
 */
import type { TaskId } from '../../base/units.ts';
import type { TaskRecord } from './task-record.ts';

const CAPACITY_MIN = 64;

export class LiveTasks {
  #tasks: (TaskRecord | null)[] = Array.from({ length: CAPACITY_MIN }, () => null);
  #mask: number = CAPACITY_MIN - 1;
  #size = 0;
  readonly #strays: Map<TaskId, TaskRecord> = new Map();

  get size(): number {
    return this.#size;
  }

  get(id: TaskId): TaskRecord | undefined {
    const task = this.#tasks[id & this.#mask] as TaskRecord | null;
    if (task !== null && task.id === id) return task;
    return this.#strays.size === 0 ? undefined : this.#strays.get(id);
  }

  has(id: TaskId): boolean {
    return this.get(id) !== undefined;
  }

  /** Adds a task; whoever has its id already gives way. O(1) but for growing. */
  add(task: TaskRecord): void {
    const { id } = task;
    if (this.has(id)) this.delete(id);
    if (2 * this.#size >= this.#tasks.length) this.#grow();
    const slot = id & this.#mask;
    const other = this.#tasks[slot] as TaskRecord | null;
    if (other !== null) this.#strays.set(other.id, other);
    this.#tasks[slot] = task;
    this.#size += 1;
  }

  /** Whether it was there. */
  delete(id: TaskId): boolean {
    const slot = id & this.#mask;
    if (this.#tasks[slot]?.id === id) this.#tasks[slot] = null;
    else if (this.#strays.size === 0 || !this.#strays.delete(id)) return false;
    this.#size -= 1;
    return true;
  }

  /** All of them in order of their ids. O(tasks x log). */
  inOrder(): readonly TaskRecord[] {
    const present = this.#tasks.filter((task) => task !== null);
    return [...present, ...this.#strays.values()].sort((a, b) => a.id - b.id);
  }

  #grow(): void {
    const tasks = this.inOrder();
    const capacity = 2 * this.#tasks.length;
    this.#tasks = Array.from({ length: capacity }, () => null);
    this.#mask = capacity - 1;
    this.#strays.clear();
    this.#size = 0;
    for (const task of tasks) this.add(task);
  }
}
