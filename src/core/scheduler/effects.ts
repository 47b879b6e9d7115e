/**
 * What the scheduler wants done, in the order in which it must be done. The sink is drained completely before the
 * next event is applied; nothing may keep a reference to it.
 */
import type { NodeId, TaskId } from '../../base/units.ts';
import type { DegradeStep } from '../degrade/alternative.ts';
import type { NodeState } from '../health/state.ts';
import type { Outcome } from '../request/outcome.ts';

export interface EffectSink {
  /** The task passed admission and waits (or is assigned by a later effect of the same event). */
  admitted(taskId: TaskId): void;
  /** Send the task to this node. `attempt` counts from 1. */
  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void;
  /** A lesser answer was looked at. If it was taken, it stands in from now on: for assignments and outcomes that follow. */
  degraded(taskId: TaskId, step: DegradeStep): void;
  /** Stop the running attempt as soon as the engine can; `attempt-ended` must still follow. */
  abort(taskId: TaskId, nodeId: NodeId): void;
  /** The task's only outcome. */
  outcome(taskId: TaskId, outcome: Outcome): void;
  /** A node changed state; durable facts among these are the registry's to keep. */
  nodeState(nodeId: NodeId, state: NodeState): void;
  /** A draining node is empty and may leave. */
  nodeDrained(nodeId: NodeId): void;
}

/** Stands in between events: effects are possible only while one is applied. */
export const SILENT_SINK: EffectSink = {
  admitted() {},
  assign() {},
  degraded() {},
  abort() {},
  outcome() {},
  nodeState() {},
  nodeDrained() {},
};
