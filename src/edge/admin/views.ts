/** Rows of the admin plane in the words of the wire contract. Unknown is null, never zero. */
import type { GatewayConfig } from '../../core/config/types.ts';
import { alternativeLabel } from '../../core/degrade/index.ts';
import type { TaskView } from '../../core/scheduler/views.ts';
import type { DecisionView, NodeRow, RequestView } from '../../runtime/contract.ts';
import { type WireTelemetry, wireTelemetry } from './telemetry.ts';
import { type Ending, endingOf, standsIn, type Surroundings } from './finished.ts';

export interface WireNode {
  readonly id: string;
  readonly url: string;
  readonly protocol: string;
  readonly models: readonly string[];
  /** Absent while the engine has not said. */
  readonly slots?: number;
  /** What was learned of tasks at once, where the node states no slots. */
  readonly concurrency?: NodeRow['concurrency'];
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
  /** By model, those against which anything speaks; a model that is not listed is closed. */
  readonly breakers: NodeRow['breakers'];
  /** Null: neither its host nor its engine ever told anything. */
  readonly telemetry: WireTelemetry | null;
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
    ...(row.concurrency === undefined ? {} : { concurrency: row.concurrency }),
    hardware: row.hardware,
    labels: row.spec.labels,
    state: row.state,
    health: row.health,
    rate: bestKnownRate(row),
    rates: row.rates.map((entry) => named(entry, row)),
    inflight: row.inflight,
    drainMs: row.drainMs,
    source: row.source,
    cordoned: row.cordoned,
    draining: row.draining,
    ejectedForMs: row.ejectedForMs,
    ejections: row.ejections,
    breakers: row.breakers,
    telemetry: wireTelemetry(row),
  };
}

/** The scheduler measures a node of one model as a whole; for people it is the rate of that model. */
function named(entry: NodeRow['rates'][number], row: NodeRow): NodeRow['rates'][number] {
  const { models } = row.spec;
  return entry.model === '' && models.length === 1 && row.rates.length === 1
    ? { ...entry, model: models[0]?.model ?? '' }
    : entry;
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

export interface WireSurroundings {
  readonly nowWallMs: number;
  readonly surroundings: Surroundings;
}

/** One request in the words of the wire contract. */
export interface ExplainedRequest extends Ending {
  readonly id: string;
  readonly state: string;
  readonly reason: string;
  readonly class: string;
  readonly tenant: string;
  readonly model: string;
  readonly node: string | null;
  readonly attempts: number;
  readonly timeline: Readonly<Record<string, number | null>>;
  readonly workMs: number | null;
  readonly deadlineMs: number | null;
  readonly failures: readonly {
    readonly node: string;
    readonly attempt: number;
    readonly failure: string;
    readonly at: number | null;
  }[];
  readonly degraded: unknown;
  /** What was decided about it, the oldest first, as far as it is remembered. */
  readonly decisions: readonly DecisionView[];
  readonly position: number | null;
  readonly cure: TaskView['cure'];
  readonly nodesTotal: number;
  readonly nodesNextOffset: number | null;
}

/** One request, live or finished. Instants are milliseconds since 1970, null where they have not happened. */
export function wireRequest(
  view: RequestView,
  page: RequestPage,
  { nowWallMs, surroundings }: WireSurroundings,
): ExplainedRequest {
  const { received, ...offsets } = view.timeline;
  const at = (offsetMs: number): number | null => (offsetMs < 0 ? null : received + offsetMs);
  const told = isOver(view) ? endedParts(view, surroundings) : liveParts(view.live, nowWallMs);
  const end = page.offset + page.limit;
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
    // A request without a class was refused before either was known.
    workMs: view.className === '' ? null : (view.facts?.workMs ?? null),
    deadlineMs: view.className === '' ? null : (view.facts?.deadlineMs ?? null),
    failures: (view.facts?.failures ?? []).map(({ nodeId, attempt, failure, endedMs }) => ({
      node: nodeId,
      attempt,
      failure,
      at: at(endedMs),
    })),
    degraded: wireDegraded(view),
    decisions: view.decisions ?? [],
    ...told,
    nodes: told.nodes.slice(page.offset, end),
    nodesTotal: told.nodes.length,
    nodesNextOffset: end < told.nodes.length ? end : null,
  };
}

/** The lesser answer that stands in, and every one that was looked at: what would have ended the request, and what came of it. */
function wireDegraded(view: RequestView): unknown {
  const lookedAt = view.facts?.lookedAt ?? [];
  if (lookedAt.length === 0) return null;
  return {
    answer: standsIn(view) ?? null,
    alternatives: lookedAt.map(({ alternative, because, verdict }) => ({
      answer: alternativeLabel(alternative),
      because,
      verdict,
    })),
  };
}

interface ToldParts extends Ending {
  readonly position: number | null;
  /** `unblock` for machines: what would let it run; null unless it waits. */
  readonly cure: TaskView['cure'];
  /** How far off such estimates were for its class lately; null before any came true, and at the end. */
  readonly etaError: TaskView['etaError'];
}

function isOver({ state, live }: RequestView): boolean {
  return live === undefined && state !== 'queued' && state !== 'running';
}

function endedParts(view: RequestView, surroundings: Surroundings): ToldParts {
  return { position: 0, etaError: null, cure: null, ...endingOf(view, surroundings) };
}

/** Without a live view the scheduler has not seen the request yet: it does within its turn. */
function liveParts(live: TaskView | undefined, nowWallMs: number): ToldParts {
  if (live === undefined)
    return {
      position: null,
      etaMs: null,
      etaError: null,
      gates: [],
      nodes: [],
      unblock: 'The next turn.',
      cure: null,
    };
  return {
    position: live.state === 'queued' ? live.position : null,
    etaMs: live.etaMs,
    etaError: live.etaError,
    gates: live.gates.map(({ gate, sinceMs, detail }) => ({ gate, since: nowWallMs - sinceMs, detail })),
    nodes: live.nodes,
    unblock: live.unblock,
    cure: live.cure,
  };
}

/** The live configuration for people: secrets by their origin, never by value. */
export function wireConfig(config: GatewayConfig): unknown {
  return {
    ...config,
    tracing: { ...config.tracing, headers: hidden(config.tracing.headers) },
    tenants: config.tenants.map((tenant) => ({
      ...tenant,
      keys: tenant.keys.map((key) => ({ id: key.id, sha256: '<hidden>' })),
    })),
    nodes: config.nodes.map((node) => ({
      ...node,
      ...(node.key === undefined ? {} : { key: `<${node.key.origin}>` }),
      headers: hidden(node.headers),
    })),
  };
}

function hidden(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.keys(headers).map((name) => [name, '<hidden>']));
}
