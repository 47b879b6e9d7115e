/**
 * The arithmetic of the report: from what the load clients recorded to the document that `--json` prints.
 * Nothing here comes from the gateway but its memory, which is read from the operating system.
 */
import type { Bytes, DurationMs, Ratio } from '../../base/units.ts';
import { type DemoPlan, lastArrivalMs, spikeEndMs, spikeStartMs } from './plan.ts';
import { percentileOfSorted } from './percentile.ts';
import { findRecovery, type Recovery, type WaitSample } from './recovery.ts';
import type { Stall } from './stall-watch.ts';
import type { AttemptEnd, UserEnd } from './users.ts';

/** One user, ended. Instants are milliseconds after the start of the run. */
export interface UserRecord {
  readonly classIndex: number;
  readonly end: UserEnd;
  readonly attempts: number;
  readonly firstAtMs: DurationMs;
  readonly endedAtMs: DurationMs;
  /** Service time that the node stated in its answer; 0 unless served. */
  readonly serviceMs: DurationMs;
  readonly deadlineMs: DurationMs;
  /** Asked for; of one that was served, what the fleet did for it, which is less for a lesser answer. */
  readonly workMs: DurationMs;
  readonly consents: boolean;
  /** How the answer says that it is a lesser one; '' for a whole one and for none. */
  readonly lesser: string;
  /** The picture had fewer steps than were asked for, and did not say so. */
  readonly isUnmarked: boolean;
  readonly told: Told | undefined;
  /** Its attempts in order, at most as many as a user makes. */
  readonly trail: readonly Try[];
}

/** One attempt. */
export interface Try {
  readonly sentAtMs: DurationMs;
  readonly endedAtMs: DurationMs;
  readonly kind: AttemptEnd['kind'];
}

/** The longest time that each process was kept from running: of the machine, when all of them stopped at once. */
export interface Stalls {
  readonly clients: Stall;
  readonly gateway: Stall;
  readonly view: Stall;
}

/** A user of the first class who was not served in time, and what became of each attempt. */
export interface MissedUser {
  readonly end: UserEnd;
  readonly deadlineMs: DurationMs;
  readonly trail: readonly Try[];
}

/** The first time that a refusal named to a user. */
export interface Told {
  readonly waitMs: DurationMs;
  /** Until an attempt was let in, from the refusal on; -1 when none was. */
  readonly tookMs: DurationMs;
  /** Whether the user came back when told: others cannot judge it. */
  readonly cameBack: boolean;
}

/** Low users in the spike who take less: how many got something in time, and what. */
export interface ConsentingReport {
  readonly users: number;
  readonly useful: Ratio;
  /** Answers in time by their mark; `whole` for those without. */
  readonly byAnswer: Readonly<Record<string, number>>;
  /** Lesser answers that do not say that they are: over all users of the run. */
  readonly unmarked: number;
}

/** Low users in the spike who take nothing less, and what became of the times that refusals named to them. */
export interface EstimateReport {
  readonly refusedUsers: number;
  /** Told that a retry does not help within a minute. */
  readonly toldNever: number;
  /** Came back when they were told, and so can tell. */
  readonly judged: number;
  /** Of those: let in before twice the time had passed. */
  readonly cameTrue: Ratio;
}

export interface ClassReport {
  readonly users: number;
  readonly served: number;
  readonly refused: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly attained: Ratio;
  readonly waitMs: { readonly p50: DurationMs; readonly p95: DurationMs; readonly p99: DurationMs };
}

export interface PolicyReport {
  readonly users: number;
  readonly offered: number;
  readonly served: number;
  readonly refused: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly untypedErrors: number;
  readonly goodputRatio: number;
  /** Where no recovery was seen: the time that was observed, which is then a lower bound. */
  readonly recoverySeconds: number;
  readonly peakRssBytes: Bytes;
  /** Most attempts outstanding at once beyond what the nodes can run. */
  readonly peakQueued: number;
  readonly byClass: Readonly<Record<string, ClassReport>>;
  readonly embedding: { readonly served: number; readonly failed: number };
  readonly consenting: ConsentingReport;
  readonly estimates: EstimateReport;
  readonly stalls: Stalls;
  /** The first of them, at most `MISSED_SHOWN`. */
  readonly missedCritical: readonly MissedUser[];
}

export interface DemoDocument {
  readonly emulatedSpeedup: number;
  readonly policies: Readonly<Record<string, PolicyReport>>;
}

export interface RunMeasures {
  readonly users: readonly UserRecord[];
  readonly untypedErrors: number;
  readonly peakOutstanding: number;
  readonly peakRssBytes: Bytes;
  /** Work that the fleet could have completed during the spike. */
  readonly capacityWorkMs: DurationMs;
  readonly embedding: { readonly served: number; readonly failed: number };
  readonly stalls: Stalls;
}

const MISSED_SHOWN = 10;

export function isAttained(user: UserRecord): boolean {
  return user.end === 'served' && user.endedAtMs - user.firstAtMs <= user.deadlineMs;
}

/** From the first attempt until the wish ended, less the service itself. */
export function waitMsOf(user: UserRecord): DurationMs {
  return Math.max(0, user.endedAtMs - user.firstAtMs - user.serviceMs);
}

export function reportOf(plan: DemoPlan, measures: RunMeasures): PolicyReport {
  const { users } = measures;
  const byClass: Record<string, ClassReport> = {};
  for (const [index, one] of plan.classes.entries()) {
    byClass[one.name] = classReport(users.filter((user) => user.classIndex === index));
  }
  const recovery = recoveryOf(plan, users);
  const recoveryMs = recovery.kind === 'recovered' ? recovery.afterMs : recovery.observedMs;
  return {
    users: users.length,
    offered: users.reduce((sum, user) => sum + user.attempts, 0),
    ...countEnds(users),
    untypedErrors: measures.untypedErrors,
    goodputRatio: round(goodWorkMs(plan, users) / measures.capacityWorkMs, 4),
    recoverySeconds: round(recoveryMs / 1_000, 2),
    peakRssBytes: measures.peakRssBytes,
    peakQueued: Math.max(0, measures.peakOutstanding - plan.nodes.length),
    byClass,
    embedding: measures.embedding,
    consenting: consentingReport(plan, users),
    estimates: estimateReport(plan, users),
    stalls: measures.stalls,
    missedCritical: missedOf(plan, users),
  };
}

function missedOf(plan: DemoPlan, users: readonly UserRecord[]): MissedUser[] {
  const critical = plan.classes.findIndex((one) => one.name === 'critical');
  return users
    .filter((user) => user.classIndex === critical && !isAttained(user))
    .slice(0, MISSED_SHOWN)
    .map(({ end, deadlineMs, trail }) => ({ end, deadlineMs, trail }));
}

function lowInSpike(plan: DemoPlan, users: readonly UserRecord[]): UserRecord[] {
  const low = plan.classes.findIndex((one) => one.name === 'low');
  return users.filter(
    ({ classIndex, firstAtMs }) =>
      classIndex === low && firstAtMs >= spikeStartMs(plan) && firstAtMs < spikeEndMs(plan),
  );
}

function consentingReport(plan: DemoPlan, users: readonly UserRecord[]): ConsentingReport {
  const consenting = lowInSpike(plan, users).filter((user) => user.consents);
  const useful = consenting.filter(isAttained);
  const byAnswer: Record<string, number> = {};
  for (const { lesser } of useful) {
    const name = lesser === '' ? 'whole' : lesser;
    byAnswer[name] = (byAnswer[name] ?? 0) + 1;
  }
  return {
    users: consenting.length,
    useful: share(useful.length, consenting.length),
    byAnswer,
    unmarked: users.filter((user) => user.isUnmarked).length,
  };
}

function estimateReport(plan: DemoPlan, users: readonly UserRecord[]): EstimateReport {
  const others = lowInSpike(plan, users).filter((user) => !user.consents);
  const told = others.flatMap((user) => (user.told === undefined ? [] : [user.told]));
  const judged = told.filter((one) => one.cameBack);
  const cameTrue = judged.filter(({ tookMs, waitMs }) => tookMs >= 0 && tookMs <= 2 * waitMs);
  return {
    refusedUsers: others.filter((user) => user.end === 'refused').length,
    toldNever: others.filter((user) => user.end === 'refused' && user.told === undefined).length,
    judged: judged.length,
    cameTrue: share(cameTrue.length, judged.length),
  };
}

function share(part: number, all: number): Ratio {
  return all === 0 ? 0 : round(part / all, 4);
}

export function recoveryOf(plan: DemoPlan, users: readonly UserRecord[]): Recovery {
  const normal = plan.classes.findIndex((one) => one.name === 'normal');
  const samples: WaitSample[] = users
    .filter((user) => user.classIndex === normal)
    .map((user) => ({ cameAtMs: user.firstAtMs, waitMs: waitMsOf(user) }));
  return findRecovery({
    samples,
    spikeStartMs: spikeStartMs(plan),
    spikeEndMs: spikeEndMs(plan),
    untilMs: lastArrivalMs(plan),
    deadlineMs: plan.classes[normal]?.deadlineMs ?? 0,
  });
}

function classReport(users: readonly UserRecord[]): ClassReport {
  const waits = Float64Array.from(users, waitMsOf).sort();
  const attained = users.reduce((sum, user) => sum + (isAttained(user) ? 1 : 0), 0);
  return {
    users: users.length,
    ...countEnds(users),
    attained: users.length === 0 ? 0 : round(attained / users.length, 5),
    waitMs: {
      p50: round(percentileOfSorted(waits, 0.5), 1),
      p95: round(percentileOfSorted(waits, 0.95), 1),
      p99: round(percentileOfSorted(waits, 0.99), 1),
    },
  };
}

function countEnds(users: readonly UserRecord[]): Record<UserEnd, number> {
  const counts = { served: 0, refused: 0, failed: 0, cancelled: 0 };
  for (const user of users) counts[user.end] += 1;
  return counts;
}

/** Work completed within its deadline, from the first attempt, by completions inside the spike. */
function goodWorkMs(plan: DemoPlan, users: readonly UserRecord[]): DurationMs {
  let sum = 0;
  for (const user of users) {
    const inSpike = user.endedAtMs >= spikeStartMs(plan) && user.endedAtMs < spikeEndMs(plan);
    if (inSpike && isAttained(user)) sum += user.workMs;
  }
  return sum;
}

function round(value: number, digits: number): number {
  const scale = 10 ** digits;
  return Math.round(value * scale) / scale;
}

export interface Bound {
  readonly name: string;
  readonly rule: string;
  readonly value: string;
  readonly holds: boolean;
}

/** What Spillway's side has to hold for the demo to succeed. */
export function boundsOf(report: PolicyReport): Bound[] {
  const critical = report.byClass['critical']?.attained ?? 0;
  const rssMb = report.peakRssBytes / 1_000_000;
  return [
    bound('critical users served in time', '>= 99.9 %', [
      `${(critical * 100).toFixed(2)} %`,
      critical >= 0.999,
    ]),
    bound('useful work', '>= 90 % of capacity', [
      `${(report.goodputRatio * 100).toFixed(1)} %`,
      report.goodputRatio >= 0.9,
    ]),
    bound('low users who take less and get something in time', '>= 90 %', [
      `${(report.consenting.useful * 100).toFixed(1)} %`,
      report.consenting.useful >= 0.9,
    ]),
    bound('lesser answers that do not say so', '0', [
      String(report.consenting.unmarked),
      report.consenting.unmarked === 0,
    ]),
    bound('untyped errors', '0', [String(report.untypedErrors), report.untypedErrors === 0]),
    bound('recovery', '<= 10 s', [`${report.recoverySeconds.toFixed(1)} s`, report.recoverySeconds <= 10]),
    bound('peak memory', '<= 400 MB', [`${rssMb.toFixed(0)} MB`, report.peakRssBytes <= 400_000_000]),
  ];
}

function bound(name: string, rule: string, seen: readonly [value: string, holds: boolean]): Bound {
  return { name, rule, value: seen[0], holds: seen[1] };
}
