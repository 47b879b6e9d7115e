/** What tells one baseline from another: where tasks wait, in which order, and which node takes them. */
import type { MonoUs } from '../../../base/units.ts';
import type { Prng } from '../../../base/prng.ts';
import type { SchedulerConfig } from '../../../core/config/types.ts';
import type { AttemptResult, EvictReason, RejectReason } from '../../../core/request/outcome.ts';
import type { BaselineNode } from './baseline-node.ts';
import type { BaselineTask } from './baseline-task.ts';

/** What a discipline may see and do. Everything that it does is performed at once. */
export interface Desk {
  readonly now: MonoUs;
  readonly config: SchedulerConfig;
  readonly prng: Prng;
  /** Registered nodes in order of registration. */
  readonly nodes: readonly BaselineNode[];
  /** Open nodes that fit the task and have not failed it; among nodes closed by failures if no other is alive. */
  candidates(task: BaselineTask): readonly BaselineNode[];
  /** Whether the node is one of them. */
  mayTake(node: BaselineNode, task: BaselineTask): boolean;
  /** Sends the task, which must wait nowhere. */
  start(task: BaselineTask, node: BaselineNode): void;
  /** The task is accepted and waits; told once. */
  admit(task: BaselineTask): void;
  /** Ends a task that has not been admitted; `afterUs` is what the refusal says of when to come back, 0 for nothing. */
  reject(task: BaselineTask, reason: RejectReason, afterUs?: number): void;
  /** Ends a task that waited. */
  evict(task: BaselineTask, reason: EvictReason): void;
}

export interface Discipline {
  /**
   * A task that is new, or whose attempt failed, or whose node closed: it is started, kept, or ended. At least one
   * registered node fits it, though perhaps none that has not failed it.
   */
  enter(task: BaselineTask): void;
  /** A waiting task has its outcome: it is forgotten. */
  leave(task: BaselineTask): void;
  /** The node has changed in any way: it may have room, be open or closed. */
  offer(node: BaselineNode): void;
  /** Before `offer`: what an attempt came to; the task may have its outcome already. */
  ended?(task: BaselineTask, node: BaselineNode, result: AttemptResult): void;
  /** After `ended`, of a failure: whether the node cools down now. Absent: after a number of failures in a row. */
  closes?(task: BaselineTask, node: BaselineNode, result: AttemptResult): boolean;
  /** Every task that waits, in order; those bound to a node that closed enter again. */
  waiting(): Iterable<BaselineTask>;
  /** Those among them that wait for this node alone. */
  boundTo?(node: BaselineNode): Iterable<BaselineTask>;
  /** Something is due by time. */
  wake?(): void;
  nextWakeAt?(): MonoUs;
}
