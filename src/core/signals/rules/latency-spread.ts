/**
 * One class, two qualities: a tenant's slowest answers take much longer for their size than those of the others in its class.
 *
 *   spread = (P99 of the slowest tenant − P99 of the quickest) · mean work of the class
 *
 * where P99 is of latency over work, so sizes do not matter, and the spread is a time at the size that is usual in the class. A P99
 * of few answers is their worst one, and of twenty tenants some are far apart by chance: so it must also be a multiple of the P99
 * of all others, and more of the tenant's answers must lie above that one than the binomial of 1 % allows.
 *
 * Who is served more than its weight among the active tenants waits for its own work by right, and is not accused.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { ClassSample } from '../sample.ts';
import { percent, told } from '../statistics.ts';
import { countAbove, quantile, quantileStep, type Steps, stepsBetween } from './latency-steps.ts';
import { classPairs } from './since.ts';

const WINDOW_S = 300;
const Q = 0.99;
const SPREAD_S = 0.2;
const RATIO_MIN = 1.5;
/** Part of a tenant's answers above the 99th percentile of the others. */
const ABOVE_MIN = 0.1;
const Z_MIN = 6;
const TASKS_MIN = 50;

export const latencySpread: Rule = {
  signal: 'latency-spread',
  thresholds: {
    spread: { value: SPREAD_S, unit: 's between the 99th percentiles of two tenants, at the mean size' },
    ratio: { value: RATIO_MIN, unit: 'times the 99th percentile of the others' },
    above: { value: ABOVE_MIN, unit: 'ratio of its answers above the 99th percentile of the others' },
    z: { value: Z_MIN, unit: 'standard deviations' },
    tasksMin: { value: TASKS_MIN, unit: 'answers of a tenant' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 15,
  leaveSamples: 30,
  remedy:
    'See what sets the slow tenant apart: its model, its needs or zone that few nodes meet, its weight, a limit of its own; and give it nodes or weight, or another class.',
  look(past: Past): Look {
    const then = past.ago(WINDOW_S);
    if (then === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    const classes = classPairs(then, past.now).map(([old, record]) => ({
      old,
      record,
      tenants: tenantsSince(old, record),
    }));
    if (classes.every(({ tenants }) => countedOf(tenants).length < 2))
      return { kind: 'seen', suspicions: [], why: `No class has two tenants with ${TASKS_MIN} answers` };
    return {
      kind: 'seen',
      suspicions: classes.flatMap(({ old, record, tenants }) => suspicionsOf(old, record, tenants)),
    };
  },
};

interface TenantSince {
  readonly tenant: string;
  readonly weight: number;
  readonly workUs: number;
  readonly steps: Steps;
  /** Of latency over work. */
  readonly p99: number;
}

function tenantsSince(old: ClassSample, record: ClassSample): readonly TenantSince[] {
  const before = new Map(old.tenantPaces.map((row) => [row.tenant, row]));
  return record.tenantPaces.flatMap((row) => {
    const earlier = before.get(row.tenant);
    // Its row was given away in between, and it has another one.
    const known = earlier !== undefined && earlier.served <= row.served ? earlier : undefined;
    const steps = stepsBetween(known?.steps ?? [], row.steps);
    if (steps.total === 0) return [];
    const workUs = row.servedWorkUs - (known?.servedWorkUs ?? 0);
    return [{ tenant: row.tenant, weight: row.weight, workUs, steps, p99: quantile(steps, Q) }];
  });
}

function countedOf(tenants: readonly TenantSince[]): readonly TenantSince[] {
  return tenants.filter(({ steps }) => steps.total >= TASKS_MIN);
}

function suspicionsOf(
  old: ClassSample,
  record: ClassSample,
  tenants: readonly TenantSince[],
): readonly Suspicion[] {
  const counted = countedOf(tenants);
  if (counted.length < 2) return [];
  const slow = slowestOf(counted, tenants);
  const quick = counted.reduce((least, one) => (one.p99 < least.p99 ? one : least));
  const tasks = record.dispatched - old.dispatched;
  if (slow === undefined || tasks <= 0) return [];
  const meanWorkS = (record.dispatchedWorkUs - old.dispatchedWorkUs) / tasks / 1_000_000;
  const spreadS = (slow.p99 - quick.p99) * meanWorkS;
  const others = without(stepsBetween(old.paceSteps, record.paceSteps), slow.steps);
  const apart = apartFrom(others, slow.steps);
  if (spreadS < SPREAD_S || apart === undefined) return [];
  return [suspicionOf(record.name, { slow, quick, spreadS, ...apart })];
}

/** Of those who were not served more than their weight gives them. */
function slowestOf(
  counted: readonly TenantSince[],
  tenants: readonly TenantSince[],
): TenantSince | undefined {
  const weights = tenants.reduce((sum, { weight }) => sum + weight, 0);
  const work = tenants.reduce((sum, { workUs }) => sum + workUs, 0);
  let slowest: TenantSince | undefined;
  for (const one of counted) {
    if (one.workUs / work > one.weight / weights) continue;
    if (slowest === undefined || one.p99 > slowest.p99) slowest = one;
  }
  return slowest;
}

function without(all: Steps, own: Steps): Steps {
  return {
    counts: all.counts.map((count, step) => count - (own.counts[step] as number)),
    total: all.total - own.total,
  };
}

interface Apart {
  readonly ratio: number;
  readonly above: number;
  readonly z: number;
}

/** How far a tenant is from all others; undefined where that may be chance. */
function apartFrom(others: Steps, { counts, total }: Steps): Apart | undefined {
  if (others.total < TASKS_MIN) return undefined;
  const hits = countAbove({ counts, total }, quantileStep(others, Q));
  const expected = total * (1 - Q);
  const z = (hits - expected) / Math.sqrt(expected * Q);
  const ratio = quantile({ counts, total }, Q) / quantile(others, Q);
  const above = hits / total;
  return above < ABOVE_MIN || z < Z_MIN || ratio < RATIO_MIN ? undefined : { ratio, above, z };
}

interface Spread extends Apart {
  readonly slow: TenantSince;
  readonly quick: TenantSince;
  readonly spreadS: number;
}

function suspicionOf(className: string, { slow, quick, spreadS, ratio, above, z }: Spread): Suspicion {
  return {
    subject: { kind: 'class', id: className },
    severity: 'warn',
    evidence: {
      slowest: slow.tenant,
      quickest: quick.tenant,
      spreadS: told(spreadS),
      slowestP99: told(slow.p99),
      quickestP99: told(quick.p99),
      ratio: told(ratio),
      above: told(above),
      z: told(z),
      answers: slow.steps.total,
    },
    says: `The slowest answers of ${className} take ${told(spreadS)} s longer for ${slow.tenant} than for ${quick.tenant} at the same size; ${percent(above)} of those of ${slow.tenant} take longer than the slowest 1 % of all others`,
  };
}
