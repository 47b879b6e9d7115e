/**
 * What would have become of the same users under another policy: B against A.
 *
 * A user is better off where its end is better: answered in time, then a lesser answer in time, then a late one, then none.
 * Of two answers as good as each other the sooner one is better, when they are at least `EQUAL_WITHIN_US` apart; two ends without
 * an answer are equal. Invariant: better under A + better under B + equal = users.
 */
import type { DurationMs } from '../../base/units.ts';
import type { UserRows } from '../measure/user-log.ts';
import { type Fate, fateOf, type JoinedUsers, joinUsers, LESS, NO_ANSWER, standingOf } from './join-users.ts';

/** Nobody notices less. */
export const EQUAL_WITHIN_US = 1_000;
/** Users told one by one on either side. */
export const USERS_SHOWN_MAX = 10;

export interface Comparison {
  /** Names of the policies. */
  readonly a: string;
  readonly b: string;
  /** Who count and came under both. */
  readonly users: number;
  /** Who came under one of them only: those of closed loops, who ask again when they were answered. */
  readonly onlyUnderA: number;
  readonly onlyUnderB: number;
  /** Index of the first user who was not kept; from here on nobody was compared. Absent where all were. */
  readonly stoppedAtUser?: number;
  readonly betterUnderA: number;
  readonly betterUnderB: number;
  readonly equal: number;
  readonly byClass: Readonly<Record<string, ClassComparison>>;
  readonly responseDifferenceMs: Differences;
  /** Under B compared with A; those with most at stake first. */
  readonly gainedMost: readonly UserComparison[];
  readonly lostMost: readonly UserComparison[];
}

/** Users of a class by whether they were answered in time. */
export interface ClassComparison {
  readonly users: number;
  readonly attainedUnderBoth: number;
  readonly attainedOnlyUnderA: number;
  readonly attainedOnlyUnderB: number;
  readonly attainedUnderNeither: number;
}

/** Response under B minus response under A, of those who were answered under both: positive where B was slower. */
export interface Differences {
  readonly users: number;
  readonly mean: DurationMs;
  readonly p1: DurationMs;
  readonly p5: DurationMs;
  readonly p50: DurationMs;
  readonly p95: DurationMs;
  readonly p99: DurationMs;
}

export interface UserComparison {
  /** Index over all streams, under A. */
  readonly user: number;
  readonly stream: string;
  readonly className: string;
  readonly tenant: string;
  readonly arrivedSeconds: number;
  readonly workSeconds: number;
  readonly deadlineSeconds: number;
  readonly a: Fate;
  readonly b: Fate;
  /** B minus A; null where one of them gave no answer. */
  readonly responseDifferenceMs: DurationMs | null;
}

/** O(n log n) over users. */
export function compareUsers(
  a: { readonly name: string; readonly rows: UserRows },
  b: { readonly name: string; readonly rows: UserRows },
): Comparison {
  const joined = joinUsers(a.rows, b.rows);
  const users = joined.rowsA.length;
  const stopped = [a.rows.stoppedAt, b.rows.stoppedAt].filter((index) => index >= 0);
  return {
    a: a.name,
    b: b.name,
    users,
    onlyUnderA: a.rows.count - users,
    onlyUnderB: b.rows.count - users,
    ...(stopped.length === 0 ? {} : { stoppedAtUser: Math.min(...stopped) }),
    ...balanceOf(joined),
    byClass: byClassOf(joined),
    responseDifferenceMs: differencesOf(joined),
    gainedMost: mostOf(joined, 1),
    lostMost: mostOf(joined, -1),
  };
}

/** Above 0 where B was better for the user, below where A was: steps between ends, or else 0 and the time. */
interface Gain {
  readonly steps: number;
  readonly soonerUs: number;
}

function gainOf({ a, b, rowsA, rowsB }: JoinedUsers, at: number): Gain {
  const [rowA, rowB] = [rowsA[at] as number, rowsB[at] as number];
  const standingA = standingOf(a, rowA);
  const soonerUs = (a.columns.endedUs[rowA] as number) - (b.columns.endedUs[rowB] as number);
  const steps = standingOf(b, rowB) - standingA;
  const isTold = steps !== 0 || (standingA !== NO_ANSWER && Math.abs(soonerUs) >= EQUAL_WITHIN_US);
  return { steps, soonerUs: isTold ? soonerUs : 0 };
}

/** 1 where B was better, -1 where A was, 0 where neither. */
function sideOf({ steps, soonerUs }: Gain): number {
  return Math.sign(steps === 0 ? soonerUs : steps);
}

function balanceOf(joined: JoinedUsers): Pick<Comparison, 'betterUnderA' | 'betterUnderB' | 'equal'> {
  const users = joined.rowsA.length;
  let [betterUnderA, betterUnderB] = [0, 0];
  for (let at = 0; at < users; at++) {
    const side = sideOf(gainOf(joined, at));
    if (side < 0) betterUnderA += 1;
    else if (side > 0) betterUnderB += 1;
  }
  return { betterUnderA, betterUnderB, equal: users - betterUnderA - betterUnderB };
}

function byClassOf({ a, b, rowsA, rowsB }: JoinedUsers): Readonly<Record<string, ClassComparison>> {
  // By class: neither, A alone, B alone, both.
  const counts = a.classes.map(() => [0, 0, 0, 0] as [number, number, number, number]);
  for (let at = 0; at < rowsA.length; at++) {
    const [rowA, rowB] = [rowsA[at] as number, rowsB[at] as number];
    const which = (standingOf(a, rowA) >= LESS ? 1 : 0) + (standingOf(b, rowB) >= LESS ? 2 : 0);
    const own = counts[a.columns.className[rowA] as number] as [number, number, number, number];
    own[which as 0 | 1 | 2 | 3] += 1;
  }
  return Object.fromEntries(
    counts.map(([neither, onlyA, onlyB, both], index) => [
      a.classes[index] as string,
      {
        users: neither + onlyA + onlyB + both,
        attainedUnderBoth: both,
        attainedOnlyUnderA: onlyA,
        attainedOnlyUnderB: onlyB,
        attainedUnderNeither: neither,
      },
    ]),
  );
}

function differencesOf({ a, b, rowsA, rowsB }: JoinedUsers): Differences {
  const values = new Float64Array(rowsA.length);
  let users = 0;
  let sum = 0;
  for (let at = 0; at < rowsA.length; at++) {
    const [rowA, rowB] = [rowsA[at] as number, rowsB[at] as number];
    if (standingOf(a, rowA) === NO_ANSWER || standingOf(b, rowB) === NO_ANSWER) continue;
    const differenceMs = ((b.columns.endedUs[rowB] as number) - (a.columns.endedUs[rowA] as number)) / 1_000;
    values[users++] = differenceMs;
    sum += differenceMs;
  }
  const sorted = values.subarray(0, users).sort();
  // By nearest rank, as all quantiles of a report.
  const quantile = (q: number): number => sorted[Math.max(1, Math.ceil(q * users)) - 1] ?? 0;
  return {
    users,
    mean: users === 0 ? 0 : sum / users,
    p1: quantile(0.01),
    p5: quantile(0.05),
    p50: quantile(0.5),
    p95: quantile(0.95),
    p99: quantile(0.99),
  };
}

interface Candidate extends Gain {
  readonly at: number;
  readonly classIndex: number;
}

/** Of those better under B (`side` 1) or A (-1): the largest step, then the most important class, then the time. */
function mostOf(joined: JoinedUsers, side: 1 | -1): readonly UserComparison[] {
  const { a, rowsA } = joined;
  const best: Candidate[] = [];
  for (let at = 0; at < rowsA.length; at++) {
    const gain = gainOf(joined, at);
    if (sideOf(gain) !== side) continue;
    const classIndex = a.columns.className[rowsA[at] as number] as number;
    const candidate = { steps: gain.steps * side, soonerUs: gain.soonerUs * side, at, classIndex };
    const last = best.at(-1);
    if (best.length === USERS_SHOWN_MAX && last !== undefined && order(candidate, last) >= 0) continue;
    best.push(candidate);
    best.sort(order);
    best.length = Math.min(best.length, USERS_SHOWN_MAX);
  }
  return best.map(({ at }) => userComparison(joined, at));
}

function order(one: Candidate, other: Candidate): number {
  return (
    other.steps - one.steps ||
    one.classIndex - other.classIndex ||
    other.soonerUs - one.soonerUs ||
    one.at - other.at
  );
}

/** The user at a place of the join. */
export function userComparison({ a, b, rowsA, rowsB }: JoinedUsers, at: number): UserComparison {
  const row = rowsA[at] as number;
  const { columns } = a;
  const fateA = fateOf(a, row);
  const fateB = fateOf(b, rowsB[at] as number);
  const isAnswered = fateA.responseMs !== null && fateB.responseMs !== null;
  return {
    user: a.firstIndex + row,
    stream: a.streams[columns.stream[row] as number] as string,
    className: a.classes[columns.className[row] as number] as string,
    tenant: a.tenants[columns.tenant[row] as number] as string,
    arrivedSeconds: (columns.arrivedAt[row] as number) / 1e6,
    workSeconds: (columns.workUs[row] as number) / 1e6,
    deadlineSeconds: (columns.deadlineUs[row] as number) / 1e6,
    a: fateA,
    b: fateB,
    responseDifferenceMs: isAnswered ? fateB.endedMs - fateA.endedMs : null,
  };
}
