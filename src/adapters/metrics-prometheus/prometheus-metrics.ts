/**
 * Metrics of the gateway for Prometheus. What happens is counted as it happens; what is (queue, nodes, process) is
 * read at scrape time. A page is rendered at most once a second, so that many scrapers cost as much as one.
 */
import type { GateCount } from '../../core/admission/gates.ts';
import type { QueueView } from '../../core/scheduler/views.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import { createBoundedNames } from './bounded-names.ts';
import { createCounter, createHistogram, renderGauge } from './families.ts';
import {
  type MeasuredNode,
  type ProcessGauges,
  renderGates,
  renderLadder,
  renderNodes,
  renderProcess,
  renderQueue,
  type PreemptionEnds,
  renderPreemptions,
  renderRetryBudget,
  renderTraceSpans,
  type TraceSpans,
  renderSignals,
  type SignalGauge,
} from './gauges.ts';

export interface MetricsSource {
  /** Whether the name is a configured class, model or tenant, or a model that a node offers. */
  isClass(name: string): boolean;
  isModel(name: string): boolean;
  isTenant(name: string): boolean;
  queue(): QueueView;
  gates(): readonly GateCount[];
  /** From 0 to 3. */
  ladderStage(): number;
  retryBudget(): number;
  preemptions(): PreemptionEnds;
  /** Spans that left, and those that could not. */
  traceSpans(): TraceSpans;
  signals(): readonly SignalGauge[];
  nodes(): readonly MeasuredNode[];
  process(): ProcessGauges;
  /** Milliseconds of a clock that never goes back. */
  nowMs(): number;
}

export interface PrometheusMetrics {
  readonly sink: MetricsSink;
  readonly contentType: string;
  render(): string;
  /** Bytes now held for slow readers, as last told. */
  spoolBytes(): number;
}

/** Label values of each kind. Classes and tenants beyond them still count, as `other`. */
const NAMES_MAX = { classes: 16, models: 200, tenants: 200, outcomes: 64 } as const;
const RENDER_EVERY_MS = 1_000;

const WAIT_BOUNDS_S = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
] as const;
const DISPATCH_BOUNDS_S = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 1] as const;

export function createPrometheusMetrics(source: MetricsSource): PrometheusMetrics {
  const names = {
    classes: createBoundedNames(NAMES_MAX.classes, (name) => source.isClass(name)),
    models: createBoundedNames(NAMES_MAX.models, (name) => source.isModel(name)),
    tenants: createBoundedNames(NAMES_MAX.tenants, (name) => source.isTenant(name)),
  };
  const counted = createSink(names.classes.label, names.models.label);
  let page = '';
  let renderedAtMs = Number.NEGATIVE_INFINITY;
  return {
    sink: counted.sink,
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    spoolBytes: counted.spoolBytes,
    render() {
      const nowMs = source.nowMs();
      if (nowMs - renderedAtMs < RENDER_EVERY_MS) return page;
      renderedAtMs = nowMs;
      const process = source.process();
      page =
        counted.render() +
        renderQueue(source.queue(), names) +
        renderGates(source.gates()) +
        renderLadder(source.ladderStage()) +
        renderRetryBudget(source.retryBudget()) +
        renderPreemptions(source.preemptions()) +
        renderTraceSpans(source.traceSpans()) +
        renderSignals(source.signals()) +
        renderNodes(source.nodes()) +
        renderProcess(process);
      page += cpuCounter(process.cpuSeconds);
      return page;
    },
  };
}

function cpuCounter(seconds: number): string {
  const counter = createCounter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of this process.',
    labels: [],
  });
  counter.add([], seconds);
  return counter.render();
}

type Label = (name: string) => string;

interface CountingSink {
  readonly sink: MetricsSink;
  render(): string;
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
    malformedRequest: () => counters.malformed.add([], 1),
  };
  return {
    sink,
    spoolBytes: () => spool,
    render() {
      const families = [...Object.values(counters), ...Object.values(times)];
      const spoolGauge = { name: 'spillway_spool_bytes', help: 'Bytes held for slow readers.', labels: [] };
      const openGauge = { name: 'spillway_connections', help: 'Open connections of clients.', labels: [] };
      return (
        families.map((family) => family.render()).join('') +
        renderGauge(spoolGauge, [{ labels: [], value: spool }]) +
        renderGauge(openGauge, [{ labels: [], value: connections }])
      );
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
  | 'malformed',
  ReturnType<typeof createCounter>
> {
  return {
    requests: createCounter({
      name: 'spillway_requests_total',
      help: 'Requests that ended, by outcome: served, degraded, declined, cancelled, or the reason of a refusal or failure.',
      labels: ['class', 'model', 'outcome'],
    }),
    tokens: createCounter({
      name: 'spillway_tokens_total',
      help: 'Tokens as the nodes reported them.',
      labels: ['direction', 'model'],
    }),
    retries: createCounter({
      name: 'spillway_retries_total',
      help: 'Attempts after the first one of a request.',
      labels: [],
    }),
    degraded: createCounter({
      name: 'spillway_degraded_total',
      help: 'Lesser answers given by consent: cache, model, quality, default.',
      labels: ['class', 'how'],
    }),
    cacheAgreement: createCounter({
      name: 'spillway_cache_agreement_total',
      help: 'Fresh answers compared with remembered ones, by kind of request.',
      labels: ['type', 'result'],
    }),
    wishes: createCounter({
      name: 'spillway_wishes_ignored_total',
      help: 'Hints of clients that were ignored, by kind.',
      labels: ['wish'],
    }),
    keyed: createCounter({
      name: 'spillway_idempotent_requests_total',
      help: 'Requests whose idempotency key was taken (joined, replayed, mismatch), or whose answer was not kept (unkept).',
      labels: ['effect'],
    }),
    slowReaders: createCounter({
      name: 'spillway_slow_readers_cut_total',
      help: 'Clients that were cut because they did not read.',
      labels: [],
    }),
    malformed: createCounter({
      name: 'spillway_malformed_requests_total',
      help: 'Requests that the HTTP parser refused.',
      labels: [],
    }),
  };
}

function createTimes(): Record<
  'request' | 'firstByte' | 'queueWait' | 'dispatch',
  ReturnType<typeof createHistogram>
> {
  return {
    request: createHistogram(
      {
        name: 'spillway_request_seconds',
        help: 'Head of the request to the end of the answer.',
        labels: ['class'],
      },
      WAIT_BOUNDS_S,
    ),
    firstByte: createHistogram(
      {
        name: 'spillway_time_to_first_byte_seconds',
        help: 'Head of the request to the first content byte.',
        labels: ['class', 'model'],
      },
      WAIT_BOUNDS_S,
    ),
    queueWait: createHistogram(
      { name: 'spillway_queue_wait_seconds', help: 'Arrival to the first assignment.', labels: ['class'] },
      WAIT_BOUNDS_S,
    ),
    dispatch: createHistogram(
      {
        name: 'spillway_dispatch_seconds',
        help: 'Assignment to the first byte written to a node.',
        labels: [],
      },
      DISPATCH_BOUNDS_S,
    ),
  };
}
