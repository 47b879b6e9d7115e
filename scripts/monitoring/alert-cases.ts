/**
 * For every alert: series under which it fires, and series under which it does not though they are close. promtool plays
 * them against the rules, minute by minute; `0+60x30` begins at 0 and grows by 60 a minute, thirty times.
 */
import { select } from './promql.ts';

/** Series by selector, without `job` and `instance`, which all get. */
export type SeriesOf = Readonly<Record<string, string>>;

export interface AlertCase {
  readonly alert: string;
  /** Minutes after the start. */
  readonly at: number;
  /** Minutes between samples and evaluations; 1 when absent. Three days by the minute take promtool half a minute. */
  readonly every?: number;
  readonly fires: SeriesOf;
  /** Labels of what fires, besides `severity`. */
  readonly labels: Readonly<Record<string, string>>;
  readonly quiet: SeriesOf;
}

const HERE = { job: 'spillway', instance: 'a' } as const;
const ended = (className: string, outcome: string): string =>
  select('spillway_requests_total', {
    class: `="${className}"`,
    model: '="m"',
    outcome: `="${outcome}"`,
  });
const rank = (className: string): string => select('spillway_class_rank', { class: `="${className}"` });
const nodes = (state: string): string => select('spillway_nodes', { state: `="${state}"` });
const FIRST = rank('critical');
const LOW = rank('low');
const ofCritical = { job: 'spillway', class: 'critical' };
const ofLow = { job: 'spillway', class: 'low' };

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: 'SpillwayDown',
    at: 10,
    fires: { [select('spillway_running')]: '0 0 0 stale' },
    labels: {},
    quiet: { [select('spillway_running')]: '0x20' },
  },
  {
    alert: 'SpillwayScrapeFails',
    at: 10,
    fires: { up: '1 1 0x20' },
    labels: HERE,
    quiet: { up: '1 0 1x20' },
  },
  {
    alert: 'SpillwayFleetGone',
    at: 10,
    fires: { [select('spillway_running')]: '0x20', [nodes('ejected')]: '3x20' },
    labels: HERE,
    quiet: {
      [select('spillway_running')]: '0x20',
      [nodes('ejected')]: '3x20',
      [nodes('unverified')]: '1x20',
    },
  },
  {
    alert: 'SpillwayNoNodeForModel',
    at: 10,
    fires: { [select('spillway_model_nodes', { model: '="m"' })]: '2 2 0x20' },
    labels: { ...HERE, model: 'm' },
    quiet: { [select('spillway_model_nodes', { model: '="m"' })]: '2 0 1x20' },
  },
  {
    alert: 'SpillwayFirstClassBurnsFast',
    at: 120,
    fires: {
      [ended('critical', 'served')]: '0+80x180',
      [ended('critical', 'shed')]: '0+20x180',
      [FIRST]: '0x180',
    },
    labels: ofCritical,
    // It was as bad, and is over: the short window has forgotten it.
    quiet: {
      [ended('critical', 'served')]: '0+80x80 6400+100x60',
      [ended('critical', 'shed')]: '0+20x80 1600x60',
      [FIRST]: '0x180',
    },
  },
  {
    alert: 'SpillwayFirstClassBurnsSlowly',
    at: 4_320,
    every: 10,
    fires: {
      [ended('critical', 'served')]: '0+980x480',
      [ended('critical', 'node-failed')]: '0+20x480',
      [FIRST]: '0x480',
    },
    labels: ofCritical,
    quiet: {
      [ended('critical', 'served')]: '0+995x480',
      [ended('critical', 'node-failed')]: '0+5x480',
      [FIRST]: '0x480',
    },
  },
  {
    alert: 'SpillwayOtherClassBurns',
    at: 380,
    fires: { [ended('low', 'served')]: '0+30x400', [ended('low', 'shed')]: '0+70x400', [LOW]: '2x400' },
    labels: ofLow,
    quiet: { [ended('low', 'served')]: '0+60x400', [ended('low', 'shed')]: '0+40x400', [LOW]: '2x400' },
  },
  {
    alert: 'SpillwayOldestWaitOverTarget',
    at: 10,
    fires: {
      [select('spillway_oldest_wait_seconds', { class: '="low"' })]: '0+60x20',
      [select('spillway_class_deadline_seconds', { class: '="low"', bound: '="completion"' })]: '300x20',
      [select('spillway_class_deadline_seconds', { class: '="low"', bound: '="first-byte"' })]: '60x20',
    },
    labels: { ...HERE, class: 'low' },
    quiet: {
      [select('spillway_oldest_wait_seconds', { class: '="low"' })]: '299x20',
      [select('spillway_class_deadline_seconds', { class: '="low"', bound: '="completion"' })]: '300x20',
      [select('spillway_class_deadline_seconds', { class: '="low"', bound: '="first-byte"' })]: '60x20',
    },
  },
  {
    alert: 'SpillwayLadderLastStage',
    at: 10,
    fires: { [select('spillway_ladder_stage')]: '3x20' },
    labels: HERE,
    quiet: { [select('spillway_ladder_stage')]: '2x20' },
  },
  {
    alert: 'SpillwayLadderRaised',
    at: 20,
    fires: { [select('spillway_ladder_stage')]: '1x30' },
    labels: HERE,
    quiet: { [select('spillway_ladder_stage')]: '1x8 0 1x20' },
  },
  {
    alert: 'SpillwaySignalPages',
    at: 10,
    fires: {
      [select('spillway_signal_findings', { signal: '="latched-gate"', severity: '="page"' })]: '0 0 1x20',
    },
    labels: { ...HERE, signal: 'latched-gate' },
    quiet: {
      [select('spillway_signal_findings', { signal: '="latched-gate"', severity: '="warn"' })]: '2x20',
      [select('spillway_signal_findings', { signal: '="latched-gate"', severity: '="page"' })]: '0x20',
    },
  },
  {
    alert: 'SpillwaySignalActive',
    at: 10,
    fires: { [select('spillway_signal_active', { signal: '="ghost-queue"' })]: '1x20' },
    labels: { ...HERE, signal: 'ghost-queue' },
    quiet: { [select('spillway_signal_active', { signal: '="ghost-queue"' })]: '0x20' },
  },
  {
    alert: 'SpillwayRetryBudgetEmpty',
    at: 10,
    fires: { [select('spillway_retry_budget_ratio')]: '0.01x20' },
    labels: HERE,
    quiet: { [select('spillway_retry_budget_ratio')]: '0.2x20' },
  },
  {
    alert: 'SpillwayModelFailsEverywhere',
    at: 10,
    fires: { [select('spillway_breakers_open', { scope: '="everywhere"' })]: '1x20' },
    labels: { ...HERE, scope: 'everywhere' },
    quiet: { [select('spillway_breakers_open', { scope: '="node"' })]: '5x20' },
  },
  {
    alert: 'SpillwayNodesClosed',
    at: 20,
    fires: { [nodes('active')]: '7x30', [nodes('ejected')]: '2x30', [nodes('suspect')]: '1x30' },
    labels: HERE,
    quiet: { [nodes('active')]: '9x30', [nodes('ejected')]: '1x30' },
  },
  {
    alert: 'SpillwayNodesFail',
    at: 30,
    fires: { [ended('low', 'served')]: '0+90x40', [ended('low', 'node-failed')]: '0+10x40' },
    labels: { job: 'spillway', model: 'm' },
    quiet: { [ended('low', 'served')]: '0+98x40', [ended('low', 'node-failed')]: '0+2x40' },
  },
  {
    alert: 'SpillwayEventLoopLags',
    at: 10,
    fires: { [select('spillway_event_loop_lag_seconds')]: '0.15x20' },
    labels: HERE,
    quiet: { [select('spillway_event_loop_lag_seconds')]: '0.02x20' },
  },
  {
    alert: 'SpillwayProtectsItself',
    at: 10,
    fires: { [select('spillway_survival_shed_classes')]: '1x20' },
    labels: HERE,
    quiet: { [select('spillway_survival_shed_classes')]: '0x20' },
  },
  {
    alert: 'SpillwayHeapNearLimit',
    at: 20,
    fires: { [select('spillway_heap_used_bytes')]: '90x30', [select('spillway_heap_limit_bytes')]: '100x30' },
    labels: HERE,
    quiet: { [select('spillway_heap_used_bytes')]: '70x30', [select('spillway_heap_limit_bytes')]: '100x30' },
  },
  {
    alert: 'SpillwayDescriptorsNearLimit',
    at: 10,
    fires: {
      [select('process_open_fds')]: '900x20',
      [select('process_max_fds')]: '1000x20',
      [select('spillway_running')]: '0x20',
    },
    labels: HERE,
    // Not ours: whatever it is, it runs no gateway.
    quiet: { [select('process_open_fds')]: '900x20', [select('process_max_fds')]: '1000x20' },
  },
  {
    alert: 'SpillwayWorkWasted',
    at: 30,
    fires: {
      [select('spillway_wasted_work_seconds_total', { cause: '="failed"' })]: '0+10x40',
      [select('spillway_wasted_work_seconds_total', { cause: '="late"' })]: '0+10x40',
      [select('spillway_useful_work_seconds_total')]: '0+80x40',
    },
    labels: HERE,
    quiet: {
      [select('spillway_wasted_work_seconds_total', { cause: '="failed"' })]: '0+2x40',
      [select('spillway_wasted_work_seconds_total', { cause: '="late"' })]: '0+2x40',
      [select('spillway_useful_work_seconds_total')]: '0+96x40',
    },
  },
  {
    alert: 'SpillwayGateTooTight',
    at: 45,
    fires: {
      [select('spillway_rejected_capacity_total', { class: '="low"' })]: '0+10x60',
      [select('spillway_rejected_could_have_served_total', { class: '="low"' })]: '0+3x60',
    },
    labels: ofLow,
    // A third of a handful is no evidence.
    quiet: {
      [select('spillway_rejected_capacity_total', { class: '="low"' })]: '0+1x60',
      [select('spillway_rejected_could_have_served_total', { class: '="low"' })]: '0+0.3x60',
    },
  },
  {
    alert: 'SpillwayPredictionsOff',
    at: 30,
    fires: {
      [select('spillway_eta_error_ratio', {
        class: '="low"',
        prediction: '="dispatch"',
        quantile: '="0.5"',
      })]: '1.5x40',
    },
    labels: { ...HERE, class: 'low', prediction: 'dispatch', quantile: '0.5' },
    quiet: {
      [select('spillway_eta_error_ratio', {
        class: '="low"',
        prediction: '="dispatch"',
        quantile: '="0.5"',
      })]: '0.4x40',
      [select('spillway_eta_error_ratio', {
        class: '="low"',
        prediction: '="dispatch"',
        quantile: '="0.95"',
      })]: '3x40',
    },
  },
  {
    alert: 'SpillwayJournalDrops',
    at: 20,
    fires: { [select('spillway_journal_dropped_total')]: '0x14 5x20' },
    labels: HERE,
    quiet: { [select('spillway_journal_dropped_total')]: '7x40' },
  },
  {
    alert: 'SpillwayHintsBroken',
    at: 45,
    fires: {
      [select('spillway_retry_hints_total', { result: '="kept"' })]: '0+3x60',
      [select('spillway_retry_hints_total', { result: '="broken"' })]: '0+3x60',
    },
    labels: { job: 'spillway' },
    quiet: {
      [select('spillway_retry_hints_total', { result: '="kept"' })]: '0+9x60',
      [select('spillway_retry_hints_total', { result: '="broken"' })]: '0+1x60',
    },
  },
  {
    alert: 'SpillwayClientsLeave',
    at: 40,
    fires: { [ended('low', 'served')]: '0+60x60', [ended('low', 'cancelled')]: '0+40x60' },
    labels: ofLow,
    quiet: { [ended('low', 'served')]: '0+90x60', [ended('low', 'cancelled')]: '0+10x60' },
  },
];
