/**
 * The states of a breaker, whatever it guards: one model on one node, or one model everywhere.
 *
 *   closed ──tripped──► open (lease, the sleep doubles) ──by itself──► half-open ──the probe succeeds──► closed
 *                        ▲                                                │
 *                        └──────────────── the probe fails ───────────────┘
 *
 * Half-open lets one task through, the probe. It gives the place back when it ends in any way, so that a probe that
 * tells nothing (its client left) is followed by another. The place is a lease as well: while a probe runs longer than
 * the first sleep, another may try. So no state needs completed work to end.
 */
import type { DurationUs, MonoUs, TaskId } from '../../base/units.ts';
import type { HealthConfig } from '../config/types.ts';

export type BreakerState = 'closed' | 'open' | 'half-open';

/** Ids of tasks count from 1. */
const NOBODY: TaskId = 0;
const DOUBLINGS_MAX = 16;

/** What of a breaker survives a restart. */
export interface BreakerMemory {
  /** Remaining sleep, or 0. */
  readonly openForUs: DurationUs;
  /** Openings in a row, without proof in between: the exponent of the sleep. */
  readonly opens: number;
  /** Whether it had been opened and no probe had succeeded since. */
  readonly isTrial: boolean;
}

export class Breaker {
  openUntil: MonoUs = 0;
  /** When it was last opened. */
  openedAt: MonoUs = Number.NEGATIVE_INFINITY;
  opens = 0;
  /** Set by opening, cleared by a success: until then one task at a time may try. */
  isTrial = false;
  #probe: TaskId = NOBODY;
  #probeUntil: MonoUs = 0;
  #successes = 0;

  state(now: MonoUs): BreakerState {
    if (this.openUntil > now) return 'open';
    return this.isTrial ? 'half-open' : 'closed';
  }

  /** Whether nobody else may pass now. */
  isShut(now: MonoUs): boolean {
    return this.openUntil > now || (this.isTrial && this.#probe !== NOBODY && this.#probeUntil > now);
  }

  /** Until when the probe keeps others out; in the past when there is none. */
  get probeUntil(): MonoUs {
    return this.#probe === NOBODY ? 0 : this.#probeUntil;
  }

  /** Lets the task pass, if it may. The first one of a half-open breaker becomes its probe. */
  passes(taskId: TaskId, now: MonoUs, { ejectMs }: HealthConfig): boolean {
    if (!this.isTrial || this.#probe === taskId) return true;
    if (this.isShut(now)) return false;
    this.#probe = taskId;
    this.#probeUntil = now + ejectMs * 1_000;
    return true;
  }

  /** The probe ended, whatever became of it. For others nothing happens. */
  release(taskId: TaskId): void {
    if (this.#probe === taskId) this.#probe = NOBODY;
  }

  /** Whether an attempt counts that began then: not before it opened, and not while it was open. */
  heeds(startedAt: MonoUs): boolean {
    return startedAt >= this.openUntil;
  }

  open(now: MonoUs, { ejectMs, ejectMsMax }: HealthConfig): void {
    const sleepUs = Math.min(ejectMsMax, ejectMs * 2 ** Math.min(DOUBLINGS_MAX, this.opens)) * 1_000;
    this.opens += 1;
    this.openedAt = now;
    this.openUntil = Math.max(this.openUntil, now + sleepUs);
    this.isTrial = true;
    this.#probe = NOBODY;
    this.#successes = 0;
  }

  succeeded({ slowStartTasks }: HealthConfig): void {
    this.isTrial = false;
    this.#successes += 1;
    if (this.#successes >= slowStartTasks) this.opens = 0;
  }

  memory(now: MonoUs): BreakerMemory {
    return { openForUs: Math.max(0, this.openUntil - now), opens: this.opens, isTrial: this.isTrial };
  }

  /** Takes over what is remembered; a longer sleep that it has already stays. */
  restore({ openForUs, opens, isTrial }: BreakerMemory, now: MonoUs): void {
    this.opens = Math.max(this.opens, opens);
    this.isTrial ||= isTrial;
    if (openForUs > 0) this.openUntil = Math.max(this.openUntil, now + openForUs);
  }
}
