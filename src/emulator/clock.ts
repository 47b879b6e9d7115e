/**
 * Time for the engines of emulated nodes. A seam, so that their tests run in virtual time.
 *
 * Node's timers have a grain of one millisecond and fire late when the loop is busy. Emulated service times at a
 * speed-up of 36 are 30 to 900 ms, so a systematic error of a few milliseconds would be a slower accelerator. Hence:
 * engines keep exact virtual start and end instants, a timer is armed to fire half a grain early on average
 * (`EARLY_MS`), and what a late timer stole is given back to the next task (see `image-engine.ts`).
 */
import type { DurationMs } from '../base/units.ts';

export interface Timer {
  cancel(): void;
}

export interface EmulatorClock {
  /** Milliseconds with fractions since an arbitrary origin. */
  now(): DurationMs;
  /** Calls once, `delayMs` from now or up to a grain later. */
  after(delayMs: DurationMs, call: () => void): Timer;
}

/** An end within this time counts as reached: half the grain of timers, so that the mean error is about zero. */
export const EARLY_MS = 0.6;

export const realClock: EmulatorClock = {
  now: () => performance.now(),
  after: (delayMs, call) => {
    const timer = setTimeout(call, Math.max(1, Math.floor(delayMs)));
    return { cancel: () => clearTimeout(timer) };
  },
};
