/**
 * Time, in one place. The monotonic clock orders and waits; wall time is for people and for what must survive a
 * restart. Timers belong to the clock so that tests can move them by hand; none keeps the process alive.
 */
import { type DurationMs, type MonoUs, US_PER_MS, type WallMs } from '../base/units.ts';

/** Ends a timer. Calling it again, or after the timer fired, does nothing. */
export type CancelTimer = () => void;

export interface RuntimeClock {
  /** Integer microseconds; never goes back. */
  nowUs(): MonoUs;
  wallMs(): WallMs;
  /** Runs `fire` once after at least this time. */
  after(delayMs: DurationMs, fire: () => void): CancelTimer;
}

/** Longest delay that a Node timer takes; longer ones would fire at once. */
const TIMER_MS_MAX = 2_147_483_647;

export function createSystemClock(): RuntimeClock {
  return {
    nowUs: () => Math.floor(performance.now() * US_PER_MS),
    wallMs: () => Date.now(),
    after(delayMs, fire) {
      const timer = setTimeout(fire, Math.min(Math.max(1, Math.ceil(delayMs)), TIMER_MS_MAX));
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
