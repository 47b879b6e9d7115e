/**
 * Requests under way by id. Ids grow by one, and most requests are gone before many others came, so that a ring finds them
 * by the lower bits of their id at the price of one look. Two that want the same place make the ring grow, up to
 * `PLACES_MAX` or eight times what it holds; beyond, the later one goes to a map beside it.
 */
import type { TaskId } from '../base/units.ts';
import type { SimJob } from './sim-job.ts';

const PLACES_MIN = 1_024;
const PLACES_MAX = 1 << 20;
const PLACES_PER_JOB_MAX = 8;

export class JobTable {
  #ring: (SimJob | undefined)[] = emptyRing(PLACES_MIN);
  #mask = PLACES_MIN - 1;
  readonly #beside: Map<TaskId, SimJob> = new Map();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: TaskId): SimJob | undefined {
    const job = this.#ring[id & this.#mask];
    if (job !== undefined && job.id === id) return job;
    return this.#beside.size === 0 ? undefined : this.#beside.get(id);
  }

  add(job: SimJob): void {
    this.#size += 1;
    for (;;) {
      const place = job.id & this.#mask;
      if (this.#ring[place] === undefined) {
        this.#ring[place] = job;
        return;
      }
      if (this.#ring.length >= Math.min(PLACES_MAX, PLACES_PER_JOB_MAX * this.#size)) break;
      this.#grow();
    }
    this.#beside.set(job.id, job);
  }

  delete({ id }: SimJob): void {
    const place = id & this.#mask;
    if (this.#ring[place]?.id === id) this.#ring[place] = undefined;
    else if (!this.#beside.delete(id)) return;
    this.#size -= 1;
  }

  /** In order of id. O(n log n). */
  all(): readonly SimJob[] {
    const inRing = this.#ring.filter((job) => job !== undefined);
    return [...inRing, ...this.#beside.values()].sort((one, other) => one.id - other.id);
  }

  clear(): void {
    this.#ring.fill(undefined);
    this.#beside.clear();
    this.#size = 0;
  }

  #grow(): void {
    const jobs = this.all();
    this.#ring = emptyRing(2 * this.#ring.length);
    this.#mask = this.#ring.length - 1;
    this.#beside.clear();
    for (const job of jobs) {
      const place = job.id & this.#mask;
      if (this.#ring[place] === undefined) this.#ring[place] = job;
      else this.#beside.set(job.id, job);
    }
  }
}

function emptyRing(places: number): (SimJob | undefined)[] {
  return Array.from({ length: places }, () => undefined);
}
