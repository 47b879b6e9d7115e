/**
 * How long a process of the demo was kept from running: a timer that should fire every few milliseconds, and the longest
 * time that it did not. Clients, gateway, fleet and view share one machine; a second in which none of them ran costs
 * users their deadline and is nobody's decision, so it is told beside the figures.
 */
import type { DurationMs } from '../../base/units.ts';

const INTERVAL_MS: DurationMs = 10;

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

export function watchStalls(): StallWatch {
  const startedAt = performance.now();
  let longest = NO_STALL;
  let lastMs = startedAt;
  const timer = setInterval(() => {
    const nowMs = performance.now();
    longest = longer(longest, { longestMs: nowMs - lastMs - INTERVAL_MS, atMs: nowMs - startedAt });
    lastMs = nowMs;
  }, INTERVAL_MS);
  return {
    longest: () => longest,
    stop() {
      clearInterval(timer);
      return longest;
    },
  };
}

export function longer(one: Stall, other: Stall): Stall {
  return other.longestMs > one.longestMs ? other : one;
}
