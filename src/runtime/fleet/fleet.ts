/**
 * The fleet: which nodes there are, who may speak for them, and what the scheduler, the transport and the registry
 * know of each. This module composes the parts and takes what the probes and the scheduler report.
 *
 * Order of a departure: forgotten by the registry, drained, then removed when nothing runs on it any more.
 */
import type { MonoUs, NodeId } from '../../base/units.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { NodeState } from '../../core/health/state.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import { type LackingHost, LACKING_HOSTS_MAX } from '../../core/signals/index.ts';
import type { DeviceTelemetry, HostReading } from '../../ports/device-telemetry.ts';
import type { EngineAccount, EngineDriver, EngineProbe } from '../../ports/engine-driver.ts';
import type { NodeTransport } from '../../ports/node-transport.ts';
import type { RegistryStore } from '../../ports/registry-store.ts';
import type { RuntimeClock } from '../clock.ts';
import type { NodeRow } from '../contract.ts';
import type { NodeDesk } from '../dispatcher.ts';
import type { RuntimeLog } from '../log.ts';
import {
  type Discovered,
  type FleetNode,
  NO_MEMORY,
  OFFERS_PER_NODE_MAX,
  sameDiscovery,
} from './fleet-node.ts';
import { lookedAt } from './load-page.ts';
import { createMembership, type Membership } from './membership.ts';
import type { ModelNames } from './model-names.ts';
import type { NameResolver } from './node-url.ts';
import { createReconciler } from './reconciler.ts';
import { createRecordKeeper } from './record-keeper.ts';
import { createRegistration, type Registration } from './registration.ts';
import { createRoster } from './roster.ts';
import { lackOf, loadOf, noteEngine, noteHost } from './telemetry.ts';

export interface FleetOptions {
  readonly scheduler: Scheduler;
  readonly store: RegistryStore;
  readonly transport: NodeTransport;
  readonly drivers: readonly EngineDriver[];
  readonly telemetry?: DeviceTelemetry;
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
  readonly names: ModelNames;
  readonly reconcileMs: () => number;
  readonly resolveName: NameResolver;
  /** Applies an event before it returns, unless effects are being performed. */
  readonly apply: (event: SchedulerEvent) => void;
}

export interface Fleet extends NodeDesk, Registration {
  load: Membership['load'];
  configure(nodes: readonly NodeConfig[]): void;
  rows(): readonly NodeRow[];
  row(nodeId: NodeId): NodeRow | undefined;
  setCordoned(nodeId: NodeId, cordoned: boolean): Promise<boolean>;
  setDraining(nodeId: NodeId, draining: boolean): Promise<boolean>;
  removeNode(nodeId: NodeId): Promise<boolean>;
  nodeState(nodeId: NodeId, state: NodeState): void;
  nodeDrained(nodeId: NodeId): void;
  /** Nodes whose load readings are missing or frozen. O(nodes). */
  staleReadings(): readonly NodeId[];
  /** Nodes whose host lacks something by what it tells, and what; at most `LACKING_HOSTS_MAX`. */
  lackingHosts(): readonly LackingHost[];
  stop(): void;
  /** Saves what changed since the last write. */
  flush(): Promise<void>;
  counters(): { readonly nodes: number; readonly registryWriteErrors: number };
}

export function createFleet(options: FleetOptions): Fleet {
  const { scheduler, clock, log, apply, store } = options;
  const drivers = new Map(options.drivers.map((driver) => [driver.protocol, driver]));
  const roster = createRoster(options);
  const keeper = createRecordKeeper({
    store,
    clock,
    log,
    memoryOf: (nodeId) => scheduler.nodeMemory(nodeId, clock.nowUs()) ?? NO_MEMORY,
  });
  const reconciler = createReconciler({
    clock,
    nodes: roster.all,
    intervalMs: options.reconcileMs,
    onProbe,
    onReading,
    onHost,
    ...(options.telemetry === undefined ? {} : { telemetry: options.telemetry }),
    onScan: () => {
      for (const node of roster.all()) roster.leaveIfEmpty(node);
      keeper.sweep(roster.all());
    },
  });
  const membership = createMembership({ roster, keeper, reconciler, drivers, store, clock, log });
  const { resolveName } = options;
  const registration = createRegistration({ roster, keeper, reconciler, drivers, resolveName, apply });

  function onProbe(node: FleetNode, probe: EngineProbe): void {
    if (roster.get(node.id) !== node) return;
    node.detail = probe.detail;
    // A busy engine may be too busy to answer its own probe: silence while it works for us is no evidence.
    const isUnknown = !probe.alive && probe.silent === true && node.inflight > 0;
    if (isUnknown) return;
    // One failure is a question, asked again soon; a node that stays dead is asked at the usual rhythm.
    if (node.alive && !probe.alive) reconciler.lookAgain(node);
    node.alive = probe.alive;
    apply({ kind: 'node-probed', nodeId: node.id, alive: probe.alive });
    if (!probe.alive) return;
    const found = discoveredBy(node, probe);
    if (!sameDiscovery(found, node.discovered)) {
      node.discovered = found;
      roster.tell(node);
      keeper.saveSoon(node);
    }
    onReading(node, probe.reading);
  }

  function onHost(node: FleetNode, reading: HostReading): void {
    const { memory } = reading;
    noteHost(node.telemetry, reading, clock.nowUs());
    if (memory !== undefined) apply({ kind: 'node-memory', nodeId: node.id, memory });
  }

  function onReading(node: FleetNode, account: EngineAccount | undefined): void {
    if (roster.get(node.id) !== node) return;
    if (account !== undefined) noteEngine(node.telemetry, account, clock.nowUs());
    const reading = account === undefined ? undefined : loadOf(account);
    const { isStale: wasStale } = node.loadPage;
    const told = lookedAt(node.loadPage, reading, clock.nowUs());
    const { isStale } = node.loadPage;
    if (isStale && !wasStale)
      log.warn({ node: node.id }, 'Load readings of a node are stale; our own count decides');
    else if (wasStale && !isStale) log.info({ node: node.id }, 'Load readings of a node are fresh again');
    if (told !== undefined) apply({ kind: 'node-reading', nodeId: node.id, reading: told });
  }

  /** Marks a node by hand; resolves when the mark is durable. */
  async function mark(nodeId: NodeId, event: SchedulerEvent): Promise<boolean> {
    const node = roster.get(nodeId);
    if (node === undefined) return false;
    apply(event);
    await keeper.saveNow(node);
    return true;
  }

  async function removeNode(nodeId: NodeId): Promise<boolean> {
    const node = roster.get(nodeId);
    if (node === undefined) return false;
    node.leaving = true;
    try {
      await keeper.remove(nodeId);
    } catch (thrown) {
      node.leaving = false;
      throw thrown;
    }
    roster.drainAway(node);
    return true;
  }

  return {
    async load(given) {
      await membership.load(given);
      reconciler.start();
    },
    configure: membership.configure,
    register: registration.register,
    heartbeat: registration.heartbeat,
    rows: roster.rows,
    row(nodeId) {
      const node = roster.get(nodeId);
      return node === undefined ? undefined : roster.row(node);
    },
    setCordoned: (nodeId, cordoned) => mark(nodeId, { kind: 'node-cordoned', nodeId, cordoned }),
    setDraining: (nodeId, draining) => mark(nodeId, { kind: 'node-draining', nodeId, draining }),
    removeNode,
    nodeState(nodeId, state) {
      const node = roster.get(nodeId);
      if (node === undefined) return;
      const before = node.state;
      if (before === state) return;
      node.state = state;
      log.info({ node: nodeId, before, state, detail: node.detail }, 'A node changed state');
      if ((before === 'ejected') !== (state === 'ejected') && !node.leaving) keeper.saveSoon(node);
    },
    nodeDrained(nodeId) {
      const node = roster.get(nodeId);
      if (node !== undefined) roster.leaveIfEmpty(node);
    },
    staleReadings: () =>
      Array.from(roster.all()).flatMap(({ id, loadPage }) => (loadPage.isStale ? [id] : [])),
    lackingHosts: () => lackingHosts(roster.all(), clock.nowUs()),
    upstreamModel: roster.upstreamModel,
    abortFreesSlot: roster.abortFreesSlot,
    permitTaken: roster.permitTaken,
    permitReleased: roster.permitReleased,
    stop: () => reconciler.stop(),
    flush: () => keeper.flush(roster.all()),
    counters: () => ({ nodes: roster.size, registryWriteErrors: keeper.writeErrors() }),
  };
}

function lackingHosts(nodes: Iterable<FleetNode>, now: MonoUs): readonly LackingHost[] {
  const found: LackingHost[] = [];
  for (const { id, telemetry } of nodes) {
    const lack = found.length < LACKING_HOSTS_MAX ? lackOf(telemetry, now) : undefined;
    if (lack !== undefined) found.push({ nodeId: id, ...lack });
  }
  return found;
}

/** The configuration rules where it speaks; the engine fills in the rest, and what it does not say stays as known. */
function discoveredBy(node: FleetNode, probe: EngineProbe): Discovered {
  const { models, slots } = node.discovered;
  const said = node.config.models.length > 0 ? undefined : probe.models?.slice(0, OFFERS_PER_NODE_MAX);
  const nextModels = said ?? models;
  const nextSlots = node.config.slots === undefined ? (probe.slots ?? slots) : undefined;
  return {
    ...(nextModels === undefined ? {} : { models: nextModels }),
    ...(nextSlots === undefined ? {} : { slots: nextSlots }),
  };
}
