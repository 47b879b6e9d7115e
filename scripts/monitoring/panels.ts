/** What the dashboard shows, from what users meet down to what causes it. */
import { BAD_OUTCOMES } from './alerts.ts';
import { quantile, rate, select, sumBy } from './promql.ts';

export interface Query {
  readonly expr: string;
  /** `{{label}}` stands for a label. */
  readonly legend: string;
}

export type Unit = 's' | 'short' | 'reqps' | 'percentunit' | 'bytes' | 'ops' | 'celsius';

export interface Panel {
  readonly title: string;
  readonly description: string;
  readonly unit: Unit;
  readonly kind: 'timeseries' | 'stat';
  readonly stacked?: boolean;
  readonly queries: readonly Query[];
}

export interface PanelRow {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Grafana's own: at least four scrapes. */
const W = '$__rate_interval';
const BAD = BAD_OUTCOMES.join('|');

const one = (expr: string, legend: string): readonly Query[] => [{ expr, legend }];

function series(title: string, unit: Unit, description: string, queries: readonly Query[]): Panel {
  return { title, unit, description, queries, kind: 'timeseries' };
}

function stacked(title: string, unit: Unit, description: string, queries: readonly Query[]): Panel {
  return { ...series(title, unit, description, queries), stacked: true };
}

function stat(title: string, unit: Unit, description: string, queries: readonly Query[]): Panel {
  return { title, unit, description, queries, kind: 'stat' };
}

const wasted = sumBy(['cause'], rate('spillway_wasted_work_seconds_total', W));
const wastedAll = `sum(${rate('spillway_wasted_work_seconds_total', W)})`;
const usefulAll = `sum(${rate('spillway_useful_work_seconds_total', W)})`;

export const PANEL_ROWS: readonly PanelRow[] = [
  {
    title: 'Now',
    panels: [
      stat(
        'Waiting',
        'short',
        'Requests in the queue.',
        one(`sum(${select('spillway_queue_depth')}) or vector(0)`, 'waiting'),
      ),
      stat('Running', 'short', 'Requests on nodes.', one(`sum(${select('spillway_running')})`, 'running')),
      stat(
        'Ladder',
        'short',
        'Stage of the overload ladder, 0 to 3.',
        one(`max(${select('spillway_ladder_stage')})`, 'stage'),
      ),
      stat(
        'Silent failures',
        'short',
        'Signals that are active; `spillway signals` says what and where.',
        one(`sum(${select('spillway_signal_active')})`, 'active'),
      ),
      stat(
        'Nodes that take work',
        'short',
        'Active, or not verified yet.',
        one(`sum(${select('spillway_nodes', { state: '=~"active|unverified"' })})`, 'nodes'),
      ),
      stat(
        'Retry budget',
        'percentunit',
        'What is left to pay retries from.',
        one(`min(${select('spillway_retry_budget_ratio')})`, 'left'),
      ),
    ],
  },
  {
    title: 'What users meet',
    panels: [
      stacked(
        'How requests end',
        'reqps',
        'By outcome; the reason of each refusal and failure.',
        one(sumBy(['outcome'], rate('spillway_requests_total', W)), '{{outcome}}'),
      ),
      series(
        'Refused or failed, by class',
        'percentunit',
        'What is ours to answer for, over all that ended.',
        one(
          `${sumBy(['class'], rate('spillway_requests_total', W, { outcome: `=~"${BAD}"` }))} / ${sumBy(['class'], rate('spillway_requests_total', W))}`,
          '{{class}}',
        ),
      ),
      series(
        'Time to the first byte, p95',
        's',
        'Head of the request to the first content byte.',
        one(quantile(0.95, 'spillway_time_to_first_byte_seconds', { window: W, by: ['class'] }), '{{class}}'),
      ),
      series(
        'Time to the whole answer, p95',
        's',
        'Head of the request to the end of the answer.',
        one(quantile(0.95, 'spillway_request_seconds', { window: W, by: ['class'] }), '{{class}}'),
      ),
      series(
        'Requests by model',
        'reqps',
        'All that ended.',
        one(sumBy(['model'], rate('spillway_requests_total', W)), '{{model}}'),
      ),
      series(
        'Tokens',
        'ops',
        'As nodes reported them, a second.',
        one(sumBy(['direction', 'model'], rate('spillway_tokens_total', W)), '{{direction}} {{model}}'),
      ),
    ],
  },
  {
    title: 'Waiting',
    panels: [
      series(
        'Queue',
        'short',
        'Requests waiting, by class.',
        one(
          `${sumBy(['class'], select('spillway_queue_depth'))} or 0 * ${sumBy(['class'], select('spillway_class_rank'))}`,
          '{{class}}',
        ),
      ),
      series(
        'Work waiting',
        's',
        'In seconds of the reference accelerator.',
        one(sumBy(['class'], select('spillway_queue_work_seconds')), '{{class}}'),
      ),
      series('Oldest wait', 's', 'Age of who waits longest, and the default deadline of its class.', [
        { expr: `max by (class) (${select('spillway_oldest_wait_seconds')})`, legend: '{{class}}' },
        {
          expr: `max by (class) (${select('spillway_class_deadline_seconds', { bound: '="completion"' })})`,
          legend: '{{class}}, deadline',
        },
      ]),
      series(
        'Wait in the queue, p95',
        's',
        'Arrival to the first assignment.',
        one(quantile(0.95, 'spillway_queue_wait_seconds', { window: W, by: ['class'] }), '{{class}}'),
      ),
      series('Bytes waiting', 'bytes', 'Bodies in the queue, and what is held for slow readers.', [
        { expr: `sum(${select('spillway_queue_bytes')})`, legend: 'queue' },
        { expr: `sum(${select('spillway_spool_bytes')})`, legend: 'slow readers' },
      ]),
    ],
  },
  {
    title: 'Overload',
    panels: [
      stacked(
        'Refusals by gate',
        'ops',
        'What each protective gate refused.',
        one(sumBy(['gate'], rate('spillway_gate_refusals_total', W, { effect: '="refused"' })), '{{gate}}'),
      ),
      series(
        'Gates in shadow',
        'ops',
        'What they would have refused.',
        one(sumBy(['gate'], rate('spillway_gate_refusals_total', W, { effect: '="shadow"' })), '{{gate}}'),
      ),
      series(
        'Ladder and self-protection',
        'short',
        'Stage of the ladder, and classes refused so that the gateway survives.',
        [
          { expr: `max(${select('spillway_ladder_stage')})`, legend: 'ladder stage' },
          { expr: `max(${select('spillway_survival_shed_classes')})`, legend: 'classes refused' },
        ],
      ),
      series(
        'Retries and preemptions',
        'ops',
        'Attempts after the first, and running requests asked for their place.',
        [
          { expr: `sum(${rate('spillway_retries_total', W)})`, legend: 'retries' },
          { expr: sumBy(['effect'], rate('spillway_preemptions_total', W)), legend: 'preempted, {{effect}}' },
        ],
      ),
      series(
        'Signals',
        'short',
        '1 while a silent failure is found.',
        one(`max by (signal) (${select('spillway_signal_active')})`, '{{signal}}'),
      ),
    ],
  },
  {
    title: 'The scheduler’s books on itself',
    panels: [
      series(
        'Refusals that could have been served',
        'ops',
        'A node had a place free for long enough, in time.',
        [
          {
            expr: sumBy(['class'], rate('spillway_rejected_could_have_served_total', W)),
            legend: '{{class}}',
          },
          {
            expr: `sum(${rate('spillway_rejected_capacity_total', W)})`,
            legend: 'all refusals for want of capacity',
          },
        ],
      ),
      series(
        'Errors of predictions',
        'percentunit',
        'Middle and 95th percentile of how far predicted service times were off.',
        one(select('spillway_eta_error_ratio', { prediction: '="dispatch"' }), '{{class}} p{{quantile}}'),
      ),
      series(
        'Errors of estimates at admission',
        'percentunit',
        'The same of the whole wait, as predicted when a request was let in.',
        one(select('spillway_eta_error_ratio', { prediction: '="admission"' }), '{{class}} p{{quantile}}'),
      ),
      stacked(
        'Work that nobody got',
        's',
        'Seconds of the reference accelerator a second, by cause.',
        one(wasted, '{{cause}}'),
      ),
      series(
        'Share of work wasted',
        'percentunit',
        'Of all that nodes did.',
        one(`${wastedAll} / (${wastedAll} + ${usefulAll})`, 'wasted'),
      ),
      series(
        'Times that refusals named',
        'ops',
        'Who came back no earlier than told: let in, or refused again.',
        one(sumBy(['result'], rate('spillway_retry_hints_total', W)), '{{result}}'),
      ),
    ],
  },
  {
    title: 'Nodes',
    panels: [
      stacked(
        'Nodes by state',
        'short',
        'Ejected and suspect ones come back by themselves.',
        one(sumBy(['state'], select('spillway_nodes')), '{{state}}'),
      ),
      series(
        'Nodes by model',
        'short',
        'That offer the model and take work.',
        one(sumBy(['model'], select('spillway_model_nodes')), '{{model}}'),
      ),
      series(
        'Use of places',
        'percentunit',
        'Running over places, of nodes that state or have learned them.',
        one(`sum(${select('spillway_node_inflight')}) / sum(${select('spillway_node_slots')} > 0)`, 'in use'),
      ),
      series(
        'Drain time',
        's',
        'Time until the work bound to a node is done, the ten longest.',
        one(`topk(10, ${select('spillway_node_drain_seconds')})`, '{{node}}'),
      ),
      series(
        'Least healthy nodes',
        'percentunit',
        'Health from 0 to 1.',
        one(`bottomk(10, ${select('spillway_node_health')})`, '{{node}}'),
      ),
      series(
        'Learned rates',
        'short',
        'As a multiple of the reference accelerator.',
        one(`topk(10, ${select('spillway_node_rate_ratio')})`, '{{node}}'),
      ),
      series(
        'Accelerators, as their hosts say',
        'percentunit',
        'Use of the busiest and memory of the fullest of each node that names its exporter.',
        [
          { expr: `topk(10, ${select('spillway_node_telemetry_busy_ratio')})`, legend: '{{node}}, use' },
          { expr: `topk(10, ${select('spillway_node_telemetry_memory_ratio')})`, legend: '{{node}}, memory' },
        ],
      ),
      series(
        'Temperature',
        'celsius',
        'Of the warmest accelerator of each node.',
        one(`topk(10, ${select('spillway_node_telemetry_temperature_celsius')})`, '{{node}}'),
      ),
      series(
        'Breakers and stale readings',
        'short',
        'Models shut on a node or everywhere; nodes whose load readings are missing or frozen.',
        [
          { expr: `sum by (scope) (${select('spillway_breakers_open')})`, legend: 'shut, {{scope}}' },
          { expr: `sum(${select('spillway_node_readings_stale')})`, legend: 'stale readings' },
        ],
      ),
    ],
  },
  {
    title: 'The gateway',
    panels: [
      series('Lag of the event loop', 's', 'Above 0.2 s classes are refused.', [
        { expr: `max(${select('spillway_event_loop_lag_seconds')})`, legend: 'median' },
        { expr: `max(${select('spillway_event_loop_lag_max_seconds')})`, legend: 'worst' },
      ]),
      series(
        'Sending to a node, p99',
        's',
        'Assignment to the first byte written.',
        one(quantile(0.99, 'spillway_dispatch_seconds', { window: W, by: [] }), 'p99'),
      ),
      series('CPU', 'short', 'Cores.', one(`sum(${rate('process_cpu_seconds_total', W)})`, 'cores')),
      series('Memory', 'bytes', 'Resident, and heap against its limit.', [
        { expr: `sum(${select('process_resident_memory_bytes')})`, legend: 'resident' },
        { expr: `sum(${select('spillway_heap_used_bytes')})`, legend: 'heap' },
        { expr: `sum(${select('spillway_heap_limit_bytes')})`, legend: 'limit of the heap' },
      ]),
      series('Connections', 'short', 'Of clients, and open descriptors.', [
        { expr: `sum(${select('spillway_connections')})`, legend: 'clients' },
        { expr: `sum(${select('process_open_fds')})`, legend: 'descriptors' },
      ]),
      series(
        'Broken requests and slow readers',
        'ops',
        'What the HTTP parser refused, and clients that were cut.',
        [
          { expr: `sum(${rate('spillway_malformed_requests_total', W)})`, legend: 'malformed' },
          { expr: `sum(${rate('spillway_slow_readers_cut_total', W)})`, legend: 'slow readers cut' },
        ],
      ),
    ],
  },
];
