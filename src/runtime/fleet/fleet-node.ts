/**
 * One node as the fleet holds it, and the three forms it takes: an endpoint for the transport, a specification for
 * the scheduler, a record for the registry.
 */
import type { DurationUs, MonoUs, NodeId, WallMs } from '../../base/units.ts';
import { msToUs, US_PER_MS } from '../../base/units.ts';
import type { NodeConfig } from '../../core/config/types.ts';
import type { NodeState } from '../../core/health/state.ts';
import type { ModelOffer } from '../../core/request/needs.ts';
import type { NodeMemory, NodeSpec } from '../../core/scheduler/events.ts';
import { agedMemory } from '../../core/scheduler/index.ts';
import type { EngineDriver } from '../../ports/engine-driver.ts';
import type { NodeEndpoint } from '../../ports/node-transport.ts';
import type { NodeRecord, NodeSource } from '../../ports/registry-store.ts';
import { createLoadPage, type LoadPage } from './load-page.ts';
import { createTelemetryState, type TelemetryState } from './telemetry.ts';

/** Offers that are taken from one node; an engine that lists more is cut there. */
export const OFFERS_PER_NODE_MAX = 1_000;

/** What an engine said where the configuration leaves it open. */
export interface Discovered {
  readonly models?: readonly ModelOffer[];
  readonly slots?: number;
}

export interface FleetNode {
  readonly id: NodeId;
  config: NodeConfig;
  source: NodeSource;
  generation: number;
  credentialSha256: string;
  driver: EngineDriver;
  discovered: Discovered;
  /** Slots as the node's own heartbeat states them, or 0. */
  statedSlots: number;
  /** Set by the first heartbeat: from then on silence makes the node suspect. */
  heartbeats: boolean;
  /** Leaves as soon as nothing runs on it. */
  leaving: boolean;
  /** Attempts that hold a permit now. */
  inflight: number;
  /** What the scheduler was told that the node offers. */
  offers: readonly ModelOffer[];
  /** Upstream names of offers that carry another one; most nodes have none. */
  upstreamNames: ReadonlyMap<string, string>;
  nextProbeAt: MonoUs;
  nextReadAt: MonoUs;
  nextTelemetryAt: MonoUs;
  probing: boolean;
  readonly loadPage: LoadPage;
  readonly telemetry: TelemetryState;
  /** What the last probe that told anything said. */
  alive: boolean;
  state: NodeState;
  /** What the last probe said, for people. */
  detail: string;
  /** What the registry holds, and when it was written. */
  savedAt: MonoUs;
  saveDue: boolean;
  learnedSince: boolean;
}

export interface NewNode {
  readonly config: NodeConfig;
  readonly source: NodeSource;
  readonly generation: number;
  readonly credentialSha256: string;
  readonly driver: EngineDriver;
  readonly discovered: Discovered;
}

export function createFleetNode(start: NewNode): FleetNode {
  return {
    id: start.config.id,
    config: start.config,
    source: start.source,
    generation: start.generation,
    credentialSha256: start.credentialSha256,
    driver: start.driver,
    discovered: start.discovered,
    statedSlots: 0,
    heartbeats: false,
    leaving: false,
    inflight: 0,
    offers: [],
    upstreamNames: new Map(),
    nextProbeAt: 0,
    nextReadAt: 0,
    nextTelemetryAt: 0,
    probing: false,
    loadPage: createLoadPage(),
    telemetry: createTelemetryState(),
    alive: true,
    state: 'unverified',
    detail: 'not probed yet',
    savedAt: Number.NEGATIVE_INFINITY,
    saveDue: false,
    learnedSince: false,
  };
}

/** What a registration asks for. */
export interface WantedNode {
  readonly config: NodeConfig;
  readonly source: NodeSource;
  readonly driver: EngineDriver;
}

/** Another registration of the same id: a later generation; what was learned of the engine stays if it is the same. */
export function replaceNode(node: FleetNode, wanted: WantedNode): void {
  if (wanted.config.url !== node.config.url || wanted.driver !== node.driver) node.discovered = {};
  if (wanted.source !== 'api') node.credentialSha256 = '';
  node.config = wanted.config;
  node.source = wanted.source;
  node.driver = wanted.driver;
  node.generation += 1;
  node.leaving = false;
}

/** Secrets included: never logged. */
export function endpointOf(node: FleetNode): NodeEndpoint {
  const headers: string[] = [];
  for (const [name, value] of Object.entries(node.config.headers)) headers.push(name, value);
  if (node.config.key !== undefined) headers.push('authorization', `Bearer ${node.config.key.value}`);
  const endpoint = { id: node.id, url: node.config.url, headers };
  return node.config.tls === undefined ? endpoint : { ...endpoint, tls: node.config.tls };
}

/** Offers under canonical model names: an engine's own name that is an alias becomes an upstream name. */
export function offersOf(node: FleetNode, canonical: (name: string) => string): readonly ModelOffer[] {
  const named = node.config.models.length > 0 ? node.config.models : (node.discovered.models ?? []);
  const offers = new Map<string, ModelOffer>();
  for (const offer of named) {
    if (offers.size >= OFFERS_PER_NODE_MAX) break;
    const model = canonical(offer.model);
    if (offers.has(model)) continue;
    if (model === offer.model) offers.set(model, offer);
    else offers.set(model, { ...offer, model, upstreamModel: offer.upstreamModel ?? offer.model });
  }
  return [...offers.values()];
}

export function specOf(node: FleetNode, offers: readonly ModelOffer[]): NodeSpec {
  const slots = node.config.slots ?? (node.statedSlots > 0 ? node.statedSlots : (node.discovered.slots ?? 0));
  return {
    id: node.id,
    models: offers,
    slots,
    // A stated number of slots is the tighter truth, also for an engine that batches.
    batching: node.driver.batching && slots === 0,
    hardware: node.config.hardware,
    labels: node.config.labels,
    heartbeats: node.heartbeats,
    ...(node.driver.abortFreesSlot ? {} : { canAbort: false }),
    ...(node.config.prefixBlocks === undefined ? {} : { prefixBlocks: node.config.prefixBlocks }),
  };
}

export function upstreamNamesOf(offers: readonly ModelOffer[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const offer of offers) {
    if (offer.upstreamModel !== undefined && offer.upstreamModel !== offer.model) {
      names.set(offer.model, offer.upstreamModel);
    }
  }
  return names;
}

export const NO_MEMORY: NodeMemory = Object.freeze({
  cordoned: false,
  draining: false,
  ejectedForUs: 0,
  ejections: 0,
  rates: Object.freeze([]),
});

export function recordOf(node: FleetNode, memory: NodeMemory, wallMs: WallMs): NodeRecord {
  const { key: _key, tls: _tls, ...config } = node.config;
  return {
    config,
    source: node.source,
    discovered: node.discovered,
    generation: node.generation,
    credentialSha256: node.credentialSha256,
    // Durations do not survive a restart: the end of the sleep is kept as wall time.
    memory: { ...memory, ejectedForUs: 0, draining: memory.draining && !node.leaving },
    ejectedUntilMs: memory.ejectedForUs > 0 ? Math.ceil(wallMs + memory.ejectedForUs / US_PER_MS) : 0,
    updatedAtMs: wallMs,
  };
}

/** Memory of a record as of now: what was left when it was written, less the time since. */
export function memoryOf(record: NodeRecord, wallMs: WallMs): NodeMemory {
  const ejectedForUs: DurationUs = Math.max(0, msToUs(record.ejectedUntilMs - wallMs));
  const sinceUs: DurationUs = Math.max(0, msToUs(wallMs - record.updatedAtMs));
  return { ...agedMemory(record.memory, sinceUs), ejectedForUs };
}

/** Equal offers and slots, compared as text: probes are rare and the lists are short. */
export function sameDiscovery(a: Discovered, b: Discovered): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
