/**
 * The gateway's loop as edges and the admin plane see it. It owns the scheduler, the clock, the timers and the order
 * of shutdown; edges own the clients' connections and execute what they are assigned.
 */
import type {
  ClassName,
  DurationMs,
  DurationUs,
  MonoUs,
  NodeId,
  Ratio,
  TaskId,
  WallMs,
} from '../base/units.ts';
import type { GatewayConfig, NodeConfig } from '../core/config/types.ts';
import type { AcceleratorReading, HostPressure } from '../core/health/index.ts';
import type {
  AttemptResult,
  FailureKind,
  LimitsView,
  Outcome,
  RejectReason,
  RetryHint,
} from '../core/request/outcome.ts';
import type { DegradeStep } from '../core/degrade/index.ts';
import type { PreemptionCounts } from '../core/retry/preemptions.ts';
import type { RequestShape, TaskSpec, Usage } from '../core/request/task.ts';
import type { Failure, FailureCause, LedgersView } from '../core/ledgers/index.ts';
import type { LimiterView } from '../core/limits/index.ts';
import type { GateCount } from '../core/admission/gates.ts';
import type { LadderView, LadderWish } from '../core/overload/index.ts';
import type { SignalsView } from '../core/signals/index.ts';
import type { AttemptLimits, WorkEstimate } from '../core/scheduler/contract.ts';
import type { Accounts, NodeView, QueueView, TaskView } from '../core/scheduler/views.ts';
import type { EngineAccount } from '../ports/engine-driver.ts';
import type { NodeSource } from '../ports/registry-store.ts';
import type { DecisionsView, DecisionView } from './journal/decision-view.ts';
import type { JournalStatus } from './journal/journal-recorder.ts';
import type { TenantUsageView } from './tenant-usage.ts';

export type { DecisionsView, DecisionView };

export interface Assignment {
  readonly nodeId: NodeId;
  /** Counts from 1. */
  readonly attempt: number;
  /** The model's name on this node; '' when it is the one asked for. */
  readonly upstreamModel: string;
  /** Whether closing the connection frees the engine; otherwise the call must be read to its end after an abort. */
  readonly abortFreesSlot: boolean;
  /** When the attempt, still silent, fails as `timeout`; see the scheduler's `attemptLimits`. */
  readonly silence: AttemptLimits;
}

/** Called in the loop's turn, never inside `submit` itself. */
export interface TaskListener {
  /** Let in: it waits, or is assigned in the same turn. Once. */
  admitted?(): void;
  assigned(assignment: Assignment): void;
  /** A lesser answer stands in from now on: the one at this index of the submitted alternatives. */
  degraded?(alternative: number): void;
  /** Stop the running attempt; `attemptEnded` must still be called, once the node has really ended. */
  abort(): void;
  /** Exactly once. After `served` and `declined` the edge has the answer; all others it must render. */
  finished(outcome: Outcome): void;
}

export type SubmitSpec = Omit<TaskSpec, 'id' | 'deadlineAt'> & {
  /** From `receivedAt`; a class default is `classDeadlineUs`. */
  readonly deadlineUs: DurationUs;
  /** When the request's head was read. */
  readonly receivedAt: MonoUs;
};

/** How a request ended that was answered by the work of another one. */
export interface JoinedEnd {
  readonly outcome: Outcome;
  readonly className: string;
  readonly tenant: string;
  readonly model: string;
  readonly receivedAt: MonoUs;
}

/** A request that the edge refused by what it knows of the fleet. */
export interface EarlyRefusal {
  readonly reason: RejectReason;
  readonly tenant: string;
  /** As the client named it; kept to a bounded length. */
  readonly model: string;
  readonly receivedAt: MonoUs;
}

/** A request that the edge answered from what it remembers: there was nothing to schedule. */
export interface EarlyAnswer {
  readonly className: ClassName;
  readonly tenant: string;
  readonly model: string;
  readonly stream: boolean;
  readonly receivedAt: MonoUs;
}

/** What a client or an operator may know of one request, live or finished (the last ones, bounded). */
export interface RequestView {
  readonly id: string;
  readonly state:
    | 'queued'
    | 'running'
    | 'served'
    | 'degraded'
    | 'rejected'
    | 'evicted'
    | 'failed'
    | 'cancelled';
  readonly reason: string;
  readonly className: string;
  readonly tenant: string;
  readonly model: string;
  readonly nodeId: NodeId | '';
  readonly attempts: number;
  /** Milliseconds since `received`, which is wall time; -1 where it has not happened. */
  readonly timeline: {
    readonly received: WallMs;
    readonly admitted: DurationMs;
    readonly decided: DurationMs;
    readonly sent: DurationMs;
    readonly firstByte: DurationMs;
    readonly done: DurationMs;
  };
  readonly live?: TaskView;
  /** What was decided about it and is still remembered, the oldest first. */
  readonly decisions?: readonly DecisionView[];
  /** What the decision stood on; small on purpose, since ten thousand finished requests keep it. */
  readonly facts?: RequestFacts;
}

/** Ways to list requests. */
export type ListedState = 'queued' | 'running' | 'ended';

export interface RequestFacts {
  readonly workMs: DurationMs;
  /** As asked for or as the class gives it, from `received`. */
  readonly deadlineMs: DurationMs;
  readonly deadlineWished: boolean;
  readonly stream: boolean;
  /** Of the outcome; absent where it has none. */
  readonly hint?: RetryHint;
  /** Which limit, stage or mark decided, where the reason alone does not say it. */
  readonly cause?: string;
  /** Attempts that failed, in order. The last attempt of a served request is not among them. */
  readonly failures: readonly AttemptFailure[];
  /** Lesser answers that were looked at, in order; empty when none was. */
  readonly lookedAt?: readonly DegradeStep[];
}

export interface AttemptFailure {
  readonly nodeId: NodeId;
  /** Counts from 1. */
  readonly attempt: number;
  readonly failure: FailureKind;
  /** Milliseconds since `received`. */
  readonly endedMs: DurationMs;
}

/** What host and engine of a node said last. What is stale is unknown, whatever it was. */
export interface NodeTelemetry {
  readonly staleAfterMs: DurationMs;
  readonly host?: {
    readonly at: WallMs;
    readonly isStale: boolean;
    readonly ageUs: DurationUs;
    readonly accelerators: readonly AcceleratorReading[];
    /** What it waits for; absent while unknown. */
    readonly pressure?: HostPressure;
  };
  readonly engine?: Pick<EngineAccount, 'running' | 'waiting' | 'cacheUse' | 'prefixHitRatio'> & {
    readonly at: WallMs;
    readonly isStale: boolean;
  };
  /** Tasks of ours on the node's devices, and since when there are some or none; absent while that is unknown. */
  readonly ours?: { readonly inflight: number; readonly steadyUs: DurationUs };
}

export interface NodeRow extends NodeView {
  readonly url: string;
  readonly protocol: string;
  readonly source: NodeSource;
  readonly hardware: string;
  /** What the engine says of its load is missing or frozen; our own count decides alone. */
  readonly readingsStale: boolean;
  /** Absent: neither host nor engine ever told anything. */
  readonly telemetry?: NodeTelemetry;
}

/** What a node says of itself with its heartbeat. Absent is unknown. */
export interface HeartbeatChange {
  readonly slots?: number;
  /** Used memory of its accelerators over all of it, and what of it the engine takes at start. */
  readonly memoryUse?: Ratio;
  readonly reservedUse?: Ratio;
}

export type RegisterResult =
  | { readonly kind: 'registered'; readonly node: NodeRow /** Shown once. */; readonly credential: string }
  | { readonly kind: 'id-taken' }
  | { readonly kind: 'refused'; readonly rule: string };

export interface Gateway {
  readonly config: GatewayConfig;
  /** Monotonic now, integer microseconds. */
  now(): MonoUs;
  /** False while starting and from the first moment of shutdown. */
  readonly ready: boolean;

  submit(spec: SubmitSpec, listener: TaskListener): { readonly taskId: TaskId; readonly publicId: string };
  /** Keeps a refusal explainable that was decided before there was a task; returns its public id. */
  noteRefused(refusal: EarlyRefusal): string;
  /** The same for a request that needed no task. */
  noteAnswered(answer: EarlyAnswer): string;
  /** An id for a request that needs no task of its own: another one's work answers it. */
  nextId(): { readonly taskId: TaskId; readonly publicId: string };
  /** Keeps the end of such a request explainable. Once per id. */
  noteJoined(taskId: TaskId, end: JoinedEnd): void;
  cancel(taskId: TaskId): void;
  attemptSent(taskId: TaskId): void;
  attemptFirstByte(taskId: TaskId): void;
  /** Exactly once per assignment. With `attempt`, a late call for an earlier attempt is told apart and ignored. */
  attemptEnded(taskId: TaskId, result: AttemptResult, attempt?: number): void;
  estimate(model: string, shape: RequestShape): WorkEstimate;
  /** Whether a node of the model is known to keep prompts: then how a prompt begins matters. */
  keepsPrompts(model: string): boolean;
  learn(model: string, shape: RequestShape, usage: Usage): void;
  classDeadlineUs(className: string, stream: boolean): DurationUs;
  /** Canonical id of a model or alias that is configured or offered by a node; undefined when unknown. */
  resolveModel(name: string): string | undefined;
  models(): readonly string[];

  nodes(): readonly NodeRow[];
  node(nodeId: NodeId): NodeRow | undefined;
  /** Durable when it resolves. Over the API a node gets a credential bound to its id; `bearer` proves ownership on renewal. */
  register(node: NodeConfig, source: NodeSource, bearer: string): Promise<RegisterResult>;
  /** False when the node is unknown or the credential is not its own. */
  heartbeat(nodeId: NodeId, bearer: string, change?: HeartbeatChange): boolean;
  /** Durable when it resolves; false when unknown. */
  setCordoned(nodeId: NodeId, cordoned: boolean): Promise<boolean>;
  setDraining(nodeId: NodeId, draining: boolean): Promise<boolean>;
  removeNode(nodeId: NodeId): Promise<boolean>;

  queue(): QueueView;
  /** What each protective gate refused, or would have refused in shadow. */
  gates(): readonly GateCount[];
  /** What is left to a tenant of limits of its own; undefined when it has none, or they are not in force. */
  limitsOf(tenant: string): LimitsView | undefined;
  /** Everything that is limited, in the order of the configuration: tenants, classes, models, then tenants without a name. */
  limits(): readonly LimiterView[];
  /** The overload ladder: stages, evidence, override. */
  ladder(): LadderView;
  /** Sets the stage for a time, or gives it back with null; false while the gate is off. Not kept over a restart. */
  overrideLadder(wish: LadderWish | null): boolean;
  /** What is left to pay retries from, 0 to 1. */
  retryBudget(): Ratio;
  /** How preemptions ended. */
  preemptions(): Readonly<PreemptionCounts>;
  /** What the detectors of silent failures find, as of the last second. */
  signals(): SignalsView;
  /** Refusals that could have been served, errors of predictions, work that nobody got. */
  ledgers(): LedgersView;
  /** An attempt failed, and this is why. */
  noteFailure(failure: Failure): void;
  /** Why attempts failed since the start, by pattern; the most frequent first. */
  failureCauses(): readonly FailureCause[];
  /** The public id of a request's number. */
  publicId(taskId: TaskId): string;
  request(publicId: string): RequestView | undefined;
  /** The decisions after this number, the oldest first. */
  decisions(since: number, limit: number): DecisionsView;
  /** How the journal goes; undefined where none is kept. */
  journal(): JournalStatus | undefined;
  /** What a tenant used since the start; nothing of a tenant that never came. */
  usageOf(tenant: string): TenantUsageView;
  /** Without what explaining costs. Live ones with the oldest first, ended ones with the newest first. */
  requests(state: ListedState, limit: number): readonly RequestView[];
  /** What became of every request since the start. */
  accounts(): Accounts;
  dump(): unknown;
  /** The gateway's own survival: refuse this many of the lowest classes. */
  setSurvival(shedClasses: number): void;
  /** Swaps what can change without loss; names what needs a restart. Never refills a budget nor resets health. */
  reconfigure(config: GatewayConfig): { readonly needsRestart: readonly string[] };
  /** Not ready first; queued requests refused within a second; running ones finish up to the drain limit. */
  shutdown(): Promise<void>;
}
