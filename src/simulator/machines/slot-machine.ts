/**
 * A server with a number of slots that do not touch each other, and a queue of its own behind them: a Stable Diffusion
 * server is one slot. The service time of a job is a function of what it asks for; noise comes with the job.
 *
 * Invariants: at most `slots` jobs run; jobs that wait start in order of arrival at the instant at which a slot is free.
 */
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { Demand, Job, Machine, MachineSink } from './machine.ts';

const OK: AttemptResult = Object.freeze({ kind: 'ok' });

export interface SlotMachineOptions {
  readonly slots: number;
  /** Alone, without noise. */
  readonly serviceUs: (demand: Demand) => DurationUs;
}

class Seat {
  readonly job: Job;
  readonly startedAt: MonoUs;
  readonly place: HeapSlot<Seat>;

  constructor(job: Job, startedAt: MonoUs, order: number) {
    this.job = job;
    this.startedAt = startedAt;
    this.place = new HeapSlot<Seat>(this, order);
  }
}

export class SlotMachine implements Machine {
  readonly swaps = 0;
  readonly #options: SlotMachineOptions;
  readonly #ends = new KeyedHeap<Seat>();
  readonly #seats: Map<Job, Seat> = new Map();
  readonly #waiting: Set<Job> = new Set();
  #speed = 1;
  #order = 0;
  #busyUs: DurationUs = 0;

  constructor(options: SlotMachineOptions) {
    this.#options = options;
  }

  get inflight(): number {
    return this.#ends.size + this.#waiting.size;
  }

  nextAt(): MonoUs {
    return this.#ends.leastKey;
  }

  serviceUs(demand: Demand): DurationUs {
    return Math.max(1, Math.round(this.#options.serviceUs(demand) / this.#speed));
  }

  perSecond(mix: readonly Demand[]): number {
    const sumUs = mix.reduce((sum, demand) => sum + this.serviceUs(demand), 0);
    return sumUs === 0 ? 0 : (this.#options.slots * mix.length * 1_000_000) / sumUs;
  }

  busyUs(now: MonoUs): DurationUs {
    let busyUs = this.#busyUs;
    for (const seat of this.#ends) busyUs += now - seat.startedAt;
    return busyUs;
  }

  start(job: Job, _model: ModelId, now: MonoUs): void {
    if (this.#ends.size >= this.#options.slots) this.#waiting.add(job);
    else this.#sit(job, now);
  }

  abort(job: Job, now: MonoUs): void {
    if (this.#waiting.delete(job)) return;
    const seat = this.#seats.get(job);
    if (seat === undefined) return;
    this.#ends.remove(seat.place);
    this.#leave(seat, now);
  }

  advance(now: MonoUs, sink: MachineSink): void {
    while (this.#ends.leastKey <= now) {
      const at = this.#ends.leastKey;
      const seat = this.#ends.pop() as Seat;
      this.#leave(seat, at);
      sink.ended(seat.job, OK);
    }
  }

  /** What runs keeps the part that is done. */
  setSpeed(factor: number, now: MonoUs): void {
    const stretch = this.#speed / factor;
    this.#speed = factor;
    for (const seat of this.#seats.values()) {
      const leftUs = Math.max(0, this.#ends.keyOf(seat.place) - now);
      this.#ends.update(seat.place, now + Math.round(leftUs * stretch));
    }
  }

  drop(now: MonoUs): readonly Job[] {
    const jobs = [...this.#seats.keys(), ...this.#waiting];
    this.#waiting.clear();
    for (const seat of [...this.#seats.values()]) {
      this.#ends.remove(seat.place);
      this.#leave(seat, now);
    }
    return jobs;
  }

  #sit(job: Job, now: MonoUs): void {
    const seat = new Seat(job, now, this.#order++);
    this.#seats.set(job, seat);
    const serviceUs = (this.#options.serviceUs(job.demand) * job.noise) / this.#speed;
    this.#ends.push(seat.place, now + Math.max(1, Math.round(serviceUs)));
  }

  #leave(seat: Seat, at: MonoUs): void {
    this.#seats.delete(seat.job);
    this.#busyUs += at - seat.startedAt;
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    this.#sit(next, at);
  }
}
