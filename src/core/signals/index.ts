export { ClassTally, type ModelPace, NODE_TALLY_WIDTH, NodeTally, Tallies, TALLY_WIDTH } from './tally.ts';
export type { Severity, Subject } from './detector.ts';
export { SIGNAL_NAMES, type SignalName } from './names.ts';
export {
  type ClassSample,
  LACKING_HOSTS_MAX,
  type LackingHost,
  type LogSumsSample,
  type NodeSample,
  type OutsideSample,
  type Sample,
  TENANT_ROWS_MAX,
  type TenantSample,
  WAITING_ROWS_MAX,
  type WaitingRow,
  WATCHED_NODES_MAX,
} from './sample.ts';
export { Signals, type SignalsView } from './signals.ts';
