/** The coarse clock of the transport: one sweep over all connections per tick. */
import type { DurationMs } from '../../base/units.ts';

export const TICK_MS: DurationMs = 50;

/** At least the given time: a tick may be nearly over when the count begins. */
export function ticks(ms: DurationMs): number {
  return Math.ceil(ms / TICK_MS);
}
