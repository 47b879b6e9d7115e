/** What one run of one policy came to. Every figure is computed from what clients and machines saw, not from the policy. */
import type { DurationMs, Ratio } from '../../base/units.ts';

export interface Quantiles {
  readonly mean: DurationMs;
  readonly p50: DurationMs;
  readonly p95: DurationMs;
  readonly p99: DurationMs;
  readonly max: DurationMs;
}

/** Users; each is counted once, however often they tried. */
export interface GroupReport {
  readonly offered: number;
  readonly served: number;
  readonly degraded: number;
  readonly refused: number;
  readonly failed: number;
  /** Hung up at their own deadline, or still without an answer at the end. */
  readonly gaveUp: number;
  /** Served or degraded within the deadline counted from the first try, over offered. */
  readonly attained: Ratio;
  /** First try to first dispatch of the try that was served. */
  readonly waitMs: Quantiles;
  /** Longest time that a try waited, from its submission to its first dispatch or to its end without one. */
  readonly maxWaitMs: DurationMs;
  /** First try to the first content byte; only where answers are streamed. */
  readonly firstByteMs?: Quantiles;
  /** First try to the whole answer, of those who got one. */
  readonly responseMs: Quantiles;
  /** True work of those served in time, in reference seconds. */
  readonly workSeconds: number;
}

export interface TenantReport extends GroupReport {
  /** Time for which nodes worked on its attempts, each counted as if it were alone there. */
  readonly acceleratorSeconds: number;
}

export interface NodeReport {
  readonly served: number;
  readonly busyRatio: Ratio;
  readonly workSeconds: number;
}

export interface PolicyReport {
  readonly decisionHash: string;
  /** Tries, each submitted once. */
  readonly requests: number;
  readonly simulatedSeconds: number;
  readonly wallSeconds: number;
  /** True work done in time within the window over what the fleet could do in it. */
  readonly goodputRatio: Ratio;
  /** Time that machines computed over time, by their share of capacity. */
  readonly busyRatio: Ratio;
  readonly swapsPerRequest: Ratio;
  /** Of the served work of tenants that always had something waiting; absent when fewer than two had. */
  readonly jain?: Ratio;
  /** Most requests that were known and had no outcome. */
  readonly peakOpen: number;
  readonly all: GroupReport;
  readonly byClass: Readonly<Record<string, GroupReport>>;
  readonly byStream: Readonly<Record<string, GroupReport>>;
  /** At most 100, those with most work first; the rest together is `other`. */
  readonly byTenant: Readonly<Record<string, TenantReport>>;
  /** By the true work in powers of two of a second: `0.5-1s`. */
  readonly bySize: Readonly<Record<string, GroupReport>>;
  readonly nodes: Readonly<Record<string, NodeReport>>;
  /**
   * From the end of the last disturbance to the arrival of those of whom as many are served in time as 95 % (98 %) of
   * the share before it, for two windows of 10 s; absent without a disturbance, Infinity if never.
   */
  readonly goodputRecoverySeconds?: number;
  readonly goodputRecovery98Seconds?: number;
  /** From the end of the last disturbance until the 95th percentile of waits is back; absent without one, Infinity if never. */
  readonly recoverySeconds?: number;
}
