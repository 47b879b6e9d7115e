/**
 * Every metric of the page: name, type, labels, help. The one source of these names: the page is rendered from it, and
 * alert rules, dashboard and reference are written or checked against it.
 */
export interface MetricSpec {
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary';
  readonly labels: readonly string[];
  readonly help: string;
}

export const METRICS = {
  // What happened to requests.
  spillway_requests_total: {
    type: 'counter',
    labels: ['class', 'model', 'outcome'],
    help: 'Requests that ended, by outcome: served, degraded, declined, cancelled, or the reason of a refusal or failure.',
  },
  spillway_request_seconds: {
    type: 'histogram',
    labels: ['class'],
    help: 'Head of the request to the end of the answer.',
  },
  spillway_time_to_first_byte_seconds: {
    type: 'histogram',
    labels: ['class', 'model'],
    help: 'Head of the request to the first content byte.',
  },
  spillway_queue_wait_seconds: {
    type: 'histogram',
    labels: ['class'],
    help: 'Arrival to the first assignment.',
  },
  spillway_dispatch_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Assignment to the first byte written to a node.',
  },
  spillway_tokens_total: {
    type: 'counter',
    labels: ['direction', 'model'],
    help: 'Tokens as the nodes reported them.',
  },
  spillway_retries_total: { type: 'counter', labels: [], help: 'Attempts after the first one of a request.' },
  spillway_degraded_total: {
    type: 'counter',
    labels: ['class', 'how'],
    help: 'Lesser answers given by consent: cache, model, quality, default.',
  },
  spillway_cache_agreement_total: {
    type: 'counter',
    labels: ['type', 'result'],
    help: 'Fresh answers compared with remembered ones, by kind of request.',
  },
  spillway_wishes_ignored_total: {
    type: 'counter',
    labels: ['wish'],
    help: 'Hints of clients that were ignored, by kind.',
  },
  spillway_idempotent_requests_total: {
    type: 'counter',
    labels: ['effect'],
    help: 'Requests whose idempotency key was taken (joined, replayed, mismatch), or whose answer was not kept (unkept).',
  },
  spillway_slow_readers_cut_total: {
    type: 'counter',
    labels: [],
    help: 'Clients that were cut because they did not read.',
  },
  spillway_malformed_requests_total: {
    type: 'counter',
    labels: [],
    help: 'Requests that the HTTP parser refused.',
  },
  // What clients and their users saw.
  spillway_client_disconnects_total: {
    type: 'counter',
    labels: ['phase'],
    help: 'Clients that left before they had everything: queued, running, streaming, sending; stalled ones were cut.',
  },
  spillway_client_retries_total: {
    type: 'counter',
    labels: ['class', 'how'],
    help: 'Requests that their clients had sent before: announced in a header, or repeated after a bad end.',
  },
  spillway_user_first_byte_seconds: {
    type: 'histogram',
    labels: ['class'],
    help: 'The request of a page to its first byte, as browsers tell.',
  },
  spillway_user_request_seconds: {
    type: 'histogram',
    labels: ['class'],
    help: 'The request of a page to its last byte, as browsers tell.',
  },
  spillway_beacons_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Beacons of browsers, by what became of them.',
  },
  spillway_spool_bytes: { type: 'gauge', labels: [], help: 'Bytes held for slow readers.' },
  spillway_connections: { type: 'gauge', labels: [], help: 'Open connections of clients.' },
  // What waits.
  spillway_queue_depth: {
    type: 'gauge',
    labels: ['class', 'model'],
    help: 'Tasks waiting, by class and model.',
  },
  spillway_queue_work_seconds: {
    type: 'gauge',
    labels: ['class'],
    help: 'Work waiting, in seconds of the reference accelerator.',
  },
  spillway_oldest_wait_seconds: {
    type: 'gauge',
    labels: ['class'],
    help: 'Age of the task that waits longest.',
  },
  spillway_tenant_queue_depth: {
    type: 'gauge',
    labels: ['tenant'],
    help: 'Tasks waiting, by configured tenant.',
  },
  spillway_queue_bytes: { type: 'gauge', labels: [], help: 'Bytes of bodies that wait.' },
  spillway_running: { type: 'gauge', labels: [], help: 'Tasks on nodes.' },
  // What each class was promised by configuration.
  spillway_class_deadline_seconds: {
    type: 'gauge',
    labels: ['class', 'bound'],
    help: 'Default deadline of the class, on the first byte of a stream and on completion.',
  },
  spillway_class_rank: {
    type: 'gauge',
    labels: ['class'],
    help: 'Place of the class by importance; 0 is the first one.',
  },
  // Gates, overload, retries.
  spillway_gate_refusals_total: {
    type: 'counter',
    labels: ['gate', 'effect'],
    help: 'Refusals of each protective gate, and what it would have refused in shadow.',
  },
  spillway_ladder_stage: {
    type: 'gauge',
    labels: [],
    help: 'Highest stage of the overload ladder, of any model or set by hand; 0 for none.',
  },
  spillway_retry_budget_ratio: {
    type: 'gauge',
    labels: [],
    help: 'What is left to pay retries from: 1 is full, at 0 failed attempts are not repeated.',
  },
  spillway_preemptions_total: {
    type: 'counter',
    labels: ['effect'],
    help: 'Running tasks asked for their place: queued again, ended, or done (or given up) before it was taken.',
  },
  // The scheduler's books on itself.
  spillway_rejected_capacity_total: {
    type: 'counter',
    labels: ['class'],
    help: 'Refusals for want of capacity: by a gate, a bound, the ladder, self-protection, or a deadline in the queue.',
  },
  spillway_rejected_could_have_served_total: {
    type: 'counter',
    labels: ['class'],
    help: 'Those of them that a node with a free place could have served in time, beside all that was served.',
  },
  spillway_eta_error_ratio: {
    type: 'summary',
    labels: ['class', 'prediction'],
    help: 'By which part predictions of time were off, in whichever direction: 0.25 is a quarter, 1 twice too long or too short.',
  },
  spillway_retry_hints_total: {
    type: 'counter',
    labels: ['result'],
    help: 'Clients that came back no earlier than a refusal told them: let in (kept), or refused again (broken).',
  },
  spillway_useful_work_seconds_total: {
    type: 'counter',
    labels: [],
    help: 'Work that somebody got, in seconds of the reference accelerator.',
  },
  spillway_wasted_work_seconds_total: {
    type: 'counter',
    labels: ['cause'],
    help: 'Work that nodes did and nobody got, in seconds of the reference accelerator.',
  },
  // Nodes.
  spillway_node_inflight: { type: 'gauge', labels: ['node'], help: 'Tasks on the node.' },
  spillway_node_slots: {
    type: 'gauge',
    labels: ['node'],
    help: 'Tasks that the node takes at once; 0 when unknown.',
  },
  spillway_node_drain_seconds: {
    type: 'gauge',
    labels: ['node'],
    help: 'Time until the work bound to the node is done.',
  },
  spillway_node_health: { type: 'gauge', labels: ['node'], help: 'Health from 0 to 1.' },
  spillway_node_rate_ratio: {
    type: 'gauge',
    labels: ['node'],
    help: 'Learned rate as a multiple of the reference accelerator.',
  },
  spillway_node_state: {
    type: 'gauge',
    labels: ['node', 'state'],
    help: '1 for the state that the node is in.',
  },
  spillway_node_readings_stale: {
    type: 'gauge',
    labels: ['node'],
    help: '1 while the load readings of the node are missing or frozen.',
  },
  spillway_node_telemetry_busy_ratio: {
    type: 'gauge',
    labels: ['node'],
    help: 'Use of the busiest accelerator of the node, as its host says; absent while unknown.',
  },
  spillway_node_telemetry_memory_ratio: {
    type: 'gauge',
    labels: ['node'],
    help: 'Used over all memory of the fullest accelerator of the node, as its host says; absent while unknown.',
  },
  spillway_node_telemetry_temperature_celsius: {
    type: 'gauge',
    labels: ['node'],
    help: 'Temperature of the warmest accelerator of the node, as its host says; absent while unknown.',
  },
  spillway_breakers_open: {
    type: 'gauge',
    labels: ['scope'],
    help: 'Breakers that are open or half-open, of a model on one node and of a model everywhere.',
  },
  spillway_nodes: { type: 'gauge', labels: ['state'], help: 'Nodes by state.' },
  spillway_model_nodes: {
    type: 'gauge',
    labels: ['model'],
    help: 'Nodes that offer the model and take work: active or not verified yet.',
  },
  spillway_signal_findings: {
    type: 'gauge',
    labels: ['signal', 'severity'],
    help: 'Silent failures that are found now: warn, or page where somebody should be awake for it.',
  },
  spillway_signal_active: { type: 'gauge', labels: ['signal'], help: '1 while a silent failure is found.' },
  spillway_trace_spans_exported_total: {
    type: 'counter',
    labels: [],
    help: 'Spans that the collector took.',
  },
  spillway_trace_spans_dropped_total: {
    type: 'counter',
    labels: [],
    help: 'Spans lost: the queue was full, or their export failed.',
  },
  spillway_journal_dropped_total: {
    type: 'counter',
    labels: [],
    help: 'Lines that are not in the journal, since the disk did not take them; absent where none is kept.',
  },
  spillway_metrics_folded: {
    type: 'gauge',
    labels: ['family'],
    help: 'What this page does not tell apart, to keep its bound: events of a counter or histogram, rows of a gauge, nodes.',
  },
  // The process.
  spillway_event_loop_lag_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Median lag of the event loop over the last second.',
  },
  spillway_event_loop_lag_max_seconds: { type: 'gauge', labels: [], help: 'Worst lag of the last second.' },
  spillway_survival_shed_classes: {
    type: 'gauge',
    labels: [],
    help: 'Lowest classes refused to protect the gateway itself.',
  },
  spillway_heap_used_bytes: { type: 'gauge', labels: [], help: 'Heap in use.' },
  spillway_heap_limit_bytes: { type: 'gauge', labels: [], help: 'Limit of the heap.' },
  process_resident_memory_bytes: { type: 'gauge', labels: [], help: 'Resident memory.' },
  process_open_fds: { type: 'gauge', labels: [], help: 'Open file descriptors.' },
  process_max_fds: { type: 'gauge', labels: [], help: 'Most file descriptors.' },
  process_cpu_seconds_total: { type: 'counter', labels: [], help: 'CPU time of this process.' },
} as const;

export type MetricName = keyof typeof METRICS;

export function specOf(name: MetricName): MetricSpec {
  return METRICS[name];
}

export type LabelOf<N extends MetricName> = (typeof METRICS)[N]['labels'][number];
