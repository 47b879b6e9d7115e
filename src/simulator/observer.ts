/** What measurements may see of a simulation. Called in order of events; observers change nothing. */
import type { MonoUs, NodeId } from '../base/units.ts';
import type { Outcome } from '../core/request/outcome.ts';
import type { Job } from './machines/machine.ts';

export type JobEnd = Outcome | { readonly kind: 'lost' };

export interface Observer {
  submitted?(job: Job, now: MonoUs): void;
  assigned?(job: Job, nodeId: NodeId, now: MonoUs): void;
  firstByte?(job: Job, now: MonoUs): void;
  /** An attempt came to its end on the node; its work is `job.task.workUs` by estimate. */
  attemptEnded?(job: Job, nodeId: NodeId, now: MonoUs): void;
  outcome?(job: Job, end: JobEnd, now: MonoUs): void;
}
