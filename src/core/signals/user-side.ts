/**
 * What clients say they saw, next to what the gateway saw of the same requests: filled by whoever gathers it, read by the
 * detector of service levels that hold on the server only. Figures are of the last minutes, over requests that both sides
 * tell of; absent is unknown.
 */
import type { DurationMs } from '../../base/units.ts';

export interface UserSideSample {
  /** Requests of which the client told what it saw, and those among them that it calls bad: failed, broken off or given up. */
  readonly told: number;
  readonly toldBad: number;
  /** Of the same requests: those that the gateway calls bad. */
  readonly serverBad: number;
  /** 95th percentile of the time to the last byte, as the client and as the gateway saw it. */
  readonly clientP95Ms: DurationMs;
  readonly serverP95Ms: DurationMs;
}
