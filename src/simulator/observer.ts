/** What measurements may see of a simulation. Called in order of events; observers change nothing. */
import type { MonoUs, NodeId, Ratio } from '../base/units.ts';
import type { AttemptResult, Outcome } from '../core/request/outcome.ts';
import type { User } from './clients/user.ts';
import type { Job } from './machines/machine.ts';

export type JobEnd = Outcome | { readonly kind: 'lost' };
/** `lost`: the policy's process died under it. */
export type AttemptEnd = AttemptResult | { readonly kind: 'lost' };

/** A request as measurements see it. */
export interface TrackedJob extends Job {
  readonly user: User | undefined;
  /** Of the attempt under way, or else of the last one; -1 before the first. */
  readonly nodeIndex: number;
  readonly isRunning: boolean;
  /** Whether it has its outcome; an attempt may still be under way. */
  readonly isSettled: boolean;
  readonly submittedAt: MonoUs;
  /** First content byte of the attempt under way or of the last one; -1 before. */
  readonly firstByteAt: MonoUs;
  /** Part of the work asked for that is still wanted: below 1 once a lesser answer was taken. */
  readonly share: Ratio;
}

/**
 * The last news of an attempt is `attemptEnded`, of a request `outcome`. Where one brings the other, `attemptEnded` comes
 * first; where an outcome leads to an abort, `outcome` does.
 */
export interface Observer {
  submitted?(job: TrackedJob, now: MonoUs): void;
  assigned?(job: TrackedJob, nodeId: NodeId, now: MonoUs): void;
  firstByte?(job: TrackedJob, now: MonoUs): void;
  /** An attempt came to its end on the node `job.nodeIndex`; its work is `job.task.workUs` by estimate. */
  attemptEnded?(job: TrackedJob, end: AttemptEnd, now: MonoUs): void;
  outcome?(job: TrackedJob, end: JobEnd, now: MonoUs): void;
}
