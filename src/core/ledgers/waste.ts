/**
 * Work that nodes did and nobody got, by cause. A fleet that is busy is not a fleet that serves: first come, first served at
 * 1.2 times the capacity keeps nodes 100 % busy with 11.5 % of it for somebody. In microseconds of the reference
 * accelerator, as work is counted everywhere; of an attempt that did not end well, what its node had time for at its measured
 * rate, at most the whole.
 */
import type { RefUs } from '../../base/units.ts';
import type { AttemptResult } from '../request/outcome.ts';

export const WASTE_CAUSES = [
  /** The attempt failed: broken connection, error, garbage. */
  'failed',
  /** It was silent for longer than its bound. */
  'timed-out',
  /** It was aborted because the deadline had passed. */
  'deadline',
  /** It was aborted because the client had left. */
  'client-left',
  /** It gave its place to a task of the first class. */
  'preempted',
  /** It ended well after its task had got its outcome, or where nothing is aborted for its deadline, after that. */
  'late',
] as const;
export type WasteCause = (typeof WASTE_CAUSES)[number];

export class WasteLedger {
  usefulUs: RefUs = 0;
  readonly byCause: Record<WasteCause, RefUs> = {
    failed: 0,
    'timed-out': 0,
    deadline: 0,
    'client-left': 0,
    preempted: 0,
    late: 0,
  };

  waste(cause: WasteCause, workUs: RefUs): void {
    this.byCause[cause] += workUs;
  }
}

/** How the task stood when its attempt ended. */
export interface AttemptStanding {
  readonly isSettled: boolean;
  readonly hasExpired: boolean;
  readonly gaveWay: boolean;
}

/** Why the work of an attempt was for nobody; null where somebody got it, or the node did none. */
export function wasteCauseOf(
  result: AttemptResult,
  { isSettled, hasExpired, gaveWay }: AttemptStanding,
): WasteCause | null {
  if (result.kind === 'declined') return null;
  if (result.kind === 'ok') return isSettled ? 'late' : null;
  if (result.kind === 'failed' && (result.failure === 'connect' || result.failure === 'refused')) return null;
  if (hasExpired) return 'deadline';
  if (isSettled) return 'client-left';
  if (result.kind === 'failed') return result.failure === 'timeout' ? 'timed-out' : 'failed';
  return gaveWay ? 'preempted' : 'client-left';
}
