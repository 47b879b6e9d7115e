/**
 * Requests that waited past their deadline in a recorded run, and what was served meanwhile: the share of the work that nodes were
 * given for the same model while one waited, by whose it was.
 *
 *   before    came before it: an overload, and no starvation
 *   class C   came later, of another class
 *   tenant T  came later, of another tenant of its class
 *   itself    came later, of its own tenant and class
 *   nobody    nothing was given out for the model while it waited
 *
 * Runs of experiments, which are known by whose they are and when they were under way, are joined with the requests of their time.
 * What it cannot tell: a model whose nodes can do unlike things has several queues, which count as one here.
 */
import type { DurationUs, MonoUs, Ratio, RefUs, WallMs } from '../../base/units.ts';
import type { RecordedRequest, RecordedRun } from './recorded-run.ts';

/** Requests whose wait is taken apart; of more, every second, third or so. Each costs the arrivals of its wait. */
const EXAMINED_MAX = 1_000;

export interface Cause {
  readonly cause: string;
  /** Mean over those who missed. */
  readonly share: Ratio;
}

export interface MissedWaiting {
  readonly requests: number;
  readonly missed: number;
  /** All of their waits together. */
  readonly waitedUs: DurationUs;
  /** Greatest first. */
  readonly causes: readonly Cause[];
}

export interface ClassRow extends MissedWaiting {
  readonly className: string;
}

/** A run of an experiment, as its own records tell. */
export interface ExperimentRun {
  readonly id: string;
  readonly submittedMs: WallMs;
  /** Absent: none was set. */
  readonly deadlineMs?: WallMs;
  /** Absent: not finished. */
  readonly finishedMs?: WallMs;
  /** Whose requests are the run's; absent is anybody's. */
  readonly tenant?: string;
  readonly className?: string;
  readonly model?: string;
}

export interface RunRow extends MissedWaiting {
  readonly run: ExperimentRun;
  /** Time after its deadline at which it finished, or at the end of the journal; absent without a deadline. */
  readonly lateMs?: number;
}

export interface Overtaken {
  /** Those that had requests, in order of their first one: a configuration may change classes. */
  readonly classes: readonly ClassRow[];
  readonly runs: readonly RunRow[];
}

export function overtaken(run: RecordedRun, experiments: readonly ExperimentRun[] = []): Overtaken {
  const byModel = Map.groupBy(run.requests, ({ task }) => task.model);
  const rowOf = (requests: readonly RecordedRequest[]): MissedWaiting => missedWaiting(requests, byModel);
  return {
    classes: [...Map.groupBy(run.requests, ({ task }) => task.className)].map(([className, requests]) => ({
      className,
      ...rowOf(requests),
    })),
    runs: experiments.map((experiment) => ({
      run: experiment,
      ...lateness(experiment, run),
      ...rowOf(run.requests.filter((request) => isOf(experiment, request, run))),
    })),
  };
}

function missedWaiting(
  requests: readonly RecordedRequest[],
  byModel: ReadonlyMap<string, readonly RecordedRequest[]>,
): MissedWaiting {
  const missed = requests.filter(hasMissedWaiting);
  const step = Math.max(1, Math.ceil(missed.length / EXAMINED_MAX));
  const examined = missed.filter((_, index) => index % step === 0);
  const sums = new Map<string, number>();
  for (const request of examined) {
    const others = byModel.get(request.task.model) ?? [];
    for (const [cause, share] of causesOf(request, others)) sums.set(cause, (sums.get(cause) ?? 0) + share);
  }
  return {
    requests: requests.length,
    missed: missed.length,
    waitedUs: missed.reduce((sum, request) => sum + waitedUntil(request) - request.at, 0),
    causes: [...sums]
      .map(([cause, sum]) => ({ cause, share: sum / examined.length }))
      .toSorted((a, b) => b.share - a.share),
  };
}

/**
 * Left the queue without a node since it could not be in time any more, or got one too late for what it then took. A refusal is no
 * wait, and who lost its place at a bound or at shutdown did not miss by waiting.
 */
function hasMissedWaiting(request: RecordedRequest): boolean {
  const { task, at, reason, endedAt, assignedAt, firstByteAt } = request;
  if (assignedAt < 0) return reason === 'wait-expired';
  const doneAt = task.stream ? firstByteAt : endedAt;
  const isLate = doneAt < 0 ? endedAt > task.deadlineAt : doneAt > task.deadlineAt;
  const serviceUs = (doneAt < 0 ? endedAt : doneAt) - assignedAt;
  return isLate && at + serviceUs <= task.deadlineAt;
}

function waitedUntil({ assignedAt, endedAt }: RecordedRequest): MonoUs {
  return assignedAt < 0 ? endedAt : assignedAt;
}

/** Shares of the work that was given out while it waited; they add up to 1. `others` in order of arrival. */
function causesOf(request: RecordedRequest, others: readonly RecordedRequest[]): ReadonlyMap<string, Ratio> {
  const until = waitedUntil(request);
  const works = new Map<string, RefUs>();
  let all = 0;
  for (const other of others) {
    if (other.at > until) break;
    if (other === request || other.assignedAt <= request.at || other.assignedAt > until) continue;
    const cause = causeOf(request, other);
    all += other.task.workUs;
    works.set(cause, (works.get(cause) ?? 0) + other.task.workUs);
  }
  if (all === 0) return new Map([['nobody', 1]]);
  return new Map([...works].map(([cause, work]) => [cause, work / all]));
}

function causeOf({ task, at }: RecordedRequest, other: RecordedRequest): string {
  if (other.at <= at) return 'before';
  if (other.task.className !== task.className) return `class ${other.task.className}`;
  return other.task.tenant === task.tenant ? 'itself' : `tenant ${other.task.tenant}`;
}

function isOf(experiment: ExperimentRun, { task, at }: RecordedRequest, { wallMs }: RecordedRun): boolean {
  const { submittedMs, finishedMs, tenant, className, model } = experiment;
  const atMs = wallMs + at / 1_000;
  return (
    atMs >= submittedMs &&
    atMs <= (finishedMs ?? Number.POSITIVE_INFINITY) &&
    (tenant === undefined || tenant === task.tenant) &&
    (className === undefined || className === task.className) &&
    (model === undefined || model === task.model)
  );
}

function lateness(
  { deadlineMs, finishedMs }: ExperimentRun,
  { wallMs, spanUs }: RecordedRun,
): Pick<RunRow, 'lateMs'> {
  if (deadlineMs === undefined) return {};
  return { lateMs: Math.max(0, (finishedMs ?? wallMs + spanUs / 1_000) - deadlineMs) };
}
