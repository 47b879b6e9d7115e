/** Gauges, read from the gateway's views when somebody scrapes. */
import type { GateCount } from '../../core/admission/gates.ts';
import type { NodeView, QueueGroupView, QueueView } from '../../core/scheduler/views.ts';
import type { BoundedNames } from './bounded-names.ts';
import type { MetricName } from './catalogue.ts';
import { type HostedNode, renderHosts, shortened } from './host-gauges.ts';
import { type Chunks, foldRows, renderOne, renderRows, type Row } from './families.ts';
import { type Folds, nodeBytes, NODES_BYTES_MAX } from './page-budget.ts';

/** Nodes with rows of their own; a larger fleet is counted by state. */
export const NODES_MAX = 1_000;

const S_PER_MS = 1 / 1_000;

export interface ProcessGauges {
  readonly rssBytes: number;
  readonly heapUsedBytes: number;
  readonly heapLimitBytes: number;
  readonly descriptors?: number;
  readonly descriptorsMax?: number;
  readonly cpuSeconds: number;
  readonly loopLagMs: number;
  readonly loopLagMsMax: number;
  /** How many of the lowest classes the gateway refuses to protect itself. */
  readonly shedClasses: number;
}

export interface GaugeNames {
  readonly classes: BoundedNames;
  readonly models: BoundedNames;
  readonly tenants: BoundedNames;
  readonly folds: Folds;
}

const most = (a: Row, b: Row): number => b.value - a.value;
const least = (a: Row, b: Row): number => a.value - b.value;

/** Adds up rows that share a label after unknown names became `other`. */
function grouped(
  groups: Readonly<Record<string, QueueGroupView>>,
  names: BoundedNames,
  pick: (group: QueueGroupView) => number,
): Row[] {
  const sums = new Map<string, number>();
  for (const [name, group] of Object.entries(groups)) {
    const label = names.label(name);
    sums.set(label, (sums.get(label) ?? 0) + pick(group));
  }
  return Array.from(sums, ([label, value]) => ({ labels: [label], value }));
}

export function renderQueue(queue: QueueView, names: GaugeNames): readonly Chunks[] {
  const { byClass, byTenant } = queue;
  const work = (group: QueueGroupView): number => group.workMs * S_PER_MS;
  const oldest = (group: QueueGroupView): number => group.oldestWaitMs * S_PER_MS;
  const depth = (group: QueueGroupView): number => group.depth;
  return [
    renderRows(
      'spillway_queue_depth',
      foldRows('spillway_queue_depth', depthRows(queue, names).toSorted(most), names.folds),
    ),
    renderRows('spillway_queue_work_seconds', grouped(byClass, names.classes, work)),
    renderRows('spillway_oldest_wait_seconds', grouped(byClass, names.classes, oldest)),
    renderRows(
      'spillway_tenant_queue_depth',
      foldRows(
        'spillway_tenant_queue_depth',
        grouped(byTenant, names.tenants, depth).toSorted(most),
        names.folds,
      ),
    ),
    renderOne('spillway_queue_bytes', queue.bytes),
    renderOne('spillway_running', queue.running),
  ];
}

/** A class by its place in the configuration, which is its importance. */
export interface ClassTarget {
  readonly name: string;
  readonly firstByteMs: number;
  readonly completionMs: number;
}

export function renderClasses(classes: readonly ClassTarget[]): readonly Chunks[] {
  const deadlines = classes.flatMap(({ name, firstByteMs, completionMs }): Row[] => [
    { labels: [name, 'first-byte'], value: firstByteMs * S_PER_MS },
    { labels: [name, 'completion'], value: completionMs * S_PER_MS },
  ]);
  const ranks = classes.map(({ name }, rank): Row => ({ labels: [name], value: rank }));
  return [renderRows('spillway_class_deadline_seconds', deadlines), renderRows('spillway_class_rank', ranks)];
}

/** Counts by gate, read like gauges; they only grow. */
export function renderGates(gates: readonly GateCount[]): Chunks {
  const rows = gates.flatMap(({ gate, refused, wouldRefuse }): Row[] => [
    { labels: [gate, 'refused'], value: refused },
    { labels: [gate, 'shadow'], value: wouldRefuse },
  ]);
  return renderRows('spillway_gate_refusals_total', rows);
}

/** By how it ended for the one that gave its place. */
export interface PreemptionEnds {
  readonly queued: number;
  readonly ended: number;
  readonly late: number;
}

export function renderPreemptions({ queued, ended, late }: PreemptionEnds): Chunks {
  return renderRows('spillway_preemptions_total', [
    { labels: ['queued'], value: queued },
    { labels: ['ended'], value: ended },
    { labels: ['late'], value: late },
  ]);
}

/** Pairs of node and model, and models, that a breaker keeps from work now. */
function* breakerRows(nodes: readonly MeasuredNode[]): Generator<Row> {
  let pairs = 0;
  const models = new Set<string>();
  for (const { breakers } of nodes) {
    for (const { model, scope, state } of breakers) {
      if (state === 'closed') continue;
      if (scope === 'node') pairs += 1;
      else models.add(model);
    }
  }
  yield { labels: ['node'], value: pairs };
  yield { labels: ['everywhere'], value: models.size };
}

function depthRows(queue: QueueView, names: GaugeNames): Row[] {
  return Object.entries(queue.byClassAndModel).flatMap(([className, byModel]) =>
    grouped(byModel, names.models, (group) => group.depth).map(({ labels, value }) => ({
      labels: [names.classes.label(className), ...labels],
      value,
    })),
  );
}

/** A node as the page tells it. */
export interface MeasuredNode extends NodeView, HostedNode {
  /** Its load readings are missing or frozen. */
  readonly readingsStale?: boolean;
}

/** For each model how many nodes take work of it: 0 where all that offer it are closed, or nobody offers what is configured. */
function* modelRows(
  nodes: readonly MeasuredNode[],
  configured: readonly string[],
  { models, folds }: GaugeNames,
): Generator<Row> {
  const counts = new Map<string, number>();
  for (const model of configured) counts.set(models.label(model), 0);
  for (const { spec, state } of nodes) {
    const open = state === 'active' || state === 'unverified' ? 1 : 0;
    for (const { model } of spec.models) {
      const label = models.label(model);
      counts.set(label, (counts.get(label) ?? 0) + open);
    }
  }
  // First those that nobody serves: they are what somebody must be told of.
  const rows = Array.from(counts, ([label, value]): Row => ({ labels: [label], value })).toSorted(least);
  yield* foldRows('spillway_model_nodes', rows, folds);
}

/** The first nodes that have room on the page; the others are counted by state only. */
function shownNodes(nodes: readonly MeasuredNode[], folds: Folds): readonly MeasuredNode[] {
  const shown: MeasuredNode[] = [];
  let bytes = 0;
  for (const node of nodes) {
    bytes += nodeBytes(node.id);
    if (shown.length >= NODES_MAX || bytes > NODES_BYTES_MAX) break;
    shown.push(node);
  }
  folds.set('nodes', nodes.length - shown.length);
  return shown;
}

/** Last on the page, since what it tells is known when all the rest is written. */
export function renderFolds(folds: Folds): Chunks {
  return renderRows('spillway_metrics_folded', foldedRows(folds));
}

function* foldedRows(folds: Folds): Generator<Row> {
  for (const [family, value] of folds) yield { labels: [family], value };
}

export interface FleetGauges {
  readonly nodes: readonly MeasuredNode[];
  /** Models of the configuration, offered or not. */
  readonly models: readonly string[];
}

/** All rows are made as they are written: of a large fleet that takes some turns of the event loop. */
export function renderNodes({ nodes, models }: FleetGauges, names: GaugeNames): readonly Chunks[] {
  const shown = shownNodes(nodes, names.folds);
  const gauge = (name: MetricName, pick: (node: MeasuredNode) => number | undefined): Chunks =>
    renderRows(name, nodeRows(shown, pick));
  return [
    gauge('spillway_node_inflight', (node) => node.inflight),
    gauge('spillway_node_slots', (node) => node.spec.slots || node.slots),
    gauge('spillway_node_drain_seconds', (node) => node.drainMs * S_PER_MS),
    gauge('spillway_node_health', (node) => node.health),
    gauge('spillway_node_rate_ratio', bestKnownRate),
    renderRows('spillway_node_state', stateRows(shown)),
    gauge('spillway_node_readings_stale', (node) => Number(node.readingsStale ?? false)),
    ...renderHosts(shown),
    renderRows('spillway_breakers_open', breakerRows(nodes)),
    renderRows('spillway_nodes', countsByState(nodes)),
    renderRows('spillway_model_nodes', modelRows(nodes, models, names)),
  ];
}

function* nodeRows(
  nodes: readonly MeasuredNode[],
  pick: (node: MeasuredNode) => number | undefined,
): Generator<Row> {
  for (const node of nodes) {
    const value = pick(node);
    if (value !== undefined) yield { labels: [node.id], value: shortened(value) };
  }
}

function* stateRows(nodes: readonly MeasuredNode[]): Generator<Row> {
  for (const { id, state } of nodes) yield { labels: [id, state], value: 1 };
}

function* countsByState(nodes: readonly MeasuredNode[]): Generator<Row> {
  const byState = Map.groupBy(nodes, (node) => node.state);
  for (const [state, group] of byState) yield { labels: [state], value: group.length };
}

function bestKnownRate(node: NodeView): number | undefined {
  let best: NodeView['rates'][number] | undefined;
  for (const entry of node.rates) if (entry.observations > (best?.observations ?? 0)) best = entry;
  return best?.rate;
}

/** Spans that the collector took, and that were lost. */
export interface TraceSpans {
  readonly exported: number;
  readonly dropped: number;
}

export function renderTraceSpans({ exported, dropped }: TraceSpans): readonly Chunks[] {
  return [
    renderOne('spillway_trace_spans_exported_total', exported),
    renderOne('spillway_trace_spans_dropped_total', dropped),
  ];
}

/** A detector of a silent failure, by the name of its signal. */
export interface SignalGauge {
  readonly signal: string;
  readonly isActive: boolean;
  /** Findings of now, by how urgent they are. */
  readonly warnings: number;
  readonly pages: number;
}

/** Every signal has its row, so that an alert on one that cannot be raised yet is no silent alert. */
export function renderSignals(signals: readonly SignalGauge[]): readonly Chunks[] {
  const findings = signals.flatMap(({ signal, warnings, pages }): Row[] => [
    { labels: [signal, 'warn'], value: warnings },
    { labels: [signal, 'page'], value: pages },
  ]);
  const active = signals.map(({ signal, isActive }): Row => ({ labels: [signal], value: Number(isActive) }));
  return [renderRows('spillway_signal_active', active), renderRows('spillway_signal_findings', findings)];
}

export function renderProcess(reading: ProcessGauges): readonly Chunks[] {
  return [
    renderOne('spillway_event_loop_lag_seconds', reading.loopLagMs * S_PER_MS),
    renderOne('spillway_event_loop_lag_max_seconds', reading.loopLagMsMax * S_PER_MS),
    renderOne('spillway_survival_shed_classes', reading.shedClasses),
    renderOne('process_resident_memory_bytes', reading.rssBytes),
    renderOne('spillway_heap_used_bytes', reading.heapUsedBytes),
    renderOne('spillway_heap_limit_bytes', reading.heapLimitBytes),
    renderOne('process_open_fds', reading.descriptors),
    renderOne('process_max_fds', reading.descriptorsMax),
    renderOne('process_cpu_seconds_total', reading.cpuSeconds),
  ];
}
