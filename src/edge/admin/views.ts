/** Rows of the admin plane in the words of the wire contract. Unknown is null, never zero. */
import type { GatewayConfig } from '../../core/config/types.ts';
import type { NodeRow, RequestView } from '../../runtime/contract.ts';

export interface WireNode {
  readonly id: string;
  readonly url: string;
  readonly protocol: string;
  readonly models: readonly string[];
  /** Absent while the engine has not said. */
  readonly slots?: number;
  readonly hardware: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: string;
  readonly health: number;
  /** Of the model with most evidence, as a multiple of its reference accelerator; null before the first observation. */
  readonly rate: number | null;
  readonly rates: NodeRow['rates'];
  readonly inflight: number;
  readonly drainMs: number;
  readonly source: string;
  readonly cordoned: boolean;
  readonly draining: boolean;
  readonly ejectedForMs: number;
  readonly ejections: number;
}

export function wireNode(row: NodeRow): WireNode {
  // A node that starts slowly has fewer in force for a while; told is what it can take.
  const slots = row.spec.slots > 0 ? row.spec.slots : row.slots;
  return {
    id: row.id,
    url: row.url,
    protocol: row.protocol,
    models: row.spec.models.map((offer) => offer.model),
    ...(slots > 0 && Number.isFinite(slots) ? { slots } : {}),
    hardware: row.hardware,
    labels: row.spec.labels,
    state: row.state,
    health: row.health,
    rate: bestKnownRate(row),
    rates: row.rates,
    inflight: row.inflight,
    drainMs: row.drainMs,
    source: row.source,
    cordoned: row.cordoned,
    draining: row.draining,
    ejectedForMs: row.ejectedForMs,
    ejections: row.ejections,
  };
}

function bestKnownRate(row: NodeRow): number | null {
  let best: NodeRow['rates'][number] | undefined;
  for (const entry of row.rates) if (entry.observations > (best?.observations ?? 0)) best = entry;
  return best?.rate ?? null;
}

export interface RequestPage {
  readonly offset: number;
  readonly limit: number;
}

/** One request, live or finished. Instants are milliseconds since 1970, null where they have not happened. */
export function wireRequest(view: RequestView, page: RequestPage, nowWallMs: number): unknown {
  const { received, ...offsets } = view.timeline;
  const at = (offsetMs: number): number | null => (offsetMs < 0 ? null : received + offsetMs);
  const { live } = view;
  const nodes = live?.nodes ?? [];
  return {
    id: view.id,
    state: view.state,
    reason: view.reason,
    class: view.className,
    tenant: view.tenant,
    model: view.model,
    node: view.nodeId === '' ? null : view.nodeId,
    attempts: view.attempts,
    timeline: {
      received,
      admitted: at(offsets.admitted),
      decided: at(offsets.decided),
      sent: at(offsets.sent),
      firstByte: at(offsets.firstByte),
      done: at(offsets.done),
    },
    position: live?.state === 'queued' ? live.position : null,
    etaMs: live === undefined ? null : live.etaMs,
    gates: (live?.gates ?? []).map(({ gate, sinceMs, detail }) => ({
      gate,
      since: nowWallMs - sinceMs,
      detail,
    })),
    nodes: nodes.slice(page.offset, page.offset + page.limit),
    nodesTotal: nodes.length,
    nodesNextOffset: page.offset + page.limit < nodes.length ? page.offset + page.limit : null,
    unblock: live?.unblock ?? '',
  };
}

/** The live configuration for people: secrets by their origin, never by value. */
export function wireConfig(config: GatewayConfig): unknown {
  return {
    ...config,
    tenants: config.tenants.map((tenant) => ({
      ...tenant,
      keys: tenant.keys.map((key) => ({ id: key.id, sha256: '<hidden>' })),
    })),
    nodes: config.nodes.map((node) => ({
      ...node,
      ...(node.key === undefined ? {} : { key: `<${node.key.origin}>` }),
      headers: Object.fromEntries(Object.keys(node.headers).map((name) => [name, '<hidden>'])),
    })),
  };
}
