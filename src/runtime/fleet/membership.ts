/**
 * Who belongs to the fleet by somebody's list: what the registry remembers, what the command line and the
 * configuration name, at start and at every change of the configuration.
 */
import type { NodeId } from '../../base/units.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { EngineDriver } from '../../ports/engine-driver.ts';
import type { NodeRecord, NodeSource, RegistryStore } from '../../ports/registry-store.ts';
import type { RuntimeClock } from '../clock.ts';
import { type RuntimeLog, reasonOf } from '../log.ts';
import { createFleetNode, type FleetNode, memoryOf, NO_MEMORY, recordOf, replaceNode } from './fleet-node.ts';
import { checkNodeUrl } from './node-url.ts';
import type { Reconciler } from './reconciler.ts';
import type { RecordKeeper } from './record-keeper.ts';
import { NODES_MAX, type Roster } from './roster.ts';

/** Longest wait at start for the engines whose models nobody knows yet. */
const FIRST_ANSWER_MS = 1_000;

export interface GivenNode {
  readonly node: NodeConfig;
  readonly source: NodeSource;
}

export interface MembershipOptions {
  readonly roster: Roster;
  readonly keeper: RecordKeeper;
  readonly reconciler: Reconciler;
  readonly drivers: ReadonlyMap<string, EngineDriver>;
  readonly store: RegistryStore;
  readonly clock: RuntimeClock;
  readonly log: RuntimeLog;
}

export interface Membership {
  /** Brings back what is remembered and what is given; resolves when every node has been told to the scheduler. */
  load(given: readonly GivenNode[]): Promise<void>;
  /** Registers configured nodes that are new, renews changed ones, drains those that are gone. */
  configure(nodes: readonly NodeConfig[]): void;
}

export function createMembership(options: MembershipOptions): Membership {
  const { roster, keeper, reconciler, drivers, clock, log } = options;

  /** A given node, with the past of its id where the registry has one. */
  function fromGiven(given: GivenNode, record: NodeRecord | undefined): FleetNode | undefined {
    const driver = drivers.get(given.node.protocol);
    const verdict = checkNodeUrl(given.node.url);
    if (driver === undefined || verdict.kind === 'refused') {
      const rule = verdict.kind === 'refused' ? verdict.rule : 'protocol-unknown';
      log.error({ node: given.node.id, rule }, 'A configured node is refused');
      return undefined;
    }
    const config = checkedTelemetry({ ...given.node, url: verdict.url });
    const node = createFleetNode({
      config,
      source: given.source,
      generation: record?.generation ?? 1,
      credentialSha256: '',
      driver,
      discovered: record?.config.url === config.url ? (record.discovered ?? {}) : {},
    });
    if (record === undefined || !hasSameConfig(record, node)) {
      node.generation = (record?.generation ?? 0) + 1;
      node.saveDue = true;
    }
    return node;
  }

  /** A page that may not be fetched is left out, and said; the node serves without it. */
  function checkedTelemetry(config: NodeConfig): NodeConfig {
    if (config.telemetry === undefined) return config;
    const { url, pressureUrl = url } = config.telemetry;
    const refused = [url, pressureUrl].map(checkNodeUrl).find(({ kind }) => kind === 'refused');
    if (refused === undefined) return config;
    log.error({ node: config.id, ...refused }, 'The telemetry page of a node is refused');
    const { telemetry: _refused, ...rest } = config;
    return rest;
  }

  function fromRecord(record: NodeRecord): FleetNode | undefined {
    const driver = drivers.get(record.config.protocol);
    if (driver === undefined) {
      const { id, protocol } = record.config;
      log.warn({ node: id, protocol }, 'A remembered node has no driver');
      return undefined;
    }
    return createFleetNode({ ...record, driver, discovered: record.discovered ?? {} });
  }

  function bring(node: FleetNode | undefined, record: NodeRecord | undefined): void {
    if (node === undefined || roster.get(node.id) !== undefined) return;
    if (roster.size >= NODES_MAX) {
      log.error({ node: node.id, rule: 'nodes-max' }, 'A node is refused');
      return;
    }
    if (record !== undefined && !node.saveDue) node.savedAt = clock.nowUs();
    roster.admit(node, record === undefined ? undefined : memoryOf(record, clock.wallMs()));
    reconciler.place(node, 'paced');
  }

  function forget(nodeId: NodeId): void {
    keeper.remove(nodeId).catch((thrown: unknown) => {
      log.error({ node: nodeId, reason: reasonOf(thrown) }, 'The registry could not forget a node');
    });
  }

  /** Waits for the nodes that nobody knows the models of, within reason: the first request should find them. */
  async function firstAnswers(): Promise<void> {
    const unknown = [...roster.all()].filter((node) => node.offers.length === 0);
    if (unknown.length === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(FIRST_ANSWER_MS, resolve);
      void Promise.all(unknown.map((node) => reconciler.look(node))).then(() => {
        cancel();
        resolve();
      });
    });
  }

  function configureOne(config: NodeConfig): void {
    const known = roster.get(config.id);
    const fresh = fromGiven({ node: config, source: 'config' }, undefined);
    if (fresh === undefined) return;
    if (known === undefined) {
      bring(fresh, undefined);
      keeper.saveSoon(fresh);
      void reconciler.look(fresh);
    } else if (known.leaving || known.source !== 'config' || !isSame(known.config, fresh.config)) {
      const wasLeaving = known.leaving;
      replaceNode(known, { config: fresh.config, source: 'config', driver: fresh.driver });
      roster.announce(known, wasLeaving);
      keeper.saveSoon(known);
      void reconciler.look(known);
    } else {
      // Aliases may have changed, and with them the names of its offers.
      roster.tell(known);
    }
  }

  return {
    async load(given) {
      const records = new Map((await options.store.load()).map((record) => [record.config.id, record]));
      for (const one of given) {
        const record = records.get(one.node.id);
        bring(fromGiven(one, record), record);
      }
      for (const record of records.values()) {
        if (roster.get(record.config.id) !== undefined) continue;
        // Only the operator's own lists can end a node's life while the gateway was down.
        if (record.source === 'config' || record.source === 'command-line') forget(record.config.id);
        else bring(fromRecord(record), record);
      }
      await firstAnswers();
      keeper.sweep(roster.all());
    },
    configure(configured) {
      const kept = new Set(configured.map((node) => node.id));
      const known = Array.from(roster.all());
      for (const node of known) {
        if (node.source !== 'config') roster.tell(node);
        else if (!kept.has(node.id) && !node.leaving) {
          forget(node.id);
          roster.drainAway(node);
        }
      }
      for (const config of configured) configureOne(config);
    },
  };
}

function isSame(a: NodeConfig, b: NodeConfig): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function hasSameConfig(record: NodeRecord, node: FleetNode): boolean {
  const fresh = recordOf(node, NO_MEMORY, 0);
  return JSON.stringify(record.config) === JSON.stringify(fresh.config) && record.source === node.source;
}
