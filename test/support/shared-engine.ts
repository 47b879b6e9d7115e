/**
 * A node whose tasks share it: up to its knee each runs at full speed, beyond it they divide what there is, and what
 * there is shrinks with the crowd. Processor sharing, recomputed whenever a task comes or goes.
 */
import type { MonoUs, Rate, RefUs, TaskId } from '../../src/base/units.ts';

interface Job {
  readonly attempt: number;
  workUs: RefUs;
}

export class SharedEngine {
  readonly #knee: number;
  readonly #crowdLoss: number;
  readonly #jobs: Map<TaskId, Job> = new Map();
  #at: MonoUs = 0;
  #speed: Rate = 1;
  /** Grows with every task that comes or goes. */
  changes = 0;

  constructor(knee: number, crowdLoss: number) {
    this.#knee = knee;
    this.#crowdLoss = crowdLoss;
  }

  /** The speed holds for all tasks from now on. */
  add(
    id: TaskId,
    { attempt, workUs }: Job,
    { now, speed }: { readonly now: MonoUs; readonly speed: Rate },
  ): void {
    this.#advance(now);
    this.#speed = speed;
    this.#jobs.set(id, { attempt, workUs });
    this.changes += 1;
  }

  /** False when the task does not run here. */
  remove(id: TaskId, now: MonoUs): boolean {
    this.#advance(now);
    if (!this.#jobs.delete(id)) return false;
    this.changes += 1;
    return true;
  }

  /** The task that ends first if none comes or goes before. */
  next(
    now: MonoUs,
  ):
    | { readonly id: TaskId; readonly attempt: number; readonly at: MonoUs; readonly changes: number }
    | undefined {
    let first: [TaskId, Job] | undefined;
    for (const entry of this.#jobs)
      if (first === undefined || entry[1].workUs < first[1].workUs) first = entry;
    if (first === undefined) return undefined;
    const [id, { attempt, workUs }] = first;
    const at = now + Math.max(1, Math.ceil(workUs / this.#rate()));
    return { id, attempt, at, changes: this.changes };
  }

  #advance(now: MonoUs): void {
    const done = (now - this.#at) * this.#rate();
    this.#at = now;
    for (const job of this.#jobs.values()) job.workUs = Math.max(0, job.workUs - done);
  }

  #rate(): Rate {
    const inflight = this.#jobs.size;
    if (inflight <= this.#knee) return this.#speed;
    const crowd = (inflight - this.#knee) / this.#knee;
    return (this.#speed * this.#knee) / inflight / (1 + this.#crowdLoss * crowd);
  }
}
