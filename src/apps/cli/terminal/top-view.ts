/** What `spillway top` shows: a picture, rates and findings as rows. Pure. */
import type { Picture, WatchedFleet, WatchedNode } from '../../../edge/admin/picture.ts';
import type { Finding } from '../signals.ts';
import { bySeverity } from '../signals.ts';
import { type ClassRates, type CountSample, ratesOf } from './rates.ts';

export interface TopClass {
  readonly name: string;
  readonly waiting: number;
  readonly oldestWaitMs: number;
  readonly workMs: number;
  /** Null before two looks. */
  readonly rates: ClassRates | null;
}

export interface TopNode {
  readonly id: string;
  readonly state: string;
  readonly drainMs: number;
  readonly health: number;
  readonly inflight: number;
  /** Null is unknown, here and below. */
  readonly slots: number | null;
  readonly rate: number | null;
}

export interface TopView {
  readonly at: number;
  readonly ready: boolean;
  readonly waiting: number;
  readonly running: number;
  readonly oldestWaitMs: number;
  readonly retryBudget: number;
  readonly classes: readonly TopClass[];
  readonly ladder: { readonly stage: number; readonly model: string | null; readonly unblock: string };
  readonly nodes: {
    readonly total: number;
    readonly byState: Readonly<Record<string, number>>;
    readonly rows: readonly TopNode[];
  };
  /** Null: the gateway tells none. */
  readonly signals: readonly Finding[] | null;
}

export const SORTS = ['drain', 'rate', 'health', 'busy', 'name'] as const;
export type Sort = (typeof SORTS)[number];

export interface TopInputs {
  readonly picture: Picture;
  readonly fleet: WatchedFleet;
  readonly samples: readonly CountSample[];
  readonly signals: readonly Finding[] | undefined;
}

export function topView({ picture, fleet, samples, signals }: TopInputs, sort: Sort): TopView {
  const { queue, at, ready, retryBudget } = picture;
  const ladder = picture.ladder as TopView['ladder'];
  const names = new Set([...Object.keys(queue.byClass), ...Object.keys(samples.at(-1)?.byClass ?? {})]);
  return {
    at,
    ready,
    waiting: queue.depth,
    running: queue.running,
    oldestWaitMs: queue.oldestWaitMs,
    retryBudget,
    classes: [...names].map((name) => {
      const { depth = 0, oldestWaitMs = 0, workMs = 0 } = queue.byClass[name] ?? {};
      return { name, waiting: depth, oldestWaitMs, workMs, rates: ratesOf(samples, name) ?? null };
    }),
    ladder: { stage: ladder.stage, model: ladder.model, unblock: ladder.unblock },
    nodes: {
      total: fleet.total,
      byState: picture.nodes.byState,
      rows: picture.nodes.rows.map((row, i) => nodeOf(row, fleet, i)).toSorted(ORDERS[sort]),
    },
    signals: signals === undefined ? null : bySeverity(signals),
  };
}

function nodeOf(row: WatchedNode, { ids, states }: WatchedFleet, i: number): TopNode {
  const [state, drainMs, health, inflight, slots, rate] = row;
  return { id: ids[i] ?? '?', state: states[state] ?? '?', drainMs, health, inflight, slots, rate };
}

type Order = (a: TopNode, b: TopNode) => number;

const byName: Order = (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
/** What needs looking at first; what is unknown last. */
const ORDERS: Readonly<Record<Sort, Order>> = {
  drain: (a, b) => b.drainMs - a.drainMs || byName(a, b),
  rate: (a, b) => (a.rate ?? Number.MAX_VALUE) - (b.rate ?? Number.MAX_VALUE) || byName(a, b),
  health: (a, b) => a.health - b.health || byName(a, b),
  busy: (a, b) => busyOf(b) - busyOf(a) || byName(a, b),
  name: byName,
};

function busyOf({ inflight, slots }: TopNode): number {
  return slots === null ? inflight : inflight / slots;
}
