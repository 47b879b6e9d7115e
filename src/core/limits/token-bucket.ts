/**
 * A token bucket with continuous refill. It has no timer: the level is worked out from the time that passed, whenever
 * somebody asks.
 *
 *   level(t) = min(burst, level(s) + (t − s) · perMinute / 60 s)
 *
 * The level is an integer in millionths of a unit (one request, one token), and the part of a millionth that a span of
 * time leaves over is carried, so that many small steps refill exactly as much as one large step.
 *
 * Invariants: −burst ≤ level ≤ burst; what is taken in any window, less what is given back in it, is at most
 * `burst + perMinute · window`; `reserved` is the sum of what is out, never below 0. Below zero the bucket is in debt,
 * by work that turned out larger than its estimate; the debt is bounded by the burst, so that one wrong estimate shuts
 * nobody out for longer than twice the time that a burst takes to refill.
 */
import { invariant } from '../../base/assert.ts';
import type { DurationUs, MonoUs } from '../../base/units.ts';

const MICRO = 1_000_000;
/** A rate of one a minute adds one millionth of a unit every 60 µs. */
const US_PER_MICRO = 60;

export interface BucketRate {
  /** Units a minute, whole, from 1 to 1e9. */
  readonly perMinute: number;
  /** Most units that can be taken at once, whole, from 1 to 1e9. */
  readonly burst: number;
}

export class TokenBucket {
  /** Units taken and not yet settled. */
  reserved = 0;
  #rate: BucketRate;
  /** Millionths of a unit. */
  #level: number;
  /** Sixtieths of a millionth that have been earned beyond the level. */
  #rest = 0;
  #at: MonoUs;

  constructor(rate: BucketRate, now: MonoUs) {
    this.#rate = rate;
    this.#level = rate.burst * MICRO;
    this.#at = now;
  }

  get rate(): BucketRate {
    return this.#rate;
  }

  /**
   * Takes over another rate and burst. What is in the bucket stays, cut to the new burst: a change never adds anything,
   * or whoever changes the limits to and fro would pay the same units out again and again.
   */
  configure(rate: BucketRate, now: MonoUs): void {
    this.#refill(now);
    this.#rate = rate;
    this.#set(this.#level);
  }

  /** Time until so many units can be taken: 0 when they can be at once, Infinity when never. Exact to the microsecond. O(1). */
  waitUs(units: number, now: MonoUs): DurationUs {
    if (units > this.#rate.burst) return Number.POSITIVE_INFINITY;
    return this.#usUntil(units * MICRO, now);
  }

  /** Takes units for which `waitUs` is 0. */
  take(units: number, now: MonoUs): void {
    this.#refill(now);
    invariant(units * MICRO <= this.#level, 'Only what is in the bucket is taken');
    this.#level -= units * MICRO;
    this.reserved += units;
  }

  /** Ends a reservation: the bucket pays for `used` instead of what was reserved. */
  settle(reserved: number, used: number, now: MonoUs): void {
    invariant(reserved <= this.reserved, 'A reservation is settled once');
    this.#refill(now);
    this.reserved -= reserved;
    this.#set(this.#level + (reserved - used) * MICRO);
  }

  /** Whole units that can be taken now. */
  remaining(now: MonoUs): number {
    return Math.max(0, Math.floor(this.#levelAt(now) / MICRO));
  }

  /** Millionths of a unit, negative while in debt. */
  levelMicro(now: MonoUs): number {
    return this.#levelAt(now);
  }

  /** Time until the bucket is full again if nothing more is taken. */
  fullUs(now: MonoUs): DurationUs {
    return this.#usUntil(this.#rate.burst * MICRO, now);
  }

  #usUntil(level: number, now: MonoUs): DurationUs {
    const missing = level - this.#level;
    if (missing <= 0) return 0;
    const { perMinute } = this.#rate;
    // In two parts, since sixtieths of a millionth of a large burst are no exact integers any more.
    const whole = Math.floor(missing / perMinute);
    const last = (missing - whole * perMinute) * US_PER_MICRO - this.#rest;
    return Math.max(0, this.#at + whole * US_PER_MICRO + Math.ceil(last / perMinute) - now);
  }

  #levelAt(now: MonoUs): number {
    const { perMinute, burst } = this.#rate;
    const elapsedUs = Math.max(0, now - this.#at);
    const whole = Math.floor(elapsedUs / US_PER_MICRO);
    const rest = (elapsedUs - whole * US_PER_MICRO) * perMinute + this.#rest;
    // A product too large to be exact is far beyond the burst.
    const gained = whole * perMinute + Math.floor(rest / US_PER_MICRO);
    return Math.min(burst * MICRO, this.#level + gained);
  }

  #refill(now: MonoUs): void {
    if (now <= this.#at) return;
    const { perMinute } = this.#rate;
    const level = this.#levelAt(now);
    this.#rest = (((now - this.#at) % US_PER_MICRO) * perMinute + this.#rest) % US_PER_MICRO;
    this.#at = now;
    this.#set(level);
  }

  /** At either end the part of a millionth is lost. */
  #set(level: number): void {
    const most = this.#rate.burst * MICRO;
    this.#level = Math.max(-most, Math.min(most, level));
    if (level >= most || level < -most) this.#rest = 0;
  }
}
