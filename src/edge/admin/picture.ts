/**
 * What a viewer of `GET /watch` sees: a small whole picture of the gateway. Whole, so that a viewer that skipped some
 * has lost nothing but time; small, so that a thousand nodes cost tens of kilobytes: what never changes between two
 * pictures (the nodes' ids) is told apart, once and again when it changes.
 */
import type { DurationMs, WallMs } from '../../base/units.ts';
import type { Accounts, QueueView } from '../../core/scheduler/views.ts';
import type { Gateway, NodeRow } from '../../runtime/contract.ts';
import { wireLadder } from './ladder.ts';

/** Nodes with a row of their own, by the order of their ids; all of them are in `byState`. */
export const PICTURED_NODES_MAX = 2_000;

/** The words that the first column of a row counts in. */
export const PICTURED_STATES: readonly NodeRow['state'][] = [
  'active',
  'unverified',
  'suspect',
  'cordoned',
  'draining',
  'ejected',
  'gone',
];

/** Sent before the first picture and whenever the fleet's nodes are others. */
export interface WatchedFleet {
  /** Which fleet the rows of a picture are of. */
  readonly fleet: number;
  readonly states: readonly string[];
  /** In the order of the rows. */
  readonly ids: readonly string[];
  readonly total: number;
}

/** State (an index into `states`), time to drain in ms, health, in flight, slots, rate; null is unknown. */
export type WatchedNode = readonly [
  state: number,
  drainMs: DurationMs,
  health: number,
  inflight: number,
  slots: number | null,
  rate: number | null,
];

export interface Picture {
  readonly at: WallMs;
  readonly ready: boolean;
  readonly queue: Pick<QueueView, 'depth' | 'workMs' | 'oldestWaitMs' | 'bytes' | 'running' | 'byClass'>;
  /** Since the start; the difference of two pictures is what happened between them. */
  readonly accounts: Accounts;
  readonly retryBudget: number;
  /** How many findings `GET /signals` has to tell. */
  readonly signals: { readonly page: number; readonly warn: number };
  /** As `GET /ladder` tells it, with the model at the highest stage alone. */
  readonly ladder: unknown;
  readonly nodes: {
    readonly fleet: number;
    readonly byState: Readonly<Record<string, number>>;
    readonly rows: readonly WatchedNode[];
  };
}

export interface Rendered {
  /** Which fleet the picture's rows are of. */
  readonly fleet: number;
  readonly fleetEvent: Buffer;
  readonly pictureEvent: Buffer;
}

export interface PictureSource {
  render(): Rendered;
}

export function createPictureSource(gateway: Gateway, wallMs: () => WallMs): PictureSource {
  let fleet = 0;
  /** In the gateway's order, to see that nothing changed without sorting. */
  let known: readonly string[] = [];
  /** Row of each node, in the gateway's order. */
  let places: readonly number[] = [];
  let fleetEvent = eventOf('fleet', fleetOf(0, [], 0));

  function meet(nodes: readonly NodeRow[]): void {
    if (fleet > 0 && isSame(nodes, known)) return;
    fleet += 1;
    known = nodes.map((node) => node.id);
    const sorted = known.toSorted();
    const placeOf = new Map(sorted.map((id, place) => [id, place]));
    places = known.map((id) => placeOf.get(id) as number);
    fleetEvent = eventOf('fleet', fleetOf(fleet, sorted.slice(0, PICTURED_NODES_MAX), sorted.length));
  }

  return {
    render() {
      const nodes = gateway.nodes();
      meet(nodes);
      const picture: Picture = {
        ...surroundings(gateway, wallMs()),
        nodes: { fleet, ...rowsOf(nodes, places) },
      };
      return { fleet, fleetEvent, pictureEvent: eventOf('picture', picture) };
    },
  };
}

function fleetOf(fleet: number, ids: readonly string[], total: number): WatchedFleet {
  return { fleet, states: PICTURED_STATES, ids, total };
}

function isSame(nodes: readonly NodeRow[], ids: readonly string[]): boolean {
  return nodes.length === ids.length && nodes.every((node, i) => node.id === ids[i]);
}

function eventOf(name: string, value: unknown): Buffer {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify(value)}\n\n`);
}

function surroundings(gateway: Gateway, nowWallMs: WallMs): Omit<Picture, 'nodes'> {
  const { depth, workMs, oldestWaitMs, bytes, running, byClass } = gateway.queue();
  const ladder = gateway.ladder();
  const { findings } = gateway.signals();
  const page = findings.filter(({ severity }) => severity === 'page').length;
  return {
    at: nowWallMs,
    ready: gateway.ready,
    queue: { depth, workMs, oldestWaitMs, bytes, running, byClass },
    accounts: gateway.accounts(),
    retryBudget: gateway.retryBudget(),
    signals: { page, warn: findings.length - page },
    ladder: wireLadder({ ...ladder, models: ladder.models.slice(0, 1) }, nowWallMs),
  };
}

function rowsOf(nodes: readonly NodeRow[], places: readonly number[]): Omit<Picture['nodes'], 'fleet'> {
  const rows: WatchedNode[] = Array.from({ length: Math.min(nodes.length, PICTURED_NODES_MAX) });
  const byState: Record<string, number> = {};
  nodes.forEach((node, i) => {
    byState[node.state] = (byState[node.state] ?? 0) + 1;
    const place = places[i] as number;
    if (place < PICTURED_NODES_MAX) rows[place] = rowOf(node);
  });
  return { byState, rows };
}

function rowOf(node: NodeRow): WatchedNode {
  const slots = node.spec.slots > 0 ? node.spec.slots : node.slots;
  return [
    PICTURED_STATES.indexOf(node.state),
    Math.round(node.drainMs),
    node.health,
    node.inflight,
    slots > 0 && Number.isFinite(slots) ? slots : null,
    rateOf(node),
  ];
}

/** Of the model with most evidence. */
function rateOf({ rates }: NodeRow): number | null {
  let rate: number | null = null;
  let observations = 0;
  for (const entry of rates) {
    if (entry.observations <= observations) continue;
    observations = entry.observations;
    rate = Number(entry.rate.toPrecision(3));
  }
  return rate;
}
