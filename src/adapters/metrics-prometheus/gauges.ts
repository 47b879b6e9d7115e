/** Gauges, read from the gateway's views when somebody scrapes. */
import type { GateCount } from '../../core/admission/gates.ts';
import type { NodeView, QueueGroupView, QueueView } from '../../core/scheduler/views.ts';
import type { BoundedNames } from './bounded-names.ts';
import { type FamilyOptions, type GaugeRow, renderCounts, renderGauge } from './families.ts';

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
}

/** Adds up rows that share a label after unknown names became `other`. */
function grouped(
  groups: Readonly<Record<string, QueueGroupView>>,
  names: BoundedNames,
  pick: (group: QueueGroupView) => number,
): GaugeRow[] {
  const sums = new Map<string, number>();
  for (const [name, group] of Object.entries(groups)) {
    const label = names.label(name);
    sums.set(label, (sums.get(label) ?? 0) + pick(group));
  }
  return Array.from(sums, ([label, value]) => ({ labels: [label], value }));
}

export function renderQueue(queue: QueueView, names: GaugeNames): string {
  const depth = (group: QueueGroupView): number => group.depth;
  const family = (name: string, help: string, labels: readonly string[]): FamilyOptions => ({
    name,
    help,
    labels,
  });
  return [
    renderGauge(
      family('spillway_queue_depth', 'Tasks waiting, by class and model.', ['class', 'model']),
      depthRows(queue, names),
    ),
    renderGauge(
      family('spillway_queue_work_seconds', 'Work waiting, in seconds of the reference accelerator.', [
        'class',
      ]),
      grouped(queue.byClass, names.classes, (group) => group.workMs * S_PER_MS),
    ),
    renderGauge(
      family('spillway_oldest_wait_seconds', 'Age of the task that waits longest.', ['class']),
      grouped(queue.byClass, names.classes, (group) => group.oldestWaitMs * S_PER_MS),
    ),
    renderGauge(
      family('spillway_tenant_queue_depth', 'Tasks waiting, by configured tenant.', ['tenant']),
      grouped(queue.byTenant, names.tenants, depth),
    ),
    renderGauge(family('spillway_queue_bytes', 'Bytes of bodies that wait.', []), [
      { labels: [], value: queue.bytes },
    ]),
    renderGauge(family('spillway_running', 'Tasks on nodes.', []), [{ labels: [], value: queue.running }]),
  ].join('');
}

/** Counts by gate, read like gauges; they only grow. */
export function renderGates(gates: readonly GateCount[]): string {
  const rows = gates.flatMap(({ gate, refused, wouldRefuse }) => [
    { labels: [gate, 'refused'], value: refused },
    { labels: [gate, 'shadow'], value: wouldRefuse },
  ]);
  const help = 'Refusals of each protective gate, and what it would have refused in shadow.';
  return renderCounts({ name: 'spillway_gate_refusals_total', help, labels: ['gate', 'effect'] }, rows);
}

export function renderLadder(stage: number): string {
  const help = 'Highest stage of the overload ladder, of any model or set by hand; 0 for none.';
  return renderGauge({ name: 'spillway_ladder_stage', help, labels: [] }, [{ labels: [], value: stage }]);
}

export function renderRetryBudget(ratio: number): string {
  const help = 'What is left to pay retries from: 1 is full, at 0 failed attempts are not repeated.';
  return renderGauge({ name: 'spillway_retry_budget_ratio', help, labels: [] }, [
    { labels: [], value: ratio },
  ]);
}

/** By how it ended for the one that gave its place. */
export interface PreemptionEnds {
  readonly queued: number;
  readonly ended: number;
  readonly late: number;
}

export function renderPreemptions({ queued, ended, late }: PreemptionEnds): string {
  const help =
    'Running tasks asked for their place: queued again, ended, or done (or given up) before it was taken.';
  return renderCounts({ name: 'spillway_preemptions_total', help, labels: ['effect'] }, [
    { labels: ['queued'], value: queued },
    { labels: ['ended'], value: ended },
    { labels: ['late'], value: late },
  ]);
}

export interface TraceSpans {
  readonly exported: number;
  readonly dropped: number;
}

export function renderTraceSpans({ exported, dropped }: TraceSpans): string {
  const count = (name: string, help: string, value: number): string =>
    renderCounts({ name: `spillway_trace_spans_${name}_total`, help, labels: [] }, [{ labels: [], value }]);
  return [
    count('exported', 'Spans that the collector took.', exported),
    count('dropped', 'Spans lost: the queue was full, or their export failed.', dropped),
  ].join('');
}

/** A detector of a silent failure, by the name of its signal. */
export interface SignalGauge {
  readonly signal: string;
  readonly isActive: boolean;
}

/** Every signal has its row, so that an alert on one that cannot be raised yet is no silent alert. */
export function renderSignals(signals: readonly SignalGauge[]): string {
  return renderGauge(
    { name: 'spillway_signal_active', help: '1 while a silent failure is found.', labels: ['signal'] },
    signals.map(({ signal, isActive }) => ({ labels: [signal], value: Number(isActive) })),
  );
}

/** Pairs of node and model, and models, that a breaker keeps from work now. */
function renderBreakers(nodes: readonly MeasuredNode[]): string {
  let pairs = 0;
  const models = new Set<string>();
  for (const { breakers } of nodes) {
    for (const { model, scope, state } of breakers) {
      if (state === 'closed') continue;
      if (scope === 'node') pairs += 1;
      else models.add(model);
    }
  }
  const help = 'Breakers that are open or half-open, of a model on one node and of a model everywhere.';
  return renderGauge({ name: 'spillway_breakers_open', help, labels: ['scope'] }, [
    { labels: ['node'], value: pairs },
    { labels: ['everywhere'], value: models.size },
  ]);
}

function depthRows(queue: QueueView, names: GaugeNames): GaugeRow[] {
  return Object.entries(queue.byClassAndModel).flatMap(([className, byModel]) =>
    grouped(byModel, names.models, (group) => group.depth).map(({ labels, value }) => ({
      labels: [names.classes.label(className), ...labels],
      value,
    })),
  );
}

/** A node as the page tells it. */
export interface MeasuredNode extends NodeView {
  /** Its load readings are missing or frozen. */
  readonly readingsStale?: boolean;
}

export function renderNodes(nodes: readonly MeasuredNode[]): string {
  const rows = nodes.slice(0, NODES_MAX);
  const gauge = (name: string, help: string, pick: (node: MeasuredNode) => number | undefined): string =>
    renderGauge(
      { name: `spillway_node_${name}`, help, labels: ['node'] },
      rows.flatMap((node) => {
        const value = pick(node);
        return value === undefined ? [] : [{ labels: [node.id], value }];
      }),
    );
  const byState = Map.groupBy(nodes, (node) => node.state);
  return [
    gauge('inflight', 'Tasks on the node.', (node) => node.inflight),
    gauge(
      'slots',
      'Tasks that the node takes at once; 0 when unknown.',
      (node) => node.spec.slots || node.slots,
    ),
    gauge(
      'drain_seconds',
      'Time until the work bound to the node is done.',
      (node) => node.drainMs * S_PER_MS,
    ),
    gauge('health', 'Health from 0 to 1.', (node) => node.health),
    gauge('rate_ratio', 'Learned rate as a multiple of the reference accelerator.', bestKnownRate),
    renderGauge(
      {
        name: 'spillway_node_state',
        help: '1 for the state that the node is in.',
        labels: ['node', 'state'],
      },
      rows.map((node) => ({ labels: [node.id, node.state], value: 1 })),
    ),
    renderBreakers(nodes),
    gauge('readings_stale', '1 while the load readings of the node are missing or frozen.', (node) =>
      Number(node.readingsStale ?? false),
    ),
    renderGauge(
      { name: 'spillway_nodes', help: 'Nodes by state.', labels: ['state'] },
      Array.from(byState, ([state, group]) => ({ labels: [state], value: group.length })),
    ),
  ].join('');
}

function bestKnownRate(node: NodeView): number | undefined {
  let best: NodeView['rates'][number] | undefined;
  for (const entry of node.rates) if (entry.observations > (best?.observations ?? 0)) best = entry;
  return best?.rate;
}

export function renderProcess(reading: ProcessGauges): string {
  const one = (name: string, help: string, value: number | undefined): string =>
    value === undefined ? '' : renderGauge({ name, help, labels: [] }, [{ labels: [], value }]);
  return [
    one(
      'spillway_event_loop_lag_seconds',
      'Median lag of the event loop over the last second.',
      reading.loopLagMs * S_PER_MS,
    ),
    one(
      'spillway_event_loop_lag_max_seconds',
      'Worst lag of the last second.',
      reading.loopLagMsMax * S_PER_MS,
    ),
    one(
      'spillway_survival_shed_classes',
      'Lowest classes refused to protect the gateway itself.',
      reading.shedClasses,
    ),
    one('process_resident_memory_bytes', 'Resident memory.', reading.rssBytes),
    one('spillway_heap_used_bytes', 'Heap in use.', reading.heapUsedBytes),
    one('spillway_heap_limit_bytes', 'Limit of the heap.', reading.heapLimitBytes),
    one('process_open_fds', 'Open file descriptors.', reading.descriptors),
    one('process_max_fds', 'Most file descriptors.', reading.descriptorsMax),
  ].join('');
}
