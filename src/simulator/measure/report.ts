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
  /** All others, over offered. */
  readonly missed: Ratio;
  /** Served or degraded, whenever and by whichever try, over offered. Clients that hang up are never served late by a try. */
  readonly answered: Ratio;
  /** Attempts that were stopped so that another request could have their place, over all attempts. */
  readonly preemptedRatio: Ratio;
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
  /** True work of its answers, in time or not, by the part of their time on a node that lies within the window, in reference seconds. */
  readonly servedSeconds: number;
}

export interface NodeReport {
  readonly served: number;
  readonly busyRatio: Ratio;
  readonly workSeconds: number;
}

/** Waits against what fair shares allow; see `wait-bound.ts`. */
export interface WaitBoundReport {
  /** Requests whose wait was judged, those that did not wait included. */
  readonly checked: number;
  readonly violations: number;
  /** The longest wait in parts of its bound. */
  readonly ratioMax: Ratio;
}

/** From one change of a rate to the next. */
export interface PhaseReport {
  readonly fromSeconds: number;
  /** Work of the users who came, over what the fleet could do meanwhile; and the part of it that was done in time. */
  readonly offeredRatio: Ratio;
  readonly goodputRatio: Ratio;
  /** Goodput over what could have been done: the lesser of the work offered and the capacity. */
  readonly usedRatio: Ratio;
  readonly all: GroupReport;
  readonly byClass: Readonly<Record<string, GroupReport>>;
}

/** What nodes had of prompts that begin alike. */
export interface PrefixReport {
  /** Blocks of prompts that nodes looked up. */
  readonly blocksAsked: number;
  /** Those that the node still kept, over all; and the same of one cache as large as those of all nodes together. */
  readonly hitRatio: Ratio;
  readonly sharedHitRatio: Ratio;
  /** One over the other. */
  readonly hitOfShared: Ratio;
  /** What following prompts costs in balance: the most that a node computed, and the most true work served, over the mean. */
  readonly busyMaxOfMean: number;
  readonly workMaxOfMean: number;
}

export interface PolicyReport {
  readonly decisionHash: string;
  /** Tries, each submitted once. */
  readonly requests: number;
  readonly simulatedSeconds: number;
  readonly wallSeconds: number;
  /** How often the policy's process died; and the longest from when it was up again to its first request on a node. */
  readonly crashes: number;
  readonly resumeSeconds: number;
  /** True work done in time within the window over what the fleet could do in it. */
  readonly goodputRatio: Ratio;
  /** The same with deadlines counted from the try that was served. */
  readonly goodputByTryRatio: Ratio;
  /** Time that machines computed over time: the plain mean over nodes. */
  readonly busyRatio: Ratio;
  readonly swapsPerRequest: Ratio;
  /** Absent where no node keeps prompts. */
  readonly prefixes?: PrefixReport;
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
  /** By phase, numbered from 1; absent where no rate changes. */
  readonly byPhase?: Readonly<Record<string, PhaseReport>>;
  readonly waitBound?: WaitBoundReport;
  /**
   * From the end of the last disturbance to the arrival of those of whom as many are served in time as 95 % (98 %) of
   * the share before it, for two windows of 10 s; absent without a disturbance, Infinity if never.
   */
  readonly goodputRecoverySeconds?: number;
  readonly goodputRecovery98Seconds?: number;
  /** The same of the share that has an answer by whichever try, at 95 %. */
  readonly answersRecoverySeconds?: number;
  /** The same of answers in time by when they were given: to the first minute with 95 % of what a minute before had. */
  readonly rateRecoverySeconds?: number;
  /** From the end of the last disturbance until the 95th percentile of waits is back; absent without one, Infinity if never. */
  readonly recoverySeconds?: number;
  /** The same by waits of tries, each from its own submission, and tries that were refused. */
  readonly tryRecoverySeconds?: number;
  /**
   * From the loss of an attempt (it failed, or its node could no longer be reached) to the user's next start on a node that
   * can be reached; and the share of those who had a loss that came to such a start. Absent when nothing was lost.
   */
  readonly retryDelayMs?: Quantiles;
  readonly retriedRatio?: Ratio;
}
