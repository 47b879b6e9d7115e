/** What preemption has cost: its budget, and how each one ended. */
import type { RefUs } from '../../base/units.ts';
import { RetryBudget } from './budget.ts';

/** Deposits are capped: ten seconds of one reference accelerator. */
const BALANCE_US_MAX: RefUs = 10_000_000;

/** Of tasks that were asked for their place: they wait again, could not be done any more, or were done before. */
export interface PreemptionCounts {
  queued: number;
  ended: number;
  late: number;
}

export class Preemptions {
  readonly budget: RetryBudget = new RetryBudget(BALANCE_US_MAX);
  readonly counts: PreemptionCounts = { queued: 0, ended: 0, late: 0 };
}
