/** How late the event loop is: a timer that should fire every 50 ms, and by how much it does not. */
import type { DurationMs } from '../../base/units.ts';

export const LAG_INTERVAL_MS: DurationMs = 50;
/** One second. */
const SAMPLES = 20;

/** The last second of lateness. Arithmetic only; the timer is the owner's. */
export interface LoopLag {
  /** Call when the timer fires. */
  fired(nowMs: number): void;
  medianMs(): DurationMs;
  maxMs(): DurationMs;
}

export function createLoopLag(startMs: number): LoopLag {
  const ring = new Float64Array(SAMPLES);
  let next = 0;
  let lastMs = startMs;
  return {
    fired(nowMs) {
      ring[next] = Math.max(0, nowMs - lastMs - LAG_INTERVAL_MS);
      next = (next + 1) % SAMPLES;
      lastMs = nowMs;
    },
    medianMs() {
      const sorted = ring.toSorted();
      return ((sorted[SAMPLES / 2 - 1] ?? 0) + (sorted[SAMPLES / 2] ?? 0)) / 2;
    },
    maxMs: () => ring.reduce((max, value) => Math.max(max, value), 0),
  };
}
