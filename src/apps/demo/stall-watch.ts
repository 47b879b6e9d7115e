/**
 * How long a process of the demo was kept from running: a timer that should fire every few milliseconds, and the longest
 * time that it did not. Clients, gateway, fleet and view share one machine; a second in which none of them ran costs
 * users their deadline and is nobody's decision, so it is told beside the figures.
 */
import type { DurationMs } from '../../base/units.ts';

/** Finer than any pause that costs a user the deadline, and next to no work. */
export const STALL_INTERVAL_MS: DurationMs = 10;

export interface Stall {
  readonly longestMs: DurationMs;
  /** When it ended, after the start of the run. */
  readonly atMs: DurationMs;
}

export const NO_STALL: Stall = { longestMs: 0, atMs: 0 };

export interface StallWatch {
  longest(): Stall;
  /** Returns the longest; the timer is gone. */
  stop(): Stall;
}

/** Arithmetic only; the timer is the owner's. Instants are of one clock. */
export interface StallMeter {
  /** Call when the timer fires. */
  fired(nowMs: DurationMs): void;
  longest(): Stall;
}

export function createStallMeter(startMs: DurationMs): StallMeter {
  let longest = NO_STALL;
  let lastMs = startMs;
  return {
    fired(nowMs) {
      longest = longer(longest, { longestMs: nowMs - lastMs - STALL_INTERVAL_MS, atMs: nowMs - startMs });
      lastMs = nowMs;
    },
    longest: () => longest,
  };
}

export function watchStalls(): StallWatch {
  const meter = createStallMeter(performance.now());
  const timer = setInterval(() => meter.fired(performance.now()), STALL_INTERVAL_MS);
  return {
    longest: () => meter.longest(),
    stop() {
      clearInterval(timer);
      return meter.longest();
    },
  };
}

export function longer(one: Stall, other: Stall): Stall {
  return other.longestMs > one.longestMs ? other : one;
}
