/**
 * Who might take a waiting task, what keeps each of them from it, and whether it would be done there in time. One asks at an
 * instant, now or later, as if nothing happened until then.
 */
import type { DurationUs, MonoUs } from '../../../base/units.ts';
import { bestServiceUs } from '../../admission/feasibility.ts';
import type { NodeRecord } from '../../health/node-record.ts';
import { type ChooseContext, deadlineLeftUs, deadlineServiceUs, swapUs } from '../../placement/choose.ts';
import { ineligibleReasons } from '../../placement/eligibility.ts';
import { completionUs } from '../../placement/ranking.ts';
import type { Lane } from '../../queue/lane.ts';
import type { TaskRecord } from '../../queue/task-record.ts';
import { marginFor, marginOver } from '../in-time.ts';
import type { SchedulerState } from '../state.ts';
import type { IneligibleReason } from '../views.ts';

/** A node of the lane, and what keeps the task from it. */
export interface Candidate {
  readonly node: NodeRecord;
  readonly reasons: readonly IneligibleReason[];
}

interface Waiting {
  readonly state: SchedulerState;
  readonly lane: Lane;
  readonly task: TaskRecord;
}

export interface Asking extends Waiting {
  readonly now: MonoUs;
  readonly context: ChooseContext;
}

const MARKS: ReadonlySet<IneligibleReason> = new Set([
  'cordoned',
  'draining',
  'ejected',
  'suspect',
  'breaker-open',
]);
/** What no time and no operator changes. */
export const UNFIT: ReadonlySet<IneligibleReason> = new Set([
  'model-not-offered',
  'context-too-long',
  'capability-missing',
  'lora-missing',
  'pixels-too-many',
  'embedding-size',
  'zone',
]);
export const ROOM: ReadonlySet<IneligibleReason> = new Set([
  'no-room',
  'drain-too-long',
  'reading-full',
  'refused-recently',
  'half-open-busy',
  'slow-start',
]);

export function isOpen({ reasons }: Candidate): boolean {
  return !reasons.some((reason) => MARKS.has(reason));
}

export function isFree({ reasons }: Candidate): boolean {
  return !reasons.some((reason) => ROOM.has(reason) || reason === 'bulkhead');
}

/** What will be true at that instant, if nothing happens until then. */
export function askingAt(now: MonoUs, { state, lane, task }: Waiting): Asking {
  return { state, lane, task, now, context: { ...state.context, now } };
}

/** Nodes of the lane; while lanes are stale, all that the next ones would know. */
export function candidatesOf({ state, lane, task, now }: Asking): readonly Candidate[] {
  const candidates: Candidate[] = [];
  const consider = (node: NodeRecord): void => {
    const reasons = ineligibleReasons(node, task, now, state.config);
    if (!reasons.some((reason) => UNFIT.has(reason))) candidates.push({ node, reasons });
  };
  if (state.fleet.lanesAreStale) for (const node of state.fleet.nodes.values()) consider(node);
  else for (const { seats } of lane.pools) for (const { node } of seats) consider(node);
  return candidates;
}

/** Whether the node, open and idle, would do it in time from then on, with the margin that placement asks for then. */
export function isInTimeAlone(asking: Asking, node: NodeRecord, startAt: MonoUs): boolean {
  return isInTimeAfter(asking, node, { startAt, inflight: 1 });
}

/** The same as one of so many tasks. What is planned of a closed node is of the time before. */
export function isInTimeAfter(
  { state, lane, task, context }: Asking,
  node: NodeRecord,
  { startAt, inflight }: { readonly startAt: MonoUs; readonly inflight: number },
): boolean {
  const leftUs = deadlineLeftUs(node, task, context);
  const neededUs = swapUs(node, task, state.config) + leftUs / node.deadlineRateOf(task.spec, inflight);
  const bestUs = Math.min(bestServiceUs(lane, task), task.deadlineWorkUs / node.deadlineRateOf(task.spec, 1));
  return startAt + neededUs * marginOver(state, lane, { task, bestUs }) <= task.deadlineAt;
}

/** Whether the node with room would do it in time beside what it runs, with the margin that placement asks for. */
export function isInTimeBeside({ state, lane, task, now, context }: Asking, { node }: Candidate): boolean {
  return now + deadlineServiceUs(node, task, context) * marginFor(state, lane, task) <= task.deadlineAt;
}

export function soonest(asking: Asking, candidates: readonly Candidate[]): Candidate {
  let best = candidates[0] as Candidate;
  for (const candidate of candidates) {
    if (doneUs(asking, candidate) < doneUs(asking, best)) best = candidate;
  }
  return best;
}

/** As placement reckons it, which takes the task's own reservation back first. */
export function doneUs({ task, context }: Asking, { node }: Candidate): DurationUs {
  const ownUs = task.reservedNode === node ? task.reservedUs : 0;
  return completionUs(node, task, context) - ownUs;
}

/** Undefined where it does not come by itself. */
export function msUntil(at: MonoUs, now: MonoUs): number | undefined {
  const us: DurationUs = Math.max(0, at - now);
  return us === Number.POSITIVE_INFINITY ? undefined : Math.round(us / 1_000);
}
