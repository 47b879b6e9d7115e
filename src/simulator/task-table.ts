/**
 * Things under way by task id. Ids grow by one, and most are gone before many others came, so that a ring finds them by the
 * lower bits of their id at the price of one look, and makes no garbage: a Map that much comes and goes in leaves its old
 * tables behind, each of which keeps the next and all that was in it until the whole heap is swept.
 *
 * Two that want the same place make the ring grow, up to `PLACES_MAX` or eight times what it holds; beyond, the later one
 * goes to a map beside it.
 */
import type { TaskId } from '../base/units.ts';

const PLACES_MIN = 1_024;
export const PLACES_MAX: number = 1 << 20;
const PLACES_PER_ITEM_MAX = 8;
/** No task has it. */
const NOBODY: TaskId = -1;

export class TaskTable<T> {
  #mask = PLACES_MIN - 1;
  #ids = new Float64Array(PLACES_MIN).fill(NOBODY);
  #items: (T | undefined)[] = noItems<T>(PLACES_MIN);
  readonly #beside: Map<TaskId, T> = new Map();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: TaskId): T | undefined {
    const place = id & this.#mask;
    if (this.#ids[place] === id) return this.#items[place];
    return this.#beside.size === 0 ? undefined : this.#beside.get(id);
  }

  /** The id is new. */
  add(id: TaskId, item: T): void {
    this.#size += 1;
    while (this.#ids[id & this.#mask] !== NOBODY) {
      const places = this.#items.length;
      if (places >= Math.min(PLACES_MAX, PLACES_PER_ITEM_MAX * this.#size)) {
        this.#beside.set(id, item);
        return;
      }
      this.#grow();
    }
    this.#put(id, item);
  }

  delete(id: TaskId): void {
    const place = id & this.#mask;
    if (this.#ids[place] === id) {
      this.#ids[place] = NOBODY;
      this.#items[place] = undefined;
    } else if (!this.#beside.delete(id)) return;
    this.#size -= 1;
  }

  /** In order of ids. O(n log n). */
  all(): readonly T[] {
    return this.#entries()
      .sort(([one], [other]) => one - other)
      .map(([, item]) => item);
  }

  clear(): void {
    this.#ids.fill(NOBODY);
    this.#items.fill(undefined);
    this.#beside.clear();
    this.#size = 0;
  }

  #put(id: TaskId, item: T): void {
    const place = id & this.#mask;
    this.#ids[place] = id;
    this.#items[place] = item;
  }

  #entries(): [TaskId, T][] {
    const entries: [TaskId, T][] = [...this.#beside];
    for (const [place, item] of this.#items.entries())
      if (item !== undefined) entries.push([this.#ids[place] as TaskId, item]);
    return entries;
  }

  #grow(): void {
    const entries = this.#entries();
    const places = 2 * this.#items.length;
    this.#mask = places - 1;
    this.#ids = new Float64Array(places).fill(NOBODY);
    this.#items = noItems<T>(places);
    this.#beside.clear();
    for (const [id, item] of entries)
      if (this.#ids[id & this.#mask] === NOBODY) this.#put(id, item);
      else this.#beside.set(id, item);
  }
}

function noItems<T>(places: number): (T | undefined)[] {
  return Array.from({ length: places }, () => undefined);
}
