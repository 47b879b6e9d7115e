/**
 * Who asks: everything that submits requests and leaves again, in virtual time. The simulation tells clients what became
 * of their requests; they decide whether to come back.
 */
import type { MonoUs, TaskId } from '../../base/units.ts';
import type { Outcome } from '../../core/request/outcome.ts';
import type { TaskSpec } from '../../core/request/task.ts';
import type { Demand } from '../machines/machine.ts';
import type { User } from './user.ts';

export interface Request {
  readonly task: TaskSpec;
  readonly demand: Demand;
  /** Factor on the service time, of mean 1. */
  readonly noise: number;
  /** Whose try it is, so that measurements know what he wanted. Absent in tests that measure nothing. */
  readonly user?: User;
  /** Nobody looks at the request, its task or its user any more, so that the records may be used again. Need not be called. */
  release?(): void;
}

/** What clients do while they are advanced. */
export interface ClientSink {
  submit(request: Request): void;
  /** The client hangs up. */
  cancel(taskId: TaskId): void;
}

export interface Clients {
  /** When `advance` is needed next; Infinity when nobody will do anything. */
  nextAt(): MonoUs;
  /** Does what is due. */
  advance(now: MonoUs, sink: ClientSink): void;
  /** A request had its first content byte: a client that reads a stream does not hang up any more. */
  firstByte?(taskId: TaskId, now: MonoUs): void;
  /**
   * The only outcome of a request that was submitted. Called while the policy's effects are performed: clients note
   * when they come back, they do not submit. `lost`: the gateway died under it. A user whose wish ends by it is told
   * to the `UserObserver` before this returns: at that moment measurements know the request that ended it.
   */
  outcome(taskId: TaskId, outcome: Outcome | { readonly kind: 'lost' }, now: MonoUs): void;
}
