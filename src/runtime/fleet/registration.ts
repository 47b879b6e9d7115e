/**
 * Nodes that register, over the API or by the operator's hand, and speak for themselves afterwards.
 *
 * Checked, saved, then told to the scheduler: what is acknowledged is durable. An id belongs to the credential that
 * was handed out with it; who presents it may renew the registration, which raises its generation and keeps its
 * memory. An id without a credential belongs to the operator.
 */
import type { NodeId } from '../../base/units.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { SchedulerEvent } from '../../core/scheduler/events.ts';
import type { EngineDriver } from '../../ports/engine-driver.ts';
import type { NodeSource } from '../../ports/registry-store.ts';
import type { HeartbeatChange, RegisterResult } from '../contract.ts';
import { createCredential, hashCredential, ownsCredential } from './credentials.ts';
import { createFleetNode, type FleetNode, replaceNode, type WantedNode } from './fleet-node.ts';
import { checkNodeUrl, checkNodeUrlResolved, type NameResolver } from './node-url.ts';
import type { Reconciler } from './reconciler.ts';
import type { RecordKeeper } from './record-keeper.ts';
import { NODES_MAX, type Roster } from './roster.ts';

const SLOTS_MAX = 65_536;

export interface RegistrationOptions {
  readonly roster: Roster;
  readonly keeper: RecordKeeper;
  readonly reconciler: Reconciler;
  readonly drivers: ReadonlyMap<string, EngineDriver>;
  readonly resolveName: NameResolver;
  readonly apply: (event: SchedulerEvent) => void;
}

export interface Registration {
  register(config: NodeConfig, source: NodeSource, bearer: string): Promise<RegisterResult>;
  heartbeat(nodeId: NodeId, bearer: string, change?: HeartbeatChange): boolean;
}

export function createRegistration(options: RegistrationOptions): Registration {
  const { roster, keeper, reconciler } = options;
  /** Ids whose registration is being made durable. */
  const pending = new Set<NodeId>();

  function refusal(config: NodeConfig, source: NodeSource, bearer: string): RegisterResult | undefined {
    const known = roster.get(config.id);
    if (pending.has(config.id)) return { kind: 'id-taken' };
    if (known !== undefined && source === 'api' && !ownsCredential(bearer, known.credentialSha256)) {
      return { kind: 'id-taken' };
    }
    if (known === undefined && roster.size + pending.size >= NODES_MAX) {
      return { kind: 'refused', rule: 'nodes-max' };
    }
    return undefined;
  }

  async function enter(wanted: WantedNode): Promise<RegisterResult> {
    const credential = wanted.source === 'api' ? createCredential() : '';
    const credentialSha256 = credential === '' ? '' : hashCredential(credential);
    const node = createFleetNode({ ...wanted, generation: 1, credentialSha256, discovered: {} });
    await keeper.saveNow(node);
    roster.admit(node);
    return registered(node, credential);
  }

  async function renew(node: FleetNode, wanted: WantedNode): Promise<RegisterResult> {
    const before = { ...node };
    replaceNode(node, wanted);
    try {
      await keeper.saveNow(node);
    } catch (thrown) {
      // The generation stays raised: a probe of the rejected address must not be taken for the old one's.
      const { config, source, driver, discovered, leaving, credentialSha256 } = before;
      Object.assign(node, { config, source, driver, discovered, leaving, credentialSha256 });
      throw thrown;
    }
    roster.announce(node, before.leaving);
    if (before.leaving) keeper.saveSoon(node);
    return registered(node, '');
  }

  /** A node that offers nothing yet is asked before the answer, so that its first request finds it. */
  async function registered(node: FleetNode, credential: string): Promise<RegisterResult> {
    const look = reconciler.look(node);
    if (node.offers.length === 0) await look;
    const row = roster.row(node);
    if (row === undefined) return { kind: 'refused', rule: 'removed-meanwhile' };
    return { kind: 'registered', node: row, credential };
  }

  function tellMemory(nodeId: NodeId, change: HeartbeatChange | undefined): void {
    const { memoryUse, reservedUse } = change ?? {};
    if (memoryUse === undefined) return;
    const memory = reservedUse === undefined ? { memoryUse } : { memoryUse, reservedUse };
    options.apply({ kind: 'node-memory', nodeId, memory });
  }

  return {
    async register(config, source, bearer) {
      const driver = options.drivers.get(config.protocol);
      if (driver === undefined) return { kind: 'refused', rule: 'protocol-unknown' };
      const verdict =
        source === 'api'
          ? await checkNodeUrlResolved(config.url, options.resolveName)
          : checkNodeUrl(config.url);
      if (verdict.kind === 'refused') return verdict;
      const refused = refusal(config, source, bearer);
      if (refused !== undefined) return refused;
      const known = roster.get(config.id);
      const wanted = { config: { ...config, url: verdict.url }, source, driver };
      pending.add(config.id);
      try {
        return known === undefined ? await enter(wanted) : await renew(known, wanted);
      } finally {
        pending.delete(config.id);
      }
    },
    heartbeat(nodeId, bearer, change) {
      const node = roster.get(nodeId);
      if (node === undefined || node.leaving || !ownsCredential(bearer, node.credentialSha256)) return false;
      const stated = change?.slots;
      const slots = stated !== undefined && isSlotCount(stated) ? stated : node.statedSlots;
      const isNews = !node.heartbeats || slots !== node.statedSlots;
      node.heartbeats = true;
      node.statedSlots = slots;
      if (isNews) roster.tell(node);
      options.apply({ kind: 'node-heartbeat', nodeId });
      tellMemory(nodeId, change);
      return true;
    },
  };
}

function isSlotCount(slots: number): boolean {
  return Number.isInteger(slots) && slots >= 1 && slots <= SLOTS_MAX;
}
