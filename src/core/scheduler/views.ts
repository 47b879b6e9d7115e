/** Plain views of the scheduler's state for people and machines. Computed on demand, never on the hot path. */
import type { DurationMs, NodeId, Rate, Ratio, TaskId } from '../../base/units.ts';
import type { BreakerView } from '../health/model-breakers.ts';
import type { EtaError } from '../ledgers/index.ts';
import type { LimitReason } from '../capacity/concurrency.ts';
import type { NodeState } from '../health/state.ts';
import type { NodeSpec } from './events.ts';

export interface ConcurrencyView {
  /** Tasks at once that are allowed now, and without a measurement under way. */
  readonly limit: number;
  readonly settled: number;
  /** Whether it decides: not in shadow, nor while the engine tells its load but not how many wait. */
  readonly holds: boolean;
  /** `readings`: it follows from how many wait inside the engine, which tells that. */
  readonly reason: LimitReason | 'readings';
  /** Wall time per reference time of work while few run; 0 before it is known. */
  readonly paceOfFew: number;
}

export interface NodeView {
  readonly id: NodeId;
  readonly state: NodeState;
  readonly spec: NodeSpec;
  readonly health: Ratio;
  /** Learned rate by model; `observations` is the evidence behind it. */
  readonly rates: readonly { readonly model: string; readonly rate: Rate; readonly observations: number }[];
  readonly inflight: number;
  readonly slots: number;
  /** What was learned of tasks at once; absent where slots are stated, or the gate is off. */
  readonly concurrency?: ConcurrencyView;
  readonly drainMs: DurationMs;
  readonly cordoned: boolean;
  readonly draining: boolean;
  /** Remaining sleep of an ejected node, or 0. */
  readonly ejectedForMs: DurationMs;
  readonly ejections: number;
  /** Models that failed lately, by name; what is not listed is closed. */
  readonly breakers: readonly BreakerView[];
}

export interface QueueGroupView {
  readonly depth: number;
  readonly workMs: DurationMs;
  readonly oldestWaitMs: DurationMs;
}

export interface QueueView extends QueueGroupView {
  readonly bytes: number;
  readonly running: number;
  readonly byClass: Readonly<Record<string, QueueGroupView>>;
  /** The tenants with most queued work, at most 100. */
  readonly byTenant: Readonly<Record<string, QueueGroupView>>;
  readonly byModel: Readonly<Record<string, QueueGroupView>>;
  readonly byClassAndModel: Readonly<Record<string, Readonly<Record<string, QueueGroupView>>>>;
}

/** Why a node may not take a task now; '' rows never appear. */
export type IneligibleReason =
  | 'model-not-offered'
  | 'context-too-long'
  | 'capability-missing'
  | 'lora-missing'
  | 'pixels-too-many'
  | 'embedding-size'
  | 'zone'
  | 'cordoned'
  | 'draining'
  | 'ejected'
  | 'suspect'
  /** The model fails on this node, or everywhere. */
  | 'breaker-open'
  | 'tried-before'
  | 'too-slow'
  | 'no-room'
  | 'drain-too-long'
  | 'reading-full'
  | 'refused-recently'
  | 'half-open-busy'
  | 'slow-start'
  /** A share or reservation of its node group. */
  | 'bulkhead';

export interface NodeGetsRoom {
  readonly kind: 'node-gets-room';
  readonly nodeId: NodeId;
  readonly reasons: readonly IneligibleReason[];
  readonly inMs: DurationMs | undefined;
}

/**
 * What would let a waiting task run. `inMs`: when it comes by itself, as far as that is known; undefined where somebody has
 * to do something.
 */
export type Cure =
  | NodeGetsRoom
  | {
      readonly kind: 'marks-end';
      readonly nodeId: NodeId;
      readonly reasons: readonly IneligibleReason[];
      /** Whether an operator has to do something. */
      readonly byHand: boolean;
      /** When the rest of the reasons is over, by themselves. */
      readonly inMs: DurationMs;
    }
  /** `room`: where there is none either. */
  | {
      readonly kind: 'share-lifted';
      readonly groups: readonly string[];
      readonly room: NodeGetsRoom | undefined;
    }
  /** The scheduler looks again. */
  | { readonly kind: 'next-look'; readonly inMs: DurationMs | undefined }
  | { readonly kind: 'node-joins' }
  /** Nothing would: its deadline cannot be kept any more. */
  | { readonly kind: 'none' };

export interface GateView {
  readonly gate: string;
  readonly sinceMs: DurationMs;
  readonly detail: string;
}

export interface TaskView {
  readonly id: TaskId;
  readonly state: 'queued' | 'running';
  readonly nodeId: NodeId | '';
  readonly attempts: number;
  /** Tasks of the same lane that would be dispatched before it, bounded below; 0 when next. */
  readonly position: number;
  /** Null while every node that could serve it is closed, and nothing says for how long. */
  readonly etaMs: DurationMs | null;
  /** How far off such predictions were for its class lately; null before any came true. */
  readonly etaError: EtaError | null;
  readonly gates: readonly GateView[];
  readonly nodes: readonly {
    readonly id: NodeId;
    readonly eligible: boolean;
    readonly reasons: readonly IneligibleReason[];
  }[];
  /** One sentence: what would let it run. */
  readonly unblock: string;
  /** The same for machines; null for a task that runs. */
  readonly cure: Cure | null;
}

/** Conservation, as integers: arrived equals the sum of the rest at every instant. */
export interface Accounts {
  readonly arrived: number;
  readonly served: number;
  readonly degraded: number;
  readonly rejected: number;
  readonly evicted: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly queued: number;
  readonly running: number;
}
