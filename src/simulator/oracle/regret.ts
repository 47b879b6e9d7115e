/**
 * How far policies are from an oracle that knows all arrivals, sizes and noise beforehand. What the oracle could do is not
 * computed (that is NP-hard) but bounded: a regret of 5 % means that no policy whatever could have done more than 5 % better,
 * not that one could.
 *
 * Users in time and work in time are bounded over everybody who counts, and for each class as if the fleet had nobody else. The
 * mean response is bounded for the very users whom the policy answered: a policy is not praised for answering few.
 */
import type { DurationMs, Ratio } from '../../base/units.ts';
import { standingOf, LESS, NO_ANSWER } from '../compare/join-users.ts';
import { ENDS, type UserColumns, type UserRows } from '../measure/user-log.ts';
import type { Scenario } from '../scenario/types.ts';
import { attainedBound, type BoundJobs } from './attained-bound.ts';
import { responseBound, totalRate } from './response-bound.ts';

/** A share that was found, the most that it could have been, and the difference. */
export interface ShareRegret {
  readonly found: Ratio;
  readonly bound: Ratio;
  readonly regret: Ratio;
}

export interface Regret {
  /** Users in time, and their work, over all who count. */
  readonly attained: ShareRegret;
  readonly attainedWork: ShareRegret;
  readonly byClass: Readonly<Record<string, ShareRegret>>;
  readonly response: {
    /** Who was answered, in time or not. */
    readonly users: number;
    readonly meanMs: DurationMs;
    readonly boundMs: DurationMs;
    readonly regretMs: DurationMs;
  };
}

export type RegretReport =
  | { readonly kind: 'bounded'; readonly byPolicy: Readonly<Record<string, Regret>> }
  /** Nothing is claimed where a bound would not hold. */
  | { readonly kind: 'unknown'; readonly reason: string };

const ROUNDING = 1e-9;

interface NamedRows {
  readonly name: string;
  readonly rows: UserRows;
}

export function regretOf(scenario: Scenario, policies: readonly NamedRows[]): RegretReport {
  const reason = whyUnknown(scenario, policies);
  if (reason !== undefined) return { kind: 'unknown', reason };
  let last: { readonly rows: UserRows; readonly bounds: Bounds } | undefined;
  const byPolicy: Record<string, Regret> = {};
  for (const { name, rows } of policies) {
    // Users of closed loops come when they were answered: their bound is one for each policy.
    if (last === undefined || !areSameUsers(last.rows, rows)) last = { rows, bounds: boundsOf(rows) };
    byPolicy[name] = regretFrom(rows, last.bounds);
  }
  return { kind: 'bounded', byPolicy };
}

function whyUnknown({ fleet, faults }: Scenario, policies: readonly NamedRows[]): string | undefined {
  if (fleet.some(({ engine }) => engine.kind !== 'slots'))
    return 'some nodes work on several requests together: how long one takes depends on the others';
  if (faults.some((fault) => fault.kind === 'slow' && fault.times < 1)) return 'some nodes become faster';
  const degraded = ENDS.indexOf('degraded');
  if (policies.some(({ rows }) => rows.columns.end.includes(degraded)))
    return 'some users got a lesser answer, which takes less than what they asked for';
  return undefined;
}

function areSameUsers(one: UserRows, other: UserRows): boolean {
  const same = (key: 'stream' | 'draw' | 'arrivedAt'): boolean =>
    one.columns[key].every((value, row) => value === other.columns[key][row]);
  return one.count === other.count && same('stream') && same('draw') && same('arrivedAt');
}

interface Bounds {
  readonly attained: Ratio;
  readonly attainedWork: Ratio;
  readonly byClass: readonly Ratio[];
}

function boundsOf({ columns, supplies, classes, endedAt }: UserRows): Bounds {
  const rate = totalRate(supplies);
  const jobs: BoundJobs = {
    releaseUs: columns.arrivedAt,
    dueUs: columns.arrivedAt.map((at, row) => Math.min(endedAt, at + (columns.deadlineUs[row] as number))),
    effortUs: columns.neededUs,
  };
  const share = (weights: Float64Array): Ratio => {
    const all = sumOf(weights);
    return all === 0 ? 0 : Math.min(1, attainedBound(jobs, weights, rate) / all);
  };
  return {
    attained: share(columns.workUs.map(() => 1)),
    attainedWork: share(columns.workUs),
    byClass: classes.map((_, index) => share(weightsOf(columns, index))),
  };
}

/** 1 for users of the class. */
function weightsOf({ className }: UserColumns, classIndex: number): Float64Array {
  return Float64Array.from(className, (own) => (own === classIndex ? 1 : 0));
}

function regretFrom(rows: UserRows, bounds: Bounds): Regret {
  const { columns, classes } = rows;
  const isInTime = columns.workUs.map((_, row) => (standingOf(rows, row) >= LESS ? 1 : 0));
  const share = (weights: Float64Array, bound: Ratio): ShareRegret => {
    const all = sumOf(weights);
    const found =
      all === 0 ? 0 : sumOf(weights.map((weight, row) => weight * (isInTime[row] as number))) / all;
    // A bound that is reached may be less by the rounding of its sums.
    const regret = bound - found;
    return { found, bound, regret: Math.abs(regret) < ROUNDING ? 0 : regret };
  };
  return {
    attained: share(
      columns.workUs.map(() => 1),
      bounds.attained,
    ),
    attainedWork: share(columns.workUs, bounds.attainedWork),
    byClass: Object.fromEntries(
      classes.flatMap((name, index) => {
        const weights = weightsOf(columns, index);
        return sumOf(weights) === 0 ? [] : [[name, share(weights, bounds.byClass[index] as number)]];
      }),
    ),
    response: responseRegret(rows),
  };
}

function responseRegret(rows: UserRows): Regret['response'] {
  const { arrivedAt, effortUs, endedUs } = rows.columns;
  const answered = Uint32Array.from(arrivedAt.keys()).filter((row) => standingOf(rows, row) !== NO_ANSWER);
  const of = (column: Float64Array): Float64Array =>
    Float64Array.from(answered, (row) => column[row] as number);
  const users = answered.length;
  const meanMs = users === 0 ? 0 : sumOf(of(endedUs)) / users / 1_000;
  const releaseUs = of(arrivedAt);
  const horizonUs = rows.endedAt - (releaseUs[0] ?? 0);
  const boundMs = responseBound({ releaseUs, effortUs: of(effortUs) }, rows.supplies, horizonUs) / 1_000;
  return { users, meanMs, boundMs, regretMs: meanMs - boundMs };
}

function sumOf(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum;
}
