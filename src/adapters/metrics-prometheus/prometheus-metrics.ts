/**
 * Metrics of the gateway for Prometheus. What happens is counted as it happens; what is (queue, nodes, process) is
 * read at scrape time. A page is written at most once a second, so that many scrapers cost as much as one. It is read at two
 * instants, the nodes after all the rest, and written in slices, so that it holds nobody up.
 */
import type { GateCount } from '../../core/admission/gates.ts';
import type { LedgersView } from '../../core/ledgers/index.ts';
import type { QueueView } from '../../core/scheduler/views.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import { renderLedgers } from './books.ts';
import { createBoundedNames } from './bounded-names.ts';
import { type Chunks, createCounter, createHistogram, renderOne } from './families.ts';
import {
  type ClassTarget,
  type FleetGauges,
  type GaugeNames,
  type PreemptionEnds,
  type ProcessGauges,
  renderClasses,
  renderFolds,
  renderGates,
  renderNodes,
  renderPreemptions,
  renderProcess,
  renderQueue,
  renderSignals,
  renderTraceSpans,
  type SignalGauge,
  type TraceSpans,
} from './gauges.ts';
import { type Folds, foldsFromNothing } from './page-budget.ts';
import { writeInSlices } from './slices.ts';

export interface MetricsSource {
  /** Whether the name is a configured class, model or tenant, or a model that a node offers. */
  isClass(name: string): boolean;
  isModel(name: string): boolean;
  isTenant(name: string): boolean;
  classes(): readonly ClassTarget[];
  queue(): QueueView;
  gates(): readonly GateCount[];
  /** From 0 to 3. */
  ladderStage(): number;
  retryBudget(): number;
  preemptions(): PreemptionEnds;
  ledgers(): LedgersView;
  fleet(): FleetGauges;
  signals(): readonly SignalGauge[];
  /** Spans that left, and those that could not. */
  traceSpans(): TraceSpans;
  /** Lines that are not in the journal; undefined where none is kept. */
  journalDropped(): number | undefined;
  process(): ProcessGauges;
  /** Milliseconds of a clock that never goes back. */
  nowMs(): number;
  /** Gives the event loop its turn. */
  turn(): Promise<void>;
}

export interface PrometheusMetrics {
  readonly sink: MetricsSink;
  readonly contentType: string;
  render(): Promise<string>;
  /** Bytes now held for slow readers, as last told. */
  spoolBytes(): number;
}

/** Label values of each kind. Classes and tenants beyond them still count, as `other`. */
const NAMES_MAX = { classes: 16, models: 200, tenants: 200, outcomes: 64 } as const;
const RENDER_EVERY_MS = 1_000;
/** Writing at a stretch; the page of a thousand nodes takes some ten of these. */
const SLICE_MS = 3;

const WAIT_BOUNDS_S = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
] as const;
/** Fewer, since there is a set for each class and model. */
const FIRST_BYTE_BOUNDS_S = [0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300] as const;
const DISPATCH_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 1] as const;

export function createPrometheusMetrics(source: MetricsSource): PrometheusMetrics {
  const names = {
    classes: createBoundedNames(NAMES_MAX.classes, (name) => source.isClass(name)),
    models: createBoundedNames(NAMES_MAX.models, (name) => source.isModel(name)),
    tenants: createBoundedNames(NAMES_MAX.tenants, (name) => source.isTenant(name)),
    folds: foldsFromNothing(),
  };
  const counted = createSink(names.classes.label, names.models.label);
  let page: Promise<string> = Promise.resolve('');
  let renderedAtMs = Number.NEGATIVE_INFINITY;
  return {
    sink: counted.sink,
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    spoolBytes: counted.spoolBytes,
    render() {
      const nowMs = source.nowMs();
      if (nowMs - renderedAtMs < RENDER_EVERY_MS) return page;
      renderedAtMs = nowMs;
      const { turn } = source;
      const readings = [
        () => [...counted.snapshot(names.folds), ...readSource(source, names)],
        () => readFleet(source, names),
      ];
      page = writeInSlices(readings, { sliceMs: SLICE_MS, nowMs: source.nowMs, turn });
      return page;
    },
  };
}

/** All of one instant; the text is made as it is asked for. */
function readSource(source: MetricsSource, names: GaugeNames): readonly Chunks[] {
  return [
    ...renderQueue(source.queue(), names),
    ...renderClasses(source.classes()),
    renderGates(source.gates()),
    renderOne('spillway_ladder_stage', source.ladderStage()),
    renderOne('spillway_retry_budget_ratio', source.retryBudget()),
    renderPreemptions(source.preemptions()),
    ...renderLedgers(source.ledgers(), names.classes),
    ...renderSignals(source.signals()),
    ...renderTraceSpans(source.traceSpans()),
    renderOne('spillway_journal_dropped_total', source.journalDropped()),
    ...renderProcess(source.process()),
  ];
}

/** Nodes are the most that there is to read: some milliseconds for a thousand. */
function readFleet(source: MetricsSource, names: GaugeNames): readonly Chunks[] {
  return [...renderNodes(source.fleet(), names), renderFolds(names.folds)];
}

type Label = (name: string) => string;

interface CountingSink {
  readonly sink: MetricsSink;
  snapshot(folds: Folds): readonly Chunks[];
  spoolBytes(): number;
}

function createSink(classLabel: Label, modelLabel: Label): CountingSink {
  const outcomes = createBoundedNames(NAMES_MAX.outcomes, () => true);
  const counters = createCounters();
  const times = createTimes();
  let spool = 0;
  let connections = 0;
  const sink: MetricsSink = {
    requestEnded(className, model, outcome, seconds) {
      const label = classLabel(className);
      counters.requests.add([label, modelLabel(model), outcomes.label(outcome)], 1);
      times.request.observe([label], seconds);
    },
    firstByte: (className, model, seconds) =>
      times.firstByte.observe([classLabel(className), modelLabel(model)], seconds),
    queueWait: (className, _model, seconds) => times.queueWait.observe([classLabel(className)], seconds),
    dispatched: (seconds) => times.dispatch.observe([], seconds),
    tokens: (direction, model, count) => counters.tokens.add([direction, modelLabel(model)], count),
    retried: () => counters.retries.add([], 1),
    degraded: (className, how) => counters.degraded.add([classLabel(className), how], 1),
    cacheCompared: (type, result) => counters.cacheAgreement.add([type, result], 1),
    wishIgnored: (wish) => counters.wishes.add([wish], 1),
    keyed: (effect) => counters.keyed.add([effect], 1),
    spoolBytes(total) {
      spool = total;
    },
    slowReaderCut: () => counters.slowReaders.add([], 1),
    connections(open) {
      connections = open;
    },
    clientLeft: (phase) => counters.disconnects.add([phase], 1),
    clientRetried: (className, how) => counters.clientRetries.add([classLabel(className), how], 1),
    userFirstByte: (className, seconds) => times.userFirstByte.observe([classLabel(className)], seconds),
    userRequest: (className, seconds) => times.userRequest.observe([classLabel(className)], seconds),
    beacon: (result) => counters.beacons.add([result], 1),
    malformedRequest: () => counters.malformed.add([], 1),
  };
  return {
    sink,
    spoolBytes: () => spool,
    snapshot(folds) {
      const families = [...Object.values(counters), ...Object.values(times)];
      for (const family of families) family.tellFolded(folds);
      return [
        ...families.map((family) => family.snapshot()),
        renderOne('spillway_spool_bytes', spool),
        renderOne('spillway_connections', connections),
      ];
    },
  };
}

function createCounters(): Record<
  | 'requests'
  | 'tokens'
  | 'retries'
  | 'degraded'
  | 'cacheAgreement'
  | 'wishes'
  | 'keyed'
  | 'slowReaders'
  | 'malformed'
  | 'disconnects'
  | 'clientRetries'
  | 'beacons',
  ReturnType<typeof createCounter>
> {
  return {
    requests: createCounter('spillway_requests_total'),
    tokens: createCounter('spillway_tokens_total'),
    retries: createCounter('spillway_retries_total'),
    degraded: createCounter('spillway_degraded_total'),
    cacheAgreement: createCounter('spillway_cache_agreement_total'),
    wishes: createCounter('spillway_wishes_ignored_total'),
    keyed: createCounter('spillway_idempotent_requests_total'),
    slowReaders: createCounter('spillway_slow_readers_cut_total'),
    malformed: createCounter('spillway_malformed_requests_total'),
    disconnects: createCounter('spillway_client_disconnects_total'),
    clientRetries: createCounter('spillway_client_retries_total'),
    beacons: createCounter('spillway_beacons_total'),
  };
}

function createTimes(): Record<
  'request' | 'firstByte' | 'queueWait' | 'dispatch' | 'userFirstByte' | 'userRequest',
  ReturnType<typeof createHistogram>
> {
  return {
    request: createHistogram('spillway_request_seconds', WAIT_BOUNDS_S),
    firstByte: createHistogram('spillway_time_to_first_byte_seconds', FIRST_BYTE_BOUNDS_S),
    queueWait: createHistogram('spillway_queue_wait_seconds', WAIT_BOUNDS_S),
    dispatch: createHistogram('spillway_dispatch_seconds', DISPATCH_BOUNDS_S),
    userFirstByte: createHistogram('spillway_user_first_byte_seconds', WAIT_BOUNDS_S),
    userRequest: createHistogram('spillway_user_request_seconds', WAIT_BOUNDS_S),
  };
}
