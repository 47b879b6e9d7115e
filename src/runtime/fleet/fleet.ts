/**
 * The fleet: which nodes there are, who may speak for them, and what the scheduler, the transport and the registry
 * know of each. Nodes come from the command line, the configuration and registration over the API.
 *
 * Order of a registration: checked, saved, then told to the scheduler: what is acknowledged is durable.
 * Order of a departure: forgotten by the registry, drained, then removed when nothing runs on it any more.
 */
import type { NodeId } from '../../base/units.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { NodeState } from '../../core/health/state.ts';
import type { Scheduler } from '../../core/scheduler/contract.ts';
import type { NodeMemory, SchedulerEvent } from '../../core/scheduler/events.ts';
import type { NodeView } from '../../core/scheduler/views.ts';
import type { EngineDriver, EngineProbe } from '../../ports/engine-driver.ts';
import type { NodeTransport } from '../../ports/node-transport.ts';
import type { NodeRecord, NodeSource, RegistryStore } from '../../ports/registry-store.ts';
import type { RuntimeClock } from '../clock.ts';
import type { NodeRow, RegisterResult } from '../contract.ts';
import type { NodeDesk } from '../dispatcher.ts';
import { type RuntimeLog, reasonOf } from '../log.ts';
import { createCredential, hashCredential, ownsCredential } from './credentials.ts';
import {
  createFleetNode,
  type Discovered,
  endpointOf,
  type FleetNode,
  memoryOf,
  NO_MEMORY,
  offersOf,
  OFFERS_PER_NODE_MAX,
  recordOf,
  sameDiscovery,
  specOf,
  upstreamNamesOf,
} from './fleet-node.ts';
import type { ModelNames } from './model-names.ts';
import { checkNodeUrl, checkNodeUrlResolved, type NameResolver } from './node-url.ts';
import { createReconciler } from './reconciler.ts';
import { createRecordKeeper } from './record-keeper.ts';

/** Nodes in one gateway; registrations beyond are refused by the rule `nodes-max`. */
export const NODES_MAX = 20_000;
/** Longest wait at start for the engines whose models nobody knows yet. */
const FIRST_ANSWER_MS = 1_000;
const SLOTS_MAX = 65_536;

export interface GivenNode {
  readonly node: NodeConfig;
  readonly source: NodeSource;
}

export interface FleetOptions {
  readonly scheduler: Scheduler;
  readonly store: RegistryStore;
  readonly transport: NodeTransport;
  readonly drivers: readonly EngineDriver[];
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
  readonly names: ModelNames;
  readonly reconcileMs: () => number;
  readonly resolveName: NameResolver;
  /** Applies an event before it returns, unless effects are being performed. */
  readonly apply: (event: SchedulerEvent) => void;
}

export interface Fleet extends NodeDesk {
  /** Brings back what is remembered and what is given; resolves when every node has been told to the scheduler. */
  load(given: readonly GivenNode[]): Promise<void>;
  rows(): readonly NodeRow[];
  row(nodeId: NodeId): NodeRow | undefined;
  register(config: NodeConfig, source: NodeSource, bearer: string): Promise<RegisterResult>;
  heartbeat(nodeId: NodeId, bearer: string, change?: { readonly slots?: number }): boolean;
  setCordoned(nodeId: NodeId, cordoned: boolean): Promise<boolean>;
  setDraining(nodeId: NodeId, draining: boolean): Promise<boolean>;
  removeNode(nodeId: NodeId): Promise<boolean>;
  /** Registers configured nodes that are new, renews changed ones, drains those that are gone. */
  configure(nodes: readonly NodeConfig[]): void;
  nodeState(nodeId: NodeId, state: NodeState): void;
  nodeDrained(nodeId: NodeId): void;
  stop(): void;
  /** Saves what changed since the last write. */
  flush(): Promise<void>;
  counters(): { readonly nodes: number; readonly registryWriteErrors: number };
}

export function createFleet(options: FleetOptions): Fleet {
  const { scheduler, transport, clock, log, names, apply } = options;
  const nodes = new Map<NodeId, FleetNode>();
  const drivers = new Map(options.drivers.map((driver) => [driver.protocol, driver]));
  /** Ids whose registration is being made durable. */
  const pending = new Set<NodeId>();

  const keeper = createRecordKeeper({
    store: options.store,
    clock,
    log,
    memoryOf: (nodeId) => scheduler.nodeMemory(nodeId, clock.nowUs()) ?? NO_MEMORY,
  });

  const reconciler = createReconciler({
    clock,
    nodes: () => nodes.values(),
    intervalMs: options.reconcileMs,
    onProbe,
    onReading: (node, reading) => {
      if (nodes.get(node.id) === node) apply({ kind: 'node-reading', nodeId: node.id, reading });
    },
    onScan: () => {
      for (const node of nodes.values()) leaveIfEmpty(node);
      keeper.sweep(nodes.values());
    },
  });

  /** Tells the scheduler what the node offers now; health, rates and marks stay. */
  function tell(node: FleetNode, memory?: NodeMemory): void {
    names.withdrawn(node.offers);
    node.offers = offersOf(node, names.canonical);
    names.offered(node.offers);
    node.upstreamNames = upstreamNamesOf(node.offers);
    const spec = specOf(node, node.offers);
    apply(
      memory === undefined
        ? { kind: 'node-registered', node: spec }
        : { kind: 'node-registered', node: spec, memory },
    );
  }

  function admit(node: FleetNode, memory: NodeMemory | undefined, how: 'at-once' | 'paced'): void {
    nodes.set(node.id, node);
    transport.open(endpointOf(node));
    tell(node, memory);
    reconciler.place(node, how);
  }

  function leaveIfEmpty(node: FleetNode): void {
    if (!node.leaving || node.inflight > 0 || nodes.get(node.id) !== node) return;
    nodes.delete(node.id);
    names.withdrawn(node.offers);
    apply({ kind: 'node-removed', nodeId: node.id });
    transport.close(node.id);
    log.info({ node: node.id }, 'A node left');
  }

  function onProbe(node: FleetNode, probe: EngineProbe): void {
    if (nodes.get(node.id) !== node) return;
    node.detail = probe.detail;
    // A busy engine may be too busy to answer its own probe: silence while it works for us is no evidence.
    const isUnknown = !probe.alive && probe.silent === true && node.inflight > 0;
    if (!isUnknown) apply({ kind: 'node-probed', nodeId: node.id, alive: probe.alive });
    if (!probe.alive) return;
    const found = discoveredBy(node, probe);
    if (!sameDiscovery(found, node.discovered)) {
      node.discovered = found;
      tell(node);
      keeper.saveSoon(node);
    }
    if (probe.reading !== undefined) apply({ kind: 'node-reading', nodeId: node.id, reading: probe.reading });
  }

  /** A node that was in the registry under this id, or a new one. */
  function fromGiven(given: GivenNode, record: NodeRecord | undefined): FleetNode | undefined {
    const driver = drivers.get(given.node.protocol);
    const verdict = checkNodeUrl(given.node.url);
    if (driver === undefined || verdict.kind === 'refused') {
      const rule = verdict.kind === 'refused' ? verdict.rule : 'protocol-unknown';
      log.error({ node: given.node.id, rule }, 'A configured node is refused');
      return undefined;
    }
    const config = { ...given.node, url: verdict.url };
    const node = createFleetNode({
      config,
      source: given.source,
      generation: record?.generation ?? 1,
      credentialSha256: '',
      driver,
      discovered: record?.config.url === config.url ? (record.discovered ?? {}) : {},
    });
    if (record === undefined || !sameConfig(record, node)) {
      node.generation = (record?.generation ?? 0) + 1;
      node.saveDue = true;
    }
    return node;
  }

  function fromRecord(record: NodeRecord): FleetNode | undefined {
    const driver = drivers.get(record.config.protocol);
    if (driver === undefined) {
      log.warn(
        { node: record.config.id, protocol: record.config.protocol },
        'A remembered node has no driver',
      );
      return undefined;
    }
    return createFleetNode({ ...record, driver, discovered: record.discovered ?? {} });
  }

  async function load(given: readonly GivenNode[]): Promise<void> {
    const records = new Map((await options.store.load()).map((record) => [record.config.id, record]));
    const wallMs = clock.wallMs();
    const unknown: FleetNode[] = [];
    const bring = (node: FleetNode | undefined, record: NodeRecord | undefined): void => {
      if (node === undefined || nodes.has(node.id) || nodes.size >= NODES_MAX) return;
      node.savedAt = record === undefined ? node.savedAt : clock.nowUs();
      admit(node, record === undefined ? undefined : memoryOf(record, wallMs), 'paced');
      if (node.offers.length === 0) unknown.push(node);
    };
    for (const one of given) bring(fromGiven(one, records.get(one.node.id)), records.get(one.node.id));
    for (const record of records.values()) {
      if (nodes.has(record.config.id)) continue;
      // Only the operator's own lists can end a node's life while the gateway was down.
      if (record.source === 'config' || record.source === 'command-line') forget(record.config.id);
      else bring(fromRecord(record), record);
    }
    await firstAnswers(unknown);
    keeper.sweep(nodes.values());
    reconciler.start();
  }

  function forget(nodeId: NodeId): void {
    keeper.remove(nodeId).catch((thrown: unknown) => {
      log.error({ node: nodeId, reason: reasonOf(thrown) }, 'The registry could not forget a node');
    });
  }

  async function firstAnswers(unknown: readonly FleetNode[]): Promise<void> {
    if (unknown.length === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(FIRST_ANSWER_MS, resolve);
      void Promise.all(unknown.map((node) => reconciler.look(node))).then(() => {
        cancel();
        resolve();
      });
    });
  }

  async function register(config: NodeConfig, source: NodeSource, bearer: string): Promise<RegisterResult> {
    const driver = drivers.get(config.protocol);
    if (driver === undefined) return { kind: 'refused', rule: 'protocol-unknown' };
    const verdict =
      source === 'api'
        ? await checkNodeUrlResolved(config.url, options.resolveName)
        : checkNodeUrl(config.url);
    if (verdict.kind === 'refused') return verdict;
    const known = nodes.get(config.id);
    if (pending.has(config.id)) return { kind: 'id-taken' };
    if (known !== undefined && source === 'api' && !ownsCredential(bearer, known.credentialSha256)) {
      return { kind: 'id-taken' };
    }
    if (known === undefined && nodes.size + pending.size >= NODES_MAX)
      return { kind: 'refused', rule: 'nodes-max' };
    pending.add(config.id);
    try {
      const wanted = { config: { ...config, url: verdict.url }, source, driver };
      return known === undefined ? await enter(wanted) : await renew(known, wanted);
    } finally {
      pending.delete(config.id);
    }
  }

  async function enter(wanted: Wanted): Promise<RegisterResult> {
    const credential = wanted.source === 'api' ? createCredential() : '';
    const credentialSha256 = credential === '' ? '' : hashCredential(credential);
    const node = createFleetNode({ ...wanted, generation: 1, credentialSha256, discovered: {} });
    await keeper.saveNow(node);
    admit(node, undefined, 'at-once');
    return registered(node, credential);
  }

  async function renew(node: FleetNode, wanted: Wanted): Promise<RegisterResult> {
    const before = { ...node };
    replace(node, wanted);
    try {
      await keeper.saveNow(node);
    } catch (thrown) {
      const { config, source, driver, discovered, leaving } = before;
      Object.assign(node, { config, source, driver, discovered, leaving });
      throw thrown;
    }
    announce(node, before.leaving);
    return registered(node, '');
  }

  function replace(node: FleetNode, wanted: Wanted): void {
    if (wanted.config.url !== node.config.url || wanted.driver !== node.driver) node.discovered = {};
    if (wanted.source !== 'api') node.credentialSha256 = '';
    node.config = wanted.config;
    node.source = wanted.source;
    node.driver = wanted.driver;
    node.generation += 1;
    node.leaving = false;
  }

  function announce(node: FleetNode, wasLeaving: boolean): void {
    transport.open(endpointOf(node));
    tell(node);
    if (wasLeaving) apply({ kind: 'node-draining', nodeId: node.id, draining: false });
  }

  /** A node that offers nothing yet is asked before the answer, so that its first request finds it. */
  async function registered(node: FleetNode, credential: string): Promise<RegisterResult> {
    const look = reconciler.look(node);
    if (node.offers.length === 0) await look;
    const row = rowOf(node);
    return row === undefined
      ? { kind: 'refused', rule: 'removed-meanwhile' }
      : { kind: 'registered', node: row, credential };
  }

  function rowOf(
    node: FleetNode,
    view: NodeView | undefined = scheduler.node(node.id, clock.nowUs()),
  ): NodeRow | undefined {
    if (view === undefined) return undefined;
    const { url, protocol, hardware } = node.config;
    return { ...view, url, protocol, source: node.source, hardware };
  }

  function drainAway(node: FleetNode): void {
    node.leaving = true;
    apply({ kind: 'node-draining', nodeId: node.id, draining: true });
    leaveIfEmpty(node);
  }

  function configureOne(given: NodeConfig): void {
    const known = nodes.get(given.id);
    const fresh = fromGiven({ node: given, source: 'config' }, undefined);
    if (fresh === undefined) return;
    if (known === undefined) {
      if (nodes.size >= NODES_MAX) return;
      admit(fresh, undefined, 'at-once');
      keeper.saveSoon(fresh);
    } else if (
      known.leaving ||
      known.source !== 'config' ||
      JSON.stringify(known.config) !== JSON.stringify(fresh.config)
    ) {
      const wasLeaving = known.leaving;
      replace(known, { config: fresh.config, source: 'config', driver: fresh.driver });
      announce(known, wasLeaving);
      keeper.saveSoon(known);
    } else {
      // Aliases may have changed, and with them the names of its offers.
      tell(known);
    }
  }

  return {
    load,
    register,
    rows() {
      const rows: NodeRow[] = [];
      for (const view of scheduler.nodes(clock.nowUs())) {
        const node = nodes.get(view.id);
        const row = node === undefined ? undefined : rowOf(node, view);
        if (row !== undefined) rows.push(row);
      }
      return rows;
    },
    row(nodeId) {
      const node = nodes.get(nodeId);
      return node === undefined ? undefined : rowOf(node);
    },
    heartbeat(nodeId, bearer, change) {
      const node = nodes.get(nodeId);
      if (node === undefined || node.leaving || !ownsCredential(bearer, node.credentialSha256)) return false;
      const slots = change?.slots ?? node.statedSlots;
      const isNews = !node.heartbeats || slots !== node.statedSlots;
      node.heartbeats = true;
      if (Number.isInteger(slots) && slots >= 0 && slots <= SLOTS_MAX) node.statedSlots = slots;
      if (isNews) tell(node);
      apply({ kind: 'node-heartbeat', nodeId });
      return true;
    },
    async setCordoned(nodeId, cordoned) {
      const node = nodes.get(nodeId);
      if (node === undefined) return false;
      apply({ kind: 'node-cordoned', nodeId, cordoned });
      await keeper.saveNow(node);
      return true;
    },
    async setDraining(nodeId, draining) {
      const node = nodes.get(nodeId);
      if (node === undefined) return false;
      apply({ kind: 'node-draining', nodeId, draining });
      await keeper.saveNow(node);
      return true;
    },
    async removeNode(nodeId) {
      const node = nodes.get(nodeId);
      if (node === undefined) return false;
      node.leaving = true;
      try {
        await keeper.remove(nodeId);
      } catch (thrown) {
        node.leaving = false;
        throw thrown;
      }
      drainAway(node);
      return true;
    },
    configure(configured) {
      const kept = new Set(configured.map((node) => node.id));
      for (const node of [...nodes.values()]) {
        if (node.source !== 'config') tell(node);
        else if (!kept.has(node.id) && !node.leaving) {
          forget(node.id);
          drainAway(node);
        }
      }
      for (const given of configured) configureOne(given);
    },
    nodeState(nodeId, state) {
      const node = nodes.get(nodeId);
      if (node === undefined) return;
      const before = node.state;
      node.state = state;
      log.info({ node: nodeId, before, state, detail: node.detail }, 'A node changed state');
      if ((before === 'ejected') !== (state === 'ejected') && !node.leaving) keeper.saveSoon(node);
    },
    nodeDrained(nodeId) {
      const node = nodes.get(nodeId);
      if (node !== undefined) leaveIfEmpty(node);
    },
    upstreamModel: (nodeId, model) => nodes.get(nodeId)?.upstreamNames.get(model) ?? '',
    abortFreesSlot: (nodeId) => nodes.get(nodeId)?.driver.abortFreesSlot ?? true,
    permitTaken(nodeId) {
      const node = nodes.get(nodeId);
      if (node !== undefined) node.inflight += 1;
    },
    permitReleased(nodeId, learned) {
      const node = nodes.get(nodeId);
      if (node === undefined || node.inflight === 0) return;
      node.inflight -= 1;
      if (learned) node.learnedSince = true;
    },
    stop: () => reconciler.stop(),
    flush: () => keeper.flush(nodes.values()),
    counters: () => ({ nodes: nodes.size, registryWriteErrors: keeper.writeErrors() }),
  };
}

/** What a registration asks for. */
interface Wanted {
  readonly config: NodeConfig;
  readonly source: NodeSource;
  readonly driver: EngineDriver;
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

function sameConfig(record: NodeRecord, node: FleetNode): boolean {
  const fresh = recordOf(node, NO_MEMORY, 0);
  return JSON.stringify(record.config) === JSON.stringify(fresh.config) && record.source === node.source;
}
