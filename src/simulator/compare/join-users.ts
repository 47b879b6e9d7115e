/** The same users under two policies: who is in both, and how each fared. */
import type { DurationMs } from '../../base/units.ts';
import { ENDS, type UserRows } from '../measure/user-log.ts';

/** Rows of the same user under A and under B, in order of A. */
export interface JoinedUsers {
  readonly a: UserRows;
  readonly b: UserRows;
  readonly rowsA: Int32Array;
  readonly rowsB: Int32Array;
}

/**
 * By stream and draw. Users who arrive whatever becomes of others have the same row on both sides, and cost nothing; only
 * those of closed loops are looked up. O(users).
 */
export function joinUsers(a: UserRows, b: UserRows): JoinedUsers {
  const rowsA = new Int32Array(a.count);
  const rowsB = new Int32Array(a.count);
  let known: ReadonlyMap<number, number> | undefined;
  let joined = 0;
  for (let row = 0; row < a.count; row++) {
    const key = keyOf(a, row);
    const isAligned = row < b.count && keyOf(b, row) === key;
    if (!isAligned) known ??= rowsByKey(b);
    const other = isAligned ? row : known?.get(key);
    if (other === undefined) continue;
    rowsA[joined] = row;
    rowsB[joined] = other;
    joined += 1;
  }
  return { a, b, rowsA: rowsA.subarray(0, joined), rowsB: rowsB.subarray(0, joined) };
}

function rowsByKey(rows: UserRows): ReadonlyMap<number, number> {
  const known = new Map<number, number>();
  for (let row = 0; row < rows.count; row++) known.set(keyOf(rows, row), row);
  return known;
}

function keyOf({ columns }: UserRows, row: number): number {
  return (columns.stream[row] as number) * 2 ** 32 + (columns.draw[row] as number);
}

/** `late`: served or degraded after the deadline. */
export type FateOutcome = (typeof ENDS)[number] | 'late';

/** What became of a user under one policy. */
export interface Fate {
  readonly outcome: FateOutcome;
  /** Of the last attempt; null where there was none, or the run ended first. */
  readonly node: string | null;
  readonly tries: number;
  /** First try to first dispatch of the try that was answered, and to the whole answer; null without an answer. */
  readonly waitMs: DurationMs | null;
  readonly responseMs: DurationMs | null;
  /** First try to the end, whatever it was. */
  readonly endedMs: DurationMs;
}

export function fateOf(rows: UserRows, row: number): Fate {
  const { end, inTime, node, tries, waitUs, endedUs } = rows.columns;
  const kind = ENDS[end[row] as number] as FateOutcome;
  const isAnswer = kind === 'served' || kind === 'degraded';
  const endedMs = (endedUs[row] as number) / 1_000;
  return {
    outcome: isAnswer && inTime[row] === 0 ? 'late' : kind,
    node: rows.nodes[node[row] as number] ?? null,
    tries: tries[row] as number,
    waitMs: isAnswer ? (waitUs[row] as number) / 1_000 : null,
    responseMs: isAnswer ? endedMs : null,
    endedMs,
  };
}

/** How good an end is: in time above a lesser answer in time above a late one above none. */
export function standingOf({ columns }: UserRows, row: number): number {
  const kind = ENDS[columns.end[row] as number];
  if (kind !== 'served' && kind !== 'degraded') return NO_ANSWER;
  if (columns.inTime[row] === 0) return LATE;
  return kind === 'degraded' ? LESS : IN_TIME;
}

export const NO_ANSWER = 0;
const LATE = 1;
/** From here on an end is in time. */
export const LESS = 2;
const IN_TIME = 3;
