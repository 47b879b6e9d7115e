/** A user as clients keep it: what it wishes, drawn at its arrival, and where it is with its tries. */
import type { HeapSlot } from '../../base/keyed-heap.ts';
import type { MonoUs, Ratio, RefUs } from '../../base/units.ts';
import type { Size } from './sizes.ts';
import type { Source } from './source.ts';
import type { User } from './user.ts';

export interface UserRecord extends User {
  readonly source: Source;
  /** Position of its model in the stream. */
  readonly modelAt: number;
  readonly size: Size;
  /** What policies believe of the work. */
  readonly estimateUs: RefUs;
  readonly isPatient: boolean;
  readonly fingerprint: string;
  taskId: number;
  firstByteAt: MonoUs;
  /** Whether a try is under way. If not, it waits to try again. */
  isOut: boolean;
  /** Place among timers: hanging up while a try is under way, else coming back. Made when first needed. */
  timer: HeapSlot<UserRecord> | undefined;
}

export function firstByteEstimateUs({ size, estimateUs }: UserRecord): RefUs {
  const share: Ratio = size.firstByteShare;
  return share === 1 ? estimateUs : Math.max(1, Math.round(estimateUs * share));
}
