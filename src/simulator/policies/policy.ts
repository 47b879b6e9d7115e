/**
 * What the simulator asks of a scheduling policy: the part of the scheduler's contract through which decisions pass.
 * Spillway's scheduler is one as it stands; baselines implement the same, see the other files of this folder.
 */
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { NodeMemory } from '../../core/scheduler/events.ts';
import type { SchedulerConfig } from '../../core/config/types.ts';
import type { DurationUs, MonoUs, NodeId } from '../../base/units.ts';

/**
 * Obligations: every submitted task gets exactly one `outcome`; every `assign` is followed by exactly one `attempt-ended` event,
 * also after `abort`; no effect is performed outside `apply`; time never goes back; equal events give equal effects.
 */
export interface Policy extends Pick<Scheduler, 'apply' | 'nextWakeAt' | 'attemptLimits' | 'accounts'> {
  /** Time that the work bound to a node or waiting for it will take, as the policy sees it; for reports. */
  drainUs?(nodeId: NodeId): DurationUs;
  /** What its registry keeps of a node over a restart of its process. Absent: nothing. */
  nodeMemory?(nodeId: NodeId, now: MonoUs): NodeMemory | undefined;
  /** What the detectors of silent failures look at. Absent: it is not watched. */
  sample?: Scheduler['sample'];
}

/** What a policy is made from, once per run and again after a crash. */
export interface PolicyContext {
  /** Classes, weights, bounds and models as the scenario states them, with what the policy overrides. */
  readonly config: SchedulerConfig;
  /** Of the policy's own draws; every policy of a run gets the same. */
  readonly seed: number;
}
