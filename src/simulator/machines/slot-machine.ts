/**
 * A server with a number of slots that do not touch each other, and a queue of its own behind them: a Stable Diffusion
 * server is one slot. The service time of a job is a function of what it asks for; noise comes with the job.
 *
 * Invariants: at most `slots` jobs run; jobs that wait start in order of arrival at the instant at which a slot is free.
 * Cost: O(slots) when a job starts or ends, and no allocation while nothing waits.
 */
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { Demand, Job, Machine, MachineSink } from './machine.ts';
import type { Residency } from './residency.ts';
import { WaitingLine } from './waiting-line.ts';

const OK: AttemptResult = Object.freeze({ kind: 'ok' });
const NEVER: MonoUs = Number.POSITIVE_INFINITY;

export interface SlotMachineOptions {
  readonly slots: number;
  /** Alone, without noise. */
  readonly serviceUs: (demand: Demand) => DurationUs;
  /** Until the first byte of an answer that comes in pieces. Absent: it comes whole. */
  readonly firstByteUs?: (demand: Demand) => DurationUs;
  /** Whether a job that is aborted frees its slot, or its place in the queue. Absent: it does. */
  readonly canAbort?: boolean;
  /** Absent: all models are in memory. */
  readonly residency?: Residency | undefined;
}

/** What occupies a slot. Records are used again. */
interface Seat {
  isTaken: boolean;
  /** Undefined while it is free, or computes for nobody. */
  job: Job | undefined;
  model: ModelId;
  startedAt: MonoUs;
  /** NEVER where there is no first byte, or it was told. */
  firstAt: MonoUs;
  endsAt: MonoUs;
}

export class SlotMachine implements Machine {
  readonly #options: SlotMachineOptions;
  readonly #seats: readonly Seat[];
  readonly #waiting = new WaitingLine();
  #taken = 0;
  /** The seat at which something happens first. */
  #next: Seat;
  #nextAt: MonoUs = NEVER;
  #speed = 1;
  #busyUs: DurationUs = 0;

  constructor(options: SlotMachineOptions) {
    this.#options = options;
    this.#seats = Array.from({ length: options.slots }, createSeat);
    this.#next = this.#seats[0] as Seat;
  }

  get inflight(): number {
    return this.#taken + this.#waiting.size;
  }

  get swaps(): number {
    return this.#options.residency?.swaps ?? 0;
  }

  nextAt(): MonoUs {
    return this.#nextAt;
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
    for (const seat of this.#seats) if (seat.isTaken) busyUs += now - seat.startedAt;
    return busyUs;
  }

  start(job: Job, model: ModelId, now: MonoUs): void {
    const { residency } = this.#options;
    if (this.#taken < this.#options.slots && this.#waiting.size === 0) {
      const swapUs = residency === undefined ? 0 : residency.acquire(model);
      if (swapUs !== undefined) {
        const seat = this.#sit(job, swapUs, now);
        seat.job = job;
        seat.model = model;
        return this.#findNext();
      }
    }
    this.#waiting.push(job, model);
  }

  abort(job: Job, now: MonoUs): void {
    const stays = this.#options.canAbort === false;
    const seat = this.#seatOf(job);
    if (seat === undefined) {
      this.#waiting.leave(job, { stays });
      this.#fill(now);
    } else if (stays) {
      seat.job = undefined;
      seat.firstAt = NEVER;
    } else {
      this.#free(seat, now);
      this.#fill(now);
    }
    this.#findNext();
  }

  advance(now: MonoUs, sink: MachineSink): void {
    while (this.#nextAt <= now) {
      const seat = this.#next;
      const at = this.#nextAt;
      const job = seat.job;
      if (seat.firstAt < seat.endsAt) {
        seat.firstAt = NEVER;
        this.#findNext();
        sink.firstByte(job as Job);
      } else {
        this.#free(seat, at);
        if (this.#waiting.size > 0) this.#fill(at);
        this.#findNext();
        if (job !== undefined) sink.ended(job, OK);
      }
    }
  }

  /** What runs keeps the part that is done. */
  setSpeed(factor: number, now: MonoUs): void {
    const stretch = this.#speed / factor;
    this.#speed = factor;
    const moved = (at: MonoUs): MonoUs => now + Math.round(Math.max(0, at - now) * stretch);
    for (const seat of this.#seats) {
      if (!seat.isTaken) continue;
      seat.endsAt = moved(seat.endsAt);
      if (seat.firstAt !== NEVER) seat.firstAt = moved(seat.firstAt);
    }
    this.#findNext();
  }

  drop(now: MonoUs): readonly Job[] {
    const jobs: Job[] = [];
    for (const seat of this.#seats) {
      if (seat.job !== undefined) jobs.push(seat.job);
      if (seat.isTaken) this.#free(seat, now);
    }
    jobs.push(...this.#waiting.clear());
    this.#options.residency?.clear();
    this.#findNext();
    return jobs;
  }

  /** Takes the first free seat for what is asked. */
  #sit(
    { demand, noise }: { readonly demand: Demand; readonly noise: number },
    swapUs: DurationUs,
    now: MonoUs,
  ): Seat {
    const seat = this.#freeSeat();
    const { firstByteUs, serviceUs } = this.#options;
    const us = (swapUs + serviceUs(demand) * noise) / this.#speed;
    seat.isTaken = true;
    seat.startedAt = now;
    seat.endsAt = now + Math.max(1, Math.round(us));
    if (firstByteUs !== undefined && demand.kind === 'text') {
      const firstUs = (swapUs + firstByteUs(demand) * noise) / this.#speed;
      seat.firstAt = now + Math.max(1, Math.round(firstUs));
    }
    this.#taken += 1;
    return seat;
  }

  #seatOf(job: Job): Seat | undefined {
    for (const seat of this.#seats) if (seat.job === job) return seat;
    return undefined;
  }

  // By index here and below: an iterator makes an object for each seat where the compiler does not see through it.
  #freeSeat(): Seat {
    for (let at = 0; at < this.#seats.length; at++) {
      const seat = this.#seats[at] as Seat;
      if (!seat.isTaken) return seat;
    }
    throw new RangeError('A job sits down only where a slot is free');
  }

  /** Lets those who wait sit down, in order; the first one waits for its model, and everybody for the first one. */
  #fill(now: MonoUs): void {
    const { residency, slots } = this.#options;
    while (this.#taken < slots) {
      const waiter = this.#waiting.peek();
      if (waiter === undefined) return;
      const swapUs = residency === undefined ? 0 : residency.acquire(waiter.model);
      if (swapUs === undefined) return;
      this.#waiting.take(waiter);
      const seat = this.#sit(waiter, swapUs, now);
      seat.job = waiter.job;
      seat.model = waiter.model;
      if (waiter.job === undefined) seat.firstAt = NEVER;
    }
  }

  #free(seat: Seat, at: MonoUs): void {
    this.#busyUs += at - seat.startedAt;
    this.#options.residency?.release(seat.model);
    this.#taken -= 1;
    seat.isTaken = false;
    seat.job = undefined;
    seat.firstAt = NEVER;
    seat.endsAt = NEVER;
  }

  #findNext(): void {
    this.#nextAt = NEVER;
    for (let place = 0; place < this.#seats.length; place++) {
      const seat = this.#seats[place] as Seat;
      const at = seat.firstAt < seat.endsAt ? seat.firstAt : seat.endsAt;
      if (at >= this.#nextAt) continue;
      this.#nextAt = at;
      this.#next = seat;
    }
  }
}

function createSeat(): Seat {
  return { isTaken: false, job: undefined, model: '', startedAt: 0, firstAt: NEVER, endsAt: NEVER };
}
