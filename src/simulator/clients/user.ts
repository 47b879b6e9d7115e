/** One wish of one person, with all its tries: what is counted is whether the wish came true in time. */
import type { ClassName, DurationUs, ModelId, MonoUs, RefUs, TaskId, TenantId } from '../../base/units.ts';
import type { Demand } from '../machines/machine.ts';

export interface User {
  /** Counted from 0 over all streams, in order of arrival. */
  readonly index: number;
  /** Position of its stream in the scenario. */
  readonly stream: number;
  /** Its number within the stream, which all that is drawn for it starts from: with the stream it is the same user under every policy. */
  readonly draw: number;
  readonly className: ClassName;
  /** Position of its class, and of its tenant, among those of its stream. */
  readonly classAt: number;
  readonly tenantAt: number;
  readonly tenant: TenantId;
  readonly model: ModelId;
  readonly demand: Demand;
  /** True work, on the reference machine, without noise. */
  readonly workUs: RefUs;
  /** Factor on the service time. */
  readonly noise: number;
  /** From the first try. */
  readonly deadlineUs: DurationUs;
  readonly arrivedAt: MonoUs;
  tries: number;
  /** Of the present or last try. */
  taskId: TaskId;
  /** When the present or last try had its first content byte; -1 when it had none. */
  firstByteAt: MonoUs;
}

export type UserEnd =
  /** The whole answer, or a lesser one; when is the instant at which this is told. */
  | { readonly kind: 'served' }
  | { readonly kind: 'degraded' }
  /** The last try was refused or removed, failed on nodes, lost with the gateway, or ended by the client's own time-out. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'failed' }
  | { readonly kind: 'gave-up' };

/** Each user arrives once and ends once. A user is not to be kept beyond its end. */
export interface UserObserver {
  userArrived?(user: User, now: MonoUs): void;
  userEnded?(user: User, end: UserEnd, now: MonoUs): void;
}
