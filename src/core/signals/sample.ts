/**
 * One look at the scheduler, taken about once a second: sums since its start, and levels of this instant. Two samples
 * tell what happened between them. Whatever is in it is plain and is kept for ten minutes, so every list is bounded.
 */
import type { DurationUs, MonoUs, NodeId, Rate, Ratio, RefUs } from '../../base/units.ts';
import type { HostPattern } from '../health/host-pressure.ts';
import type { StagesSample } from './stage-tally.ts';
import type { TenantPace } from './tenant-pace.ts';
import type { UserSideSample } from './user-side.ts';

/** Nodes with rows; of a larger fleet the first ones that joined. */
export const WATCHED_NODES_MAX = 512;
/** Waiting lines by class and model with rows: those whose oldest task waits longest. */
export const WAITING_ROWS_MAX = 32;
/** Tenants with rows: those with most work waiting. */
export const TENANT_ROWS_MAX = 20;

export interface LogSumsSample {
  readonly count: number;
  readonly sum: number;
  readonly squares: number;
}

export interface ClassSample {
  readonly name: string;
  /** Its share of the work while all classes wait. */
  readonly share: Ratio;
  /** Waiting now. */
  readonly depth: number;
  readonly workUs: RefUs;
  readonly oldestWaitUs: DurationUs;
  readonly running: number;
  /** Sums; see `ClassTally`. */
  readonly arrived: number;
  readonly dispatched: number;
  readonly waitS: number;
  readonly waitSquares: number;
  readonly dispatchedWorkUs: RefUs;
  readonly served: number;
  readonly missed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly overtaken: number;
  readonly pace: LogSumsSample;
  readonly paceSteps: Float64Array;
  /** Latency over work by tenant, of at most `PACED_TENANTS_MAX`. */
  readonly tenantPaces: readonly Readonly<TenantPace>[];
  readonly deadlineUsed: number;
}

export interface PaceSample extends LogSumsSample {
  readonly model: string;
  readonly inflight: number;
}

export interface NodeSample {
  readonly id: NodeId;
  /** As stated; '' where nobody said. */
  readonly hardware: string;
  readonly state: string;
  /** Whether its marks let it take new work. */
  readonly isOpen: boolean;
  /** Whether the last probe or heartbeat found it well. */
  readonly isReady: boolean;
  readonly inflight: number;
  readonly slots: number;
  readonly drainUs: DurationUs;
  /** Learned rate at full use. */
  readonly capacity: Rate;
  /** Integral of its tasks over time. */
  readonly inflightUs: number;
  readonly started: number;
  readonly startedWorkUs: RefUs;
  readonly served: number;
  readonly servedWorkUs: RefUs;
  readonly failed: number;
  readonly refused: number;
  readonly elapsedUs: DurationUs;
  readonly flips: number;
  readonly predictions: LogSumsSample;
  readonly paces: readonly PaceSample[];
  /** Of its accelerators: all that is used, and what of the engine's cache; absent while unknown. */
  readonly deviceUse?: Ratio;
  readonly memoryUse?: Ratio;
}

/** Tasks of a class that wait for a model, by their oldest one. */
export interface WaitingRow {
  readonly className: string;
  readonly model: string;
  readonly depth: number;
  readonly oldestWaitUs: DurationUs;
  /** Time that the oldest had from its submit to its deadline. */
  readonly allowedUs: DurationUs;
  /** A node with a free place that would have had the oldest task done by now, if there is one, and what keeps it away. */
  readonly idle?: {
    readonly nodeId: NodeId;
    readonly reasons: readonly string[];
    readonly serviceUs: DurationUs;
    readonly idleUs: DurationUs;
    /** How many such nodes there are, of those looked at. */
    readonly nodes: number;
  };
  /** Who has the places of the nodes that the oldest could run on: a lower class, started before it came. */
  readonly held?: {
    readonly places: number;
    readonly byLower: number;
    readonly className: string;
    readonly tenant: string;
    readonly nodeId: NodeId;
    /** How long the longest of them has run. */
    readonly runningUs: DurationUs;
  };
}

export interface TenantSample {
  readonly tenant: string;
  readonly depth: number;
  readonly workUs: RefUs;
}

export interface GateSample {
  readonly gate: string;
  readonly mode: string;
  readonly refused: number;
}

export interface Sample {
  readonly at: MonoUs;
  readonly accounts: {
    readonly arrived: number;
    readonly served: number;
    readonly degraded: number;
    readonly rejected: number;
    readonly evicted: number;
    readonly failed: number;
    readonly cancelled: number;
    readonly queued: number;
    readonly running: number;
  };
  /** Permits of nodes that are out, over the whole fleet. */
  readonly permits: number;
  readonly inside: number;
  readonly insideUs: number;
  readonly left: number;
  readonly stayedUs: DurationUs;
  readonly classes: readonly ClassSample[];
  readonly nodes: readonly NodeSample[];
  readonly nodesTotal: number;
  readonly openNodes: number;
  /** Places of open nodes, and how many of them are taken; over the whole fleet, as are the next three. */
  readonly slots: number;
  readonly inflight: number;
  /** Summed rate of open nodes at full use. */
  readonly capacity: Rate;
  readonly inflightUs: number;
  readonly servedWorkUs: RefUs;
  readonly waiting: readonly WaitingRow[];
  readonly tenants: readonly TenantSample[];
  readonly gates: readonly GateSample[];
  readonly rejections: Readonly<Record<string, number>>;
  /** Highest stage of the overload ladder now, and whether it was set by hand. */
  readonly ladderStage: number;
  readonly isLadderSet: boolean;
  /** Lowest classes refused to protect the gateway itself. */
  readonly shedClasses: number;
  readonly retries: number;
  readonly comebacks: number;
  readonly promptWorkUs: RefUs;
  readonly savedWorkUs: RefUs;
  readonly fleetChanges: number;
  readonly fleetChangedAt: MonoUs;
  /** Absent while no request has told its stage of a workflow. */
  readonly stages?: StagesSample;
  readonly outside?: OutsideSample;
}

/** Failed attempts of one cause since the start; see ledgers/failure-causes.ts. */
export interface FailuresSample {
  readonly id: number;
  readonly cause: string;
  readonly count: number;
}

/** Nodes in `OutsideSample.hosts`; of more, the first that joined. */
export const LACKING_HOSTS_MAX = 64;

/** A node whose host lacks something, as the host itself tells. */
export interface LackingHost extends HostPattern {
  readonly nodeId: NodeId;
}

/** What others than the scheduler know; absent is unknown. */
export interface OutsideSample {
  /** Nodes whose load readings are missing or frozen. */
  readonly staleReadings?: readonly NodeId[];
  readonly hosts?: readonly LackingHost[];
  /** Connections to nodes that were opened, and requests that were sent over them. */
  readonly connections?: { readonly opened: number; readonly requests: number };
  readonly userSide?: UserSideSample;
  /** All that are known, so that two samples tell what came in between; at most `CAUSES_MAX`. */
  readonly failures?: readonly FailuresSample[];
}

/** What the host of a node says that it lacks; undefined where it lacks nothing or does not tell. O(`LACKING_HOSTS_MAX`). */
export function hostLack({ outside }: Sample, nodeId: NodeId): string | undefined {
  return outside?.hosts?.find((host) => host.nodeId === nodeId)?.says;
}
