/** The ledgers: what the scheduler books of its own mistakes, read by who tells them. */
export type { EtaError } from './eta.ts';
export { causeText, type Failure, type FailureCause, FailureCauses } from './failure-causes.ts';
export type { LedgersView } from './view.ts';
