/** Decisions in the words of the wire contract: public ids, wall time, and only the fields that say something. */
import { US_PER_MS, type WallMs } from '../../base/units.ts';
import type { TaskTable, WallAnchor } from '../task-table.ts';
import type { DecisionPage, DecisionRow, DecisionRowKind } from './decision-ring.ts';

export interface DecisionView {
  readonly seq: number;
  /** Milliseconds since 1970, to the microsecond. */
  readonly at: WallMs;
  readonly kind: DecisionRowKind;
  /** The request's `x-spillway-id`. */
  readonly task?: string;
  readonly node?: string;
  readonly attempt?: number;
  readonly reason?: string;
  readonly state?: string;
  readonly model?: string;
  readonly stage?: number;
  /** The nodes that would be done with it first, the best first. */
  readonly nodes?: readonly { readonly id: string; readonly doneMs: number }[];
  /** How many nodes could not take it then, by reason. */
  readonly refusals?: Readonly<Record<string, number>>;
}

export interface DecisionsView {
  readonly decisions: readonly DecisionView[];
  /** To go on from: the number of the last decision here. */
  readonly next: number;
  /** Number of the oldest decision that is still kept, 0 while there is none. */
  readonly oldest: number;
  /** Decisions after `since` that are forgotten already. */
  readonly dropped: number;
}

export function decisionsView(
  page: DecisionPage,
  since: number,
  { anchor, table }: { readonly anchor: WallAnchor; readonly table: TaskTable },
): DecisionsView {
  const { decisions, oldest, newest } = page;
  return {
    decisions: decisions.map((row) => decisionView(row, anchor, table)),
    next: decisions.at(-1)?.seq ?? Math.min(since, newest),
    oldest,
    dropped: oldest === 0 ? 0 : Math.max(0, oldest - since - 1),
  };
}

export function decisionView(row: DecisionRow, anchor: WallAnchor, table: TaskTable): DecisionView {
  const { seq, at, kind, taskId, nodeId, placement } = row;
  const nodes = placement?.nodes.map((one) => ({ id: one.nodeId, doneMs: one.doneUs / US_PER_MS })) ?? [];
  return {
    seq,
    at: anchor.wallMs + (at - anchor.monoUs) / US_PER_MS,
    kind,
    ...(taskId === 0 ? {} : { task: table.publicId(taskId) }),
    ...(nodeId === '' ? {} : { node: nodeId }),
    ...restOf(row),
    ...(nodes.length === 0 ? {} : { nodes }),
    ...(placement === undefined ? {} : { refusals: placement.refusals }),
  };
}

function restOf({ kind, number, what }: DecisionRow): Partial<DecisionView> {
  switch (kind) {
    case 'placed':
      return { attempt: number };
    case 'node-state':
      return { state: what };
    case 'ladder':
      return {
        stage: number,
        ...(what === 'set by hand' || what === 'given back' ? { reason: what } : { model: what }),
      };
    default:
      return what === '' ? {} : { reason: what };
  }
}
