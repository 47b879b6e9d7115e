/**
 * Everything that can happen to the scheduler. Plain messages, so that edge workers in other threads or on other
 * machines can feed one scheduler; each is applied together with `now`.
 */
import type { DurationUs, NodeId, Rate, Ratio, TaskId } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { DeviceMemory } from '../overload/accelerator-memory.ts';
import type { LadderWish } from '../overload/override.ts';
import type { FailureMemory } from '../health/failure-score.ts';
import type { ModelMemory } from '../health/model-breakers.ts';
import type { ModelOffer } from '../request/needs.ts';
import type { AttemptResult } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { Strike } from '../retry/poison.ts';

/** What the scheduler knows of a node when it is registered. */
export interface NodeSpec {
  readonly id: NodeId;
  readonly models: readonly ModelOffer[];
  /** Concurrent tasks, or 0 when the engine states none. */
  readonly slots: number;
  /** Whether the engine batches and reports what waits inside it (room by readings). */
  readonly batching: boolean;
  /** Hardware class or ''; the prior of the rate and nothing more. */
  readonly hardware: string;
  /** Labels; `zone` is matched against needs. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether silence of its heartbeats makes it suspect. */
  readonly heartbeats: boolean;
  /** Whether the engine frees a task's place when it is aborted. Absent: it does. */
  readonly canAbort?: boolean;
  /** Blocks of prompts that its engine keeps after use, as tasks count them; absent or 0: none that we know of. */
  readonly prefixBlocks?: number;
}

/** What of a node survives a restart. */
export interface NodeMemory {
  readonly cordoned: boolean;
  readonly draining: boolean;
  /** Remaining sleep of an ejected node, or 0. */
  readonly ejectedForUs: DurationUs;
  /** Consecutive ejections: the exponent of the sleep. */
  readonly ejections: number;
  /** Failures that have not led to an ejection yet. Absent: none. */
  readonly failures?: FailureMemory;
  /** Models that failed there. Absent: none. */
  readonly breakers?: readonly ModelMemory[];
  /** Bodies that broke it. Absent: none. */
  readonly strikes?: readonly Strike[];
  readonly rates: readonly { readonly model: string; readonly rate: Rate; readonly observations: number }[];
}

/** An engine's own account of itself. Absent is unknown: neither zero nor full. */
export interface EngineReading {
  readonly running?: number;
  readonly waiting?: number;
  readonly cacheUse?: Ratio;
}

export type SchedulerEvent =
  | { readonly kind: 'submit'; readonly task: TaskSpec }
  /** The client left. */
  | { readonly kind: 'cancel'; readonly taskId: TaskId }
  | { readonly kind: 'attempt-sent'; readonly taskId: TaskId }
  | { readonly kind: 'attempt-first-byte'; readonly taskId: TaskId }
  /** Releases the node's permit. Exactly once per `assign` effect, also after `abort`. */
  | { readonly kind: 'attempt-ended'; readonly taskId: TaskId; readonly result: AttemptResult }
  | { readonly kind: 'node-registered'; readonly node: NodeSpec; readonly memory?: NodeMemory }
  | { readonly kind: 'node-removed'; readonly nodeId: NodeId }
  | { readonly kind: 'node-heartbeat'; readonly nodeId: NodeId }
  /** An active probe: whether the node answered at all. Busy is an answer. */
  | { readonly kind: 'node-probed'; readonly nodeId: NodeId; readonly alive: boolean }
  | { readonly kind: 'node-reading'; readonly nodeId: NodeId; readonly reading: EngineReading }
  /** What a node's host says of its accelerators' memory. */
  | { readonly kind: 'node-memory'; readonly nodeId: NodeId; readonly memory: DeviceMemory }
  | { readonly kind: 'node-cordoned'; readonly nodeId: NodeId; readonly cordoned: boolean }
  | { readonly kind: 'node-draining'; readonly nodeId: NodeId; readonly draining: boolean }
  /** The gateway's own survival: how many of the lowest classes are refused now; 0 for none. */
  | { readonly kind: 'survival'; readonly shedClasses: number }
  /** An operator sets the stage of the overload ladder for a time, or gives it back. */
  | { readonly kind: 'ladder-override'; readonly override: LadderWish | null }
  | { readonly kind: 'config'; readonly config: SchedulerConfig }
  /** Refuse what is queued and what comes; running tasks go on. */
  | { readonly kind: 'shutdown' }
  /** Nothing happened but time. */
  | { readonly kind: 'tick' };
