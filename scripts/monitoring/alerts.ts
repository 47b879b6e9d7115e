/**
 * What wakes somebody, and what can wait for the morning. Every alert says what it means, what to look at and what to do, and
 * comes with series under which it fires and series under which it does not (alert-cases.ts), which promtool plays.
 *
 * Burn rates follow The Site Reliability Workbook (Google), chapter 5: a page when the error budget of a month is spent 14.4 times
 * too fast over an hour and still over five minutes, or 6 times over six hours and still over half an hour; a ticket
 * when it is spent at all over three days and still over six hours.
 */
import { increase, rate, select, sumBy } from './promql.ts';

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

export interface Alert {
  readonly alert: string;
  readonly severity: 'page' | 'ticket';
  readonly expr: string;
  /** How long it must hold. */
  readonly for: string;
  /** One sentence; `{{ $labels.NAME }}` stands for a label. */
  readonly summary: string;
  readonly means: string;
  readonly look: string;
  readonly act: string;
}

/** Ends that are ours to answer for; a limit, a wrong request, and a client that left are not. */
export const BAD_OUTCOMES = [
  'deadline-infeasible',
  'evicted',
  'no-node',
  'node-failed',
  'node-timeout',
  'preempted',
  'queue-full',
  'self-protection',
  'shed',
  'shutting-down',
  'wait-expired',
] as const;
const GOOD_OUTCOMES = ['served', 'degraded'] as const;
const BAD = BAD_OUTCOMES.join('|');
const COUNTED = [...BAD_OUTCOMES, ...GOOD_OUTCOMES].join('|');

const WINDOWS = ['5m', '30m', '1h', '6h', '3d'] as const;
type Window = (typeof WINDOWS)[number];

const badRatio = (window: Window): string => `class:spillway_requests_bad:ratio_rate${window}`;

export const RECORDING_RULES: readonly RecordingRule[] = WINDOWS.map((window) => ({
  record: badRatio(window),
  expr: `${sumBy(['job', 'class'], rate('spillway_requests_total', window, { outcome: `=~"${BAD}"`, class: '!=""' }))} / ${sumBy(['job', 'class'], rate('spillway_requests_total', window, { outcome: `=~"${COUNTED}"`, class: '!=""' }))}`,
}));

/** 99 % of what the first class asks for is answered in time, 90 % of the others': to give way is what they are for. */
const FIRST_BUDGET = 0.01;
const OTHER_BUDGET = 0.1;

function burns(windows: readonly [Window, Window], times: number, budget: number): string {
  const limit = Number((times * budget).toPrecision(6));
  return windows.map((window) => `${badRatio(window)} > ${limit}`).join(' and ');
}

const ofFirst = `on (job, class) max by (job, class) (${select('spillway_class_rank')} == 0)`;
const ofOthers = `on (job, class) max by (job, class) (${select('spillway_class_rank')} > 0)`;
const OPEN = { state: '=~"active|unverified"' } as const;
const CLOSED = { state: '=~"ejected|suspect"' } as const;
const perGateway = (expression: string): string => sumBy(['job', 'instance'], expression);

export const ALERTS: readonly Alert[] = [
  {
    alert: 'SpillwayDown',
    severity: 'page',
    expr: `absent(${select('spillway_running')})`,
    for: '2m',
    summary: 'No gateway answers the scrape',
    means:
      'Nothing was scraped for two minutes: the gateway is gone, or Prometheus cannot reach it or is refused.',
    look: '`GET /readyz`, the log of the process, the state of the target in Prometheus (401: the token of the scrape).',
    act: 'Restart it: what was durable is there again at once. If it lives, repair the scrape; you are blind meanwhile.',
  },
  {
    alert: 'SpillwayScrapeFails',
    severity: 'page',
    // Prometheus' own series, by the name of the job in the guide.
    expr: 'up{job="spillway"} == 0',
    for: '2m',
    summary: 'The gateway {{ $labels.instance }} does not answer the scrape',
    means: 'One of the gateways is gone, hangs, or refuses the scrape.',
    look: '`GET /readyz` of that gateway, the log of its process, the error of the target in Prometheus.',
    act: 'Restart it. Its waiting requests are lost, their clients see a closed connection and may ask again.',
  },
  {
    alert: 'SpillwayFleetGone',
    severity: 'page',
    expr: `(${perGateway(select('spillway_nodes', OPEN))} or 0 * ${select('spillway_running')}) == 0`,
    for: '1m',
    summary: 'No node of {{ $labels.instance }} takes work',
    means:
      'Every node is ejected, suspect, cordoned, draining or gone: all requests are refused with `no-node`.',
    look: '`spillway nodes`: state and health. All at once: the network between, or what they have in common.',
    act: 'Uncordon what was cordoned; ejected nodes come back by themselves when they answer. Add nodes (`POST /nodes`).',
  },
  {
    alert: 'SpillwayNoNodeForModel',
    severity: 'page',
    expr: `${select('spillway_model_nodes')} == 0`,
    for: '2m',
    summary: 'No node takes work for the model {{ $labels.model }}',
    means: 'The model is configured or offered, and every node that offers it is closed, or none does.',
    look: '`spillway nodes`: who offers it, in which state. `spillway explain ID` of a refused request names each reason.',
    act: 'Start or uncordon a node of the model, or take the model out of the configuration.',
  },
  {
    alert: 'SpillwayFirstClassBurnsFast',
    severity: 'page',
    expr: `((${burns(['5m', '1h'], 14.4, FIRST_BUDGET)}) or (${burns(['30m', '6h'], 6, FIRST_BUDGET)})) and ${ofFirst}`,
    for: '1m',
    summary: 'The first class {{ $labels.class }} is refused or fails far too often',
    means:
      'At this pace the month’s budget of 1 % is spent in two days. The first class should be the last to suffer.',
    look: 'Panel "How requests end" for the reasons. `spillway signals`; `spillway explain ID` of a few of them.',
    act: '`deadline-infeasible`, `wait-expired`: add nodes or raise the ladder (`PUT /ladder`). `node-failed`, `node-timeout`: see the nodes. `no-node`: see that alert.',
  },
  {
    alert: 'SpillwayFirstClassBurnsSlowly',
    severity: 'ticket',
    expr: `(${burns(['6h', '3d'], 1, FIRST_BUDGET)}) and ${ofFirst}`,
    for: '15m',
    summary: 'The first class {{ $labels.class }} spends its error budget faster than it comes back',
    means: 'More than 1 % was refused or failed over three days, and it still goes on.',
    look: 'The same panel over a week: at which hours, for which model.',
    act: 'Plan capacity for those hours, or let lesser answers stand in (`degrade`).',
  },
  {
    alert: 'SpillwayOtherClassBurns',
    severity: 'ticket',
    expr: `(${burns(['30m', '6h'], 6, OTHER_BUDGET)}) and ${ofOthers}`,
    for: '5m',
    summary: 'More than half of the class {{ $labels.class }} is refused or fails',
    means:
      'A lower class gives way to the first one for hours. That is what it is for, but not what it was promised.',
    look: '`spillway queue` and the panel of the ladder: how much more is asked for than the fleet can do.',
    act: 'Add nodes, move its load to other hours, or tell its tenants.',
  },
  {
    alert: 'SpillwayOldestWaitOverTarget',
    severity: 'ticket',
    expr: `${select('spillway_oldest_wait_seconds')} > on (job, instance, class) ${select('spillway_class_deadline_seconds', { bound: '="completion"' })}`,
    for: '1m',
    summary: 'A request of the class {{ $labels.class }} waits longer than its class is given',
    means:
      'Somebody waits beyond the default deadline of the class: by an own, longer deadline, or forgotten.',
    look: '`spillway queue`, then `spillway explain ID`: which gate holds it, and what would let it run.',
    act: 'What `explain` says under `unblock`. If nothing is said, restart the gateway and keep its `dump`.',
  },
  {
    alert: 'SpillwayLadderLastStage',
    severity: 'page',
    expr: `${select('spillway_ladder_stage')} >= 3`,
    for: '2m',
    summary: 'The overload ladder of {{ $labels.instance }} is at its last stage',
    means: 'Only the first class is let in, and one in a hundred of the others.',
    look: '`GET /ladder`: which trigger, for which model, and what would leave the stage; or who set it by hand, and why.',
    act: 'Add nodes for that model, or find who sends so much (`spillway queue` by tenant) and limit it.',
  },
  {
    alert: 'SpillwayLadderRaised',
    severity: 'ticket',
    expr: `${select('spillway_ladder_stage')} >= 1`,
    for: '15m',
    summary: 'The overload ladder of {{ $labels.instance }} has been raised for a quarter of an hour',
    means: 'The fleet has been short for longer than a burst.',
    look: '`GET /ladder`: evidence and `unblock`.',
    act: 'Add nodes, or accept that lower classes get lesser answers or wait.',
  },
  {
    alert: 'SpillwaySignalPages',
    severity: 'page',
    expr: `${select('spillway_signal_findings', { severity: '="page"' })} > 0`,
    for: '1m',
    summary: 'A silent failure is found that cannot wait: {{ $labels.signal }}',
    means: 'Its detector calls it urgent: many users suffer by it, or the books do not add up.',
    look: '`spillway signals`: what was seen, where, and the numbers behind it; the page of the signal in `docs/signals/`.',
    act: 'The remedy that it names.',
  },
  {
    alert: 'SpillwaySignalActive',
    severity: 'ticket',
    expr: `${select('spillway_signal_active')} == 1`,
    for: '1m',
    summary: 'A silent failure is found: {{ $labels.signal }}',
    means: 'Every panel may be green, and somebody suffers all the same.',
    look: '`spillway signals`: what was seen, where, and the numbers behind it.',
    act: 'The remedy that it names.',
  },
  {
    alert: 'SpillwayRetryBudgetEmpty',
    severity: 'ticket',
    expr: `${select('spillway_retry_budget_ratio')} < 0.05`,
    for: '2m',
    summary: 'Failed attempts of {{ $labels.instance }} are not repeated any more',
    means: 'So many attempts fail that retries would be the load. Failures of nodes now reach clients.',
    look: '`spillway nodes`: health and breakers. Panel "Work that nobody got": `failed` or `timed-out`.',
    act: 'Cordon the nodes that fail. The budget fills again with what is served.',
  },
  {
    alert: 'SpillwayModelFailsEverywhere',
    severity: 'page',
    expr: `${select('spillway_breakers_open', { scope: '="everywhere"' })} > 0`,
    for: '1m',
    summary: 'A model fails on every node of {{ $labels.instance }}',
    means: 'Its breaker is open: requests for it are refused at once instead of breaking node after node.',
    look: '`spillway nodes --json`: `breakers` with scope `everywhere`.',
    act: 'Look at the weights or the version of the engine that was rolled out last; roll back. It is tried again by itself.',
  },
  {
    alert: 'SpillwayNodesClosed',
    severity: 'ticket',
    expr: `${perGateway(select('spillway_nodes', CLOSED))} / ${perGateway(select('spillway_nodes'))} > 0.2`,
    for: '10m',
    summary: 'More than a fifth of the nodes of {{ $labels.instance }} are ejected or out of reach',
    means: 'Capacity is missing for longer than a restart takes.',
    look: '`spillway nodes`: which, since when, and what they have in common (zone, hardware, engine).',
    act: 'Restart or replace them; cordon what comes and goes.',
  },
  {
    alert: 'SpillwayNodesFail',
    severity: 'ticket',
    expr: `${sumBy(['job', 'model'], rate('spillway_requests_total', '10m', { outcome: '=~"node-failed|node-timeout"' }))} / ${sumBy(['job', 'model'], rate('spillway_requests_total', '10m', { outcome: `=~"${COUNTED}"` }))} > 0.05`,
    for: '5m',
    summary: 'Nodes fail more than one in twenty requests for {{ $labels.model }}',
    means: 'Retries and ejections do not hide it any more.',
    look: '`spillway explain ID` of such a request: each attempt, its node and how it failed.',
    act: 'Cordon the node that they share; else look at the engine.',
  },
  {
    alert: 'SpillwayEventLoopLags',
    severity: 'page',
    expr: `${select('spillway_event_loop_lag_seconds')} > 0.1`,
    for: '1m',
    summary: 'The gateway {{ $labels.instance }} is itself too slow',
    means:
      'Its event loop is late by more than 100 ms in the median: it decides and answers late. At 200 ms it refuses classes.',
    look: 'CPU of the process (throttled?), garbage (heap near its limit), requests a second.',
    act: 'Give it a core of its own, or spread the load over more gateways.',
  },
  {
    alert: 'SpillwayProtectsItself',
    severity: 'page',
    expr: `${select('spillway_survival_shed_classes')} > 0`,
    for: '1m',
    summary: 'The gateway {{ $labels.instance }} refuses classes to survive',
    means: 'Lag, heap, memory or descriptors are beyond their bound; the lowest classes are refused first.',
    look: 'The log says which pressure it was. Panels of the process.',
    act: 'More CPU, memory or descriptors (`ulimit -n`), or another gateway.',
  },
  {
    alert: 'SpillwayHeapNearLimit',
    severity: 'ticket',
    expr: `${select('spillway_heap_used_bytes')} / ${select('spillway_heap_limit_bytes')} > 0.8`,
    for: '10m',
    summary: 'The heap of {{ $labels.instance }} is nearly full',
    means: 'At 0.85 the gateway begins to refuse classes.',
    look: '`spillway queue`: bytes and depth. `GET /dump`: which table is large.',
    act: 'Raise the limit of memory, or lower `bounds.bytesMax`.',
  },
  {
    alert: 'SpillwayDescriptorsNearLimit',
    severity: 'ticket',
    expr: `${select('process_open_fds', {})} / ${select('process_max_fds')} > 0.8 and ${select('spillway_running')} >= 0`,
    for: '5m',
    summary: 'The gateway {{ $labels.instance }} is short of file descriptors',
    means: 'Each client and each node connection is one. At 0.9 classes are refused.',
    look: '`spillway_connections`, and the limit (`process_max_fds`).',
    act: 'Raise `ulimit -n`.',
  },
  {
    alert: 'SpillwayWorkWasted',
    severity: 'ticket',
    expr: `sum by (job, instance) (${rate('spillway_wasted_work_seconds_total', '10m')}) / (sum by (job, instance) (${rate('spillway_wasted_work_seconds_total', '10m')}) + sum by (job, instance) (${rate('spillway_useful_work_seconds_total', '10m')})) > 0.1`,
    for: '5m',
    summary: 'More than a tenth of what the nodes of {{ $labels.instance }} do is for nobody',
    means: 'Nodes are busy with attempts that fail, come too late, or whose client has left.',
    look: 'Panel "Work that nobody got", by cause; then `explain` of such requests.',
    act: '`client-left`: clients time out before their deadline, let them send it. `deadline`: predictions are off. `failed`, `timed-out`: the nodes.',
  },
  {
    alert: 'SpillwayJournalDrops',
    severity: 'ticket',
    expr: `${increase('spillway_journal_dropped_total', '10m')} > 0`,
    for: '0m',
    summary: 'The journal of {{ $labels.instance }} has gaps',
    means:
      'The disk is full, gone or too slow: what was decided meanwhile cannot be replayed. Requests are served all the same.',
    look: 'Disk of `journal.folder`; the log, which tells the error; `runtime.journal` in `GET /dump`.',
    act: 'Make room, lower `journal.bytesMax`, or give the journal a quicker disk. It goes on in a new segment by itself.',
  },
  {
    alert: 'SpillwayGateTooTight',
    severity: 'ticket',
    expr: `sum by (job, class) (${increase('spillway_rejected_could_have_served_total', '30m')}) / sum by (job, class) (${increase('spillway_rejected_capacity_total', '30m')}) > 0.1 and sum by (job, class) (${increase('spillway_rejected_capacity_total', '30m')}) > 100`,
    for: '5m',
    summary: 'More than a tenth of what was refused to {{ $labels.class }} could have been served',
    means: 'Nodes idled for long enough, in time: a gate refuses too much.',
    look: '`GET /ledgers`: by reason, with examples (node and instant) for `explain`.',
    act: 'Long deadlines and short bursts: let the class wait longer (`admission.flowWaitMsMax`). Else put that gate into shadow (`gates`) and compare, and look at the errors of predictions, which widen its margin.',
  },
  {
    alert: 'SpillwayPredictionsOff',
    severity: 'ticket',
    expr: `${select('spillway_eta_error_ratio', { prediction: '="dispatch"', quantile: '="0.5"' })} > 1`,
    for: '15m',
    summary:
      'Service times of the class {{ $labels.class }} are predicted wrong by more than a factor of two',
    means: 'Placement, refusals and the times they name stand on these predictions.',
    look: '`GET /ledgers`: `bias` tells whether work is larger or smaller than thought.',
    act: 'State the model’s profile (`models.profile`), or the tokens asked for by clients (`max_tokens`).',
  },
  {
    alert: 'SpillwayHintsBroken',
    severity: 'ticket',
    expr: `sum by (job) (${increase('spillway_retry_hints_total', '30m', { result: '="broken"' })}) / sum by (job) (${increase('spillway_retry_hints_total', '30m')}) > 0.3 and sum by (job) (${increase('spillway_retry_hints_total', '30m')}) > 50`,
    for: '5m',
    summary: 'Clients that come back when they were told to are refused again',
    means: 'More than three in ten of the times that refusals name do not come true.',
    look: 'Whether capacity falls (nodes leave) or load rises faster than the places that were promised.',
    act: 'Add nodes; clients do what they can already.',
  },
  {
    alert: 'SpillwayClientsLeave',
    severity: 'ticket',
    expr: `sum by (job, class) (${rate('spillway_requests_total', '10m', { outcome: '="cancelled"' })}) / sum by (job, class) (${rate('spillway_requests_total', '10m')}) > 0.2`,
    for: '10m',
    summary:
      'More than a fifth of the clients of the class {{ $labels.class }} leave before they are answered',
    means: 'Nothing failed by our books: people gave up.',
    look: 'Waits and times to the first byte by class; what clients do when they time out.',
    act: 'Let clients send their own deadline (`x-spillway-deadline-ms`): they get a refusal at once instead.',
  },
];
