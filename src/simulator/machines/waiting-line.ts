/**
 * Jobs that wait inside an engine, first come first served. Who leaves is found by its job; an engine that cannot take a
 * job out keeps its place and computes it for nobody.
 *
 * Invariant: `size` counts those that will still be computed. What was taken out leaves a hole that is passed over once.
 */
import type { ModelId } from '../../base/units.ts';
import type { Demand, Job } from './machine.ts';

export interface Waiter {
  /** Undefined once nobody wants it. */
  job: Job | undefined;
  readonly demand: Demand;
  readonly noise: number;
  readonly model: ModelId;
  isOut: boolean;
}

/** Holes at the front are given back when there are as many as this and more of them than of others. */
const HOLES_MIN = 64;

export class WaitingLine {
  #line: Waiter[] = [];
  #head = 0;
  #size = 0;
  readonly #byJob: Map<Job, Waiter> = new Map();

  get size(): number {
    return this.#size;
  }

  push(job: Job, model: ModelId): void {
    const waiter = { job, demand: job.demand, noise: job.noise, model, isOut: false };
    this.#byJob.set(job, waiter);
    this.#line.push(waiter);
    this.#size += 1;
  }

  /** The first one; O(1) over time. */
  peek(): Waiter | undefined {
    while (this.#line[this.#head]?.isOut === true) this.#head += 1;
    return this.#line[this.#head];
  }

  /** Those who wait, in order. */
  *[Symbol.iterator](): IterableIterator<Waiter> {
    for (let at = this.#head; at < this.#line.length; at++) {
      const waiter = this.#line[at] as Waiter;
      if (!waiter.isOut) yield waiter;
    }
  }

  /** Its turn came, whoever stands before it. */
  take(waiter: Waiter): void {
    if (waiter.job !== undefined) this.#byJob.delete(waiter.job);
    waiter.isOut = true;
    this.#size -= 1;
    if (this.#size === 0) {
      this.#line = [];
      this.#head = 0;
    } else this.#giveBack();
  }

  /** False when the job does not wait here. `stays`: it will be computed for nobody. */
  leave(job: Job, { stays }: { readonly stays: boolean }): boolean {
    const waiter = this.#byJob.get(job);
    if (waiter === undefined) return false;
    if (stays) {
      this.#byJob.delete(job);
      waiter.job = undefined;
    } else this.take(waiter);
    return true;
  }

  /** Empties it; those that somebody wants are returned in order. */
  clear(): readonly Job[] {
    const jobs = [...this.#byJob.keys()];
    this.#byJob.clear();
    this.#line = [];
    this.#head = 0;
    this.#size = 0;
    return jobs;
  }

  #giveBack(): void {
    this.peek();
    if (this.#head < HOLES_MIN || this.#head * 2 < this.#line.length) return;
    this.#line = this.#line.slice(this.#head);
    this.#head = 0;
  }
}
