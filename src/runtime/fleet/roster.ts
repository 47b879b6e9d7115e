/**
 * The nodes themselves: the one map of them, and the only place where a node enters or leaves the scheduler and the
 * transport. Everything else about the fleet works through it.
 */
import type { DurationMs, NodeId } from '../../base/units.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { NodeMemory, SchedulerEvent } from '../../core/scheduler/events.ts';
import type { NodeView } from '../../core/scheduler/views.ts';
import type { NodeTransport } from '../../ports/node-transport.ts';
import type { RuntimeClock } from '../clock.ts';
import type { NodeRow } from '../contract.ts';
import type { NodeDesk } from '../dispatcher.ts';
import type { RuntimeLog } from '../log.ts';
import { endpointOf, type FleetNode, offersOf, specOf, upstreamNamesOf } from './fleet-node.ts';
import type { ModelNames } from './model-names.ts';
import { byHost, telemetryOf } from './telemetry.ts';

/** Nodes in one gateway; registrations beyond are refused by the rule `nodes-max`. */
export const NODES_MAX = 20_000;

export interface RosterOptions {
  readonly scheduler: Scheduler;
  readonly transport: NodeTransport;
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
  readonly names: ModelNames;
  /** Between two probes of a node. */
  readonly reconcileMs: () => DurationMs;
  /** Applies an event before it returns, unless effects are being performed. */
  readonly apply: (event: SchedulerEvent) => void;
}

export interface Roster extends NodeDesk {
  readonly size: number;
  get(nodeId: NodeId): FleetNode | undefined;
  all(): Iterable<FleetNode>;
  /** Makes a node known to the transport and the scheduler. */
  admit(node: FleetNode, memory?: NodeMemory): void;
  /** Tells the scheduler what a known node offers now; health, rates and marks stay. */
  tell(node: FleetNode): void;
  /** A known node got another address, credential or configuration. */
  announce(node: FleetNode, wasLeaving: boolean): void;
  /** Takes no new work; leaves when nothing runs on it, which may be now. */
  drainAway(node: FleetNode): void;
  leaveIfEmpty(node: FleetNode): void;
  row(node: FleetNode): NodeRow | undefined;
  rows(): readonly NodeRow[];
}

export function createRoster(options: RosterOptions): Roster {
  const { scheduler, transport, clock, log, names, apply } = options;
  const nodes = new Map<NodeId, FleetNode>();

  function tell(node: FleetNode, memory?: NodeMemory): void {
    names.withdrawn(node.offers);
    node.offers = offersOf(node, names.canonical);
    names.offered(node.offers);
    node.upstreamNames = upstreamNamesOf(node.offers);
    const spec = specOf(node, node.offers);
    const news = { kind: 'node-registered', node: spec } as const;
    apply(memory === undefined ? news : { ...news, memory });
  }

  function telemetryIn(hosts: ReadonlyMap<string, readonly FleetNode[]>): TelemetryOf {
    const clocks = { now: clock.nowUs(), wallMs: clock.wallMs(), intervalMs: options.reconcileMs() };
    return (node) => telemetryOf(node, hosts.get(node.config.telemetry?.url ?? '') ?? [node], clocks);
  }

  function leaveIfEmpty(node: FleetNode): void {
    if (!node.leaving || node.inflight > 0 || nodes.get(node.id) !== node) return;
    nodes.delete(node.id);
    names.withdrawn(node.offers);
    apply({ kind: 'node-removed', nodeId: node.id });
    transport.close(node.id);
    log.info({ node: node.id }, 'A node left');
  }

  return {
    get size() {
      return nodes.size;
    },
    get: (nodeId) => nodes.get(nodeId),
    all: () => nodes.values(),
    admit(node, memory) {
      node.telemetry.steadySince = clock.nowUs();
      nodes.set(node.id, node);
      transport.open(endpointOf(node));
      tell(node, memory);
    },
    tell: (node) => tell(node),
    announce(node, wasLeaving) {
      transport.open(endpointOf(node));
      tell(node);
      if (wasLeaving) apply({ kind: 'node-draining', nodeId: node.id, draining: false });
    },
    drainAway(node) {
      node.leaving = true;
      apply({ kind: 'node-draining', nodeId: node.id, draining: true });
      leaveIfEmpty(node);
    },
    leaveIfEmpty,
    row: (node) => rowOf(node, scheduler.node(node.id, clock.nowUs()), telemetryIn(byHost(nodes.values()))),
    rows() {
      const rows: NodeRow[] = [];
      const telemetry = telemetryIn(byHost(nodes.values()));
      for (const view of scheduler.nodes(clock.nowUs())) {
        const node = nodes.get(view.id);
        const row = node === undefined ? undefined : rowOf(node, view, telemetry);
        if (row !== undefined) rows.push(row);
      }
      return rows;
    },
    upstreamModel: (nodeId, model) => nodes.get(nodeId)?.upstreamNames.get(model) ?? '',
    abortFreesSlot: (nodeId) => nodes.get(nodeId)?.driver.abortFreesSlot ?? true,
    permitTaken(nodeId) {
      const node = nodes.get(nodeId);
      if (node === undefined) return;
      if (node.inflight === 0) node.telemetry.steadySince = clock.nowUs();
      node.inflight += 1;
    },
    permitReleased(nodeId, end) {
      const node = nodes.get(nodeId);
      if (node === undefined || node.inflight === 0) return;
      node.inflight -= 1;
      if (node.inflight === 0) node.telemetry.steadySince = clock.nowUs();
      if (end === 'ok') node.learnedSince = true;
      // A failure that a crash of the gateway would forget is a free try for a bad node.
      else if (end === 'failed') node.saveDue = true;
    },
  };
}

type TelemetryOf = (node: FleetNode) => NodeRow['telemetry'];

function rowOf(
  node: FleetNode,
  view: NodeView | undefined,
  telemetryOfNode: TelemetryOf,
): NodeRow | undefined {
  if (view === undefined) return undefined;
  const { url, protocol, hardware } = node.config;
  const telemetry = telemetryOfNode(node);
  return {
    ...view,
    url,
    protocol,
    source: node.source,
    hardware,
    readingsStale: node.loadPage.isStale,
    ...(telemetry === undefined ? {} : { telemetry }),
  };
}
