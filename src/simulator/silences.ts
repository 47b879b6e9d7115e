/**
 * When attempts will have been silent for too long. Nearly all of them end long before: so a bound that is over stays in
 * the heap until its instant comes, and one that is later than what a job has there already is looked up only then. A
 * request costs no move in the heap, where most had cost two.
 *
 * Invariant: a job with a bound is in the heap at its instant or before.
 */
import { HeapSlot, KeyedHeap } from '../base/keyed-heap.ts';
import type { MonoUs } from '../base/units.ts';
import type { SimJob } from './sim-job.ts';

const NEVER: MonoUs = Number.POSITIVE_INFINITY;

export class Silences {
  readonly #heap = new KeyedHeap<SimJob>();

  /** The least bound; Infinity when there is none. */
  nextAt(): MonoUs {
    for (;;) {
      const at = this.#heap.leastKey;
      if (at === NEVER) return NEVER;
      const job = this.#heap.peek() as SimJob;
      if (job.silentAt === at) return at;
      this.forget(job);
      if (job.silentAt < NEVER) this.#push(job);
    }
  }

  /** The job whose bound is the least; to be asked after `nextAt`. */
  peek(): SimJob {
    return this.#heap.peek() as SimJob;
  }

  bound(job: SimJob, at: MonoUs): void {
    job.silentAt = at;
    const { silence } = job;
    if (silence?.isInHeap === true && this.#heap.keyOf(silence) < at) return;
    this.forget(job);
    this.#push(job);
  }

  /** The job is not to be kept for the sake of a bound that is over. */
  forget({ silence }: SimJob): void {
    if (silence?.isInHeap === true) this.#heap.remove(silence);
  }

  #push(job: SimJob): void {
    job.silence ??= new HeapSlot<SimJob>(job, job.id);
    job.silence.order = job.id;
    this.#heap.push(job.silence, job.silentAt);
  }
}
