/**
 * A server that computes pictures together: a pass over a batch takes `fixed + variable of each`, which is less than one
 * after the other. A pass takes who waits when it begins: the first one and those of the same model after it, as many as
 * fit. Nobody joins later, and all end together.
 *
 * Invariants: one pass at a time; its size is at most `sizeMax`, unless one job alone is larger.
 */
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { Demand, Job, Machine, MachineSink } from './machine.ts';
import type { Residency } from './residency.ts';
import { type Waiter, WaitingLine } from './waiting-line.ts';

const OK: AttemptResult = Object.freeze({ kind: 'ok' });

export interface BatchTimes {
  /** Once per pass. */
  readonly fixedUs: (demand: Demand) => DurationUs;
  readonly variableUs: (demand: Demand) => DurationUs;
  /** How much of the batch it takes. */
  readonly size: (demand: Demand) => number;
}

export interface ImageBatchOptions extends BatchTimes {
  readonly sizeMax: number;
  /** Whether a pass that nobody wants any more is given up, and who waits can leave the queue. Absent: yes. */
  readonly canAbort?: boolean;
  readonly residency?: Residency | undefined;
}

interface Pass {
  /** Undefined for those that nobody wants any more. */
  readonly jobs: (Job | undefined)[];
  readonly model: ModelId;
  readonly startedAt: MonoUs;
  endsAt: MonoUs;
}

export class ImageBatch implements Machine {
  readonly #options: ImageBatchOptions;
  readonly #waiting = new WaitingLine();
  #pass: Pass | undefined;
  #speed = 1;
  #busyUs: DurationUs = 0;

  constructor(options: ImageBatchOptions) {
    this.#options = options;
  }

  get inflight(): number {
    return this.#waiting.size + (this.#pass?.jobs.length ?? 0);
  }

  get swaps(): number {
    return this.#options.residency?.swaps ?? 0;
  }

  nextAt(): MonoUs {
    return this.#pass?.endsAt ?? Number.POSITIVE_INFINITY;
  }

  serviceUs(demand: Demand): DurationUs {
    const { fixedUs, variableUs } = this.#options;
    return Math.max(1, Math.round((fixedUs(demand) + variableUs(demand)) / this.#speed));
  }

  /** In passes as they would be formed from this sequence over and over. */
  perSecond(mix: readonly Demand[]): number {
    if (mix.length === 0) return 0;
    const lookedAt = Math.ceil(this.#options.sizeMax) + 1;
    let sumUs = 0;
    let done = 0;
    // A short mix is gone through often enough that where the last pass ends does not count.
    while (done < Math.max(mix.length, 64 * lookedAt)) {
      const next = Array.from({ length: lookedAt }, (_, at) => mix[(done + at) % mix.length] as Demand);
      const batch = this.#fitting(next, (demand) => demand);
      sumUs += this.#passUs(batch.map((demand) => ({ demand, noise: 1 })));
      done += batch.length;
    }
    return (done * 1_000_000) / sumUs;
  }

  busyUs(now: MonoUs): DurationUs {
    return this.#busyUs + (this.#pass === undefined ? 0 : now - this.#pass.startedAt);
  }

  start(job: Job, model: ModelId, now: MonoUs): void {
    this.#waiting.push(job, model);
    if (this.#pass === undefined) this.#begin(now);
  }

  abort(job: Job, now: MonoUs): void {
    const stays = this.#options.canAbort === false;
    const place = this.#pass?.jobs.indexOf(job) ?? -1;
    if (this.#pass === undefined || place < 0) {
      this.#waiting.leave(job, { stays });
      return;
    }
    this.#pass.jobs[place] = undefined;
    if (stays || this.#pass.jobs.some((other) => other !== undefined)) return;
    this.#close(this.#pass, now);
    this.#begin(now);
  }

  advance(now: MonoUs, sink: MachineSink): void {
    while (this.#pass !== undefined && this.#pass.endsAt <= now) {
      const { endsAt, jobs } = this.#pass;
      this.#close(this.#pass, endsAt);
      this.#begin(endsAt);
      for (const job of jobs) if (job !== undefined) sink.ended(job, OK);
    }
  }

  /** The pass keeps the part that is done. */
  setSpeed(factor: number, now: MonoUs): void {
    const stretch = this.#speed / factor;
    this.#speed = factor;
    const pass = this.#pass;
    if (pass !== undefined) pass.endsAt = now + Math.round(Math.max(0, pass.endsAt - now) * stretch);
  }

  drop(now: MonoUs): readonly Job[] {
    const jobs = (this.#pass?.jobs ?? []).filter((job) => job !== undefined);
    if (this.#pass !== undefined) this.#close(this.#pass, now);
    this.#options.residency?.clear();
    return [...jobs, ...this.#waiting.clear()];
  }

  #begin(now: MonoUs): void {
    const first = this.#waiting.peek();
    if (first === undefined) return;
    const { model } = first;
    const sameModel: Waiter[] = [];
    for (const waiter of this.#waiting) {
      if (waiter.model === model) sameModel.push(waiter);
      if (sameModel.length > this.#options.sizeMax) break;
    }
    const batch = this.#fitting(sameModel, ({ demand }) => demand);
    const jobs = batch.map(({ job }) => job);
    for (const waiter of batch) this.#waiting.take(waiter);
    // One pass at a time: no model is in use when the next pass begins, so that there is a place for it.
    const swapUs = this.#options.residency?.acquire(model) ?? 0;
    const us = Math.round(this.#passUs(batch) + swapUs / this.#speed);
    this.#pass = { jobs, model, startedAt: now, endsAt: now + Math.max(1, us) };
  }

  /** The first ones that fit together; always one. */
  #fitting<T>(candidates: readonly T[], demandOf: (candidate: T) => Demand): readonly T[] {
    let size = 0;
    let count = 0;
    for (const candidate of candidates) {
      size += this.#options.size(demandOf(candidate));
      if (count > 0 && size > this.#options.sizeMax) break;
      count += 1;
    }
    return candidates.slice(0, count);
  }

  #passUs(batch: readonly { readonly demand: Demand; readonly noise: number }[]): DurationUs {
    let fixedUs = 0;
    let variableUs = 0;
    let noise = 0;
    for (const member of batch) {
      fixedUs = Math.max(fixedUs, this.#options.fixedUs(member.demand));
      variableUs += this.#options.variableUs(member.demand) * member.noise;
      noise += member.noise / batch.length;
    }
    return (fixedUs * noise + variableUs) / this.#speed;
  }

  #close(pass: Pass, at: MonoUs): void {
    this.#busyUs += at - pass.startedAt;
    this.#options.residency?.release(pass.model);
    this.#pass = undefined;
  }
}
