/**
 * Whether a node may take a task, and does it in time: with which margin predictions are stretched, for whom, and how surely.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { bestServiceUs, isOfFirstClass, laneDrainUs } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { deadlineServiceUs } from '../placement/choose.ts';
import { isShutFor } from '../placement/eligibility.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { SchedulerState } from './state.ts';

/** Whether no earlier attempt, no breaker and no bulkhead keep the task off the node. */
export function mayRunOn(state: SchedulerState, task: TaskRecord, node: NodeRecord): boolean {
  if (task.triedNodes?.includes(node.spec.id) === true || node.group?.shutsOut(task) === true) return false;
  return !isShutFor(node, task.model, state.context);
}

/** Whether the node may take the task and does it surely in time. */
export function isSurelyFor(state: SchedulerState, task: TaskRecord, node: NodeRecord): boolean {
  return mayRunOn(state, task, node) && meetsDeadlineSafely(state, task, node);
}

/** What a task that waits can hope for: the time that the best open node takes, and by what that is stretched. */
export interface Outlook {
  readonly bestUs: DurationUs;
  readonly margin: number;
}

export function outlookOf(state: SchedulerState, lane: Lane, task: TaskRecord): Outlook {
  const bestUs = bestServiceUs(lane, task);
  return { bestUs, margin: marginOver(state, lane, { task, bestUs }) };
}

/** The best open node, free at once, must do it by the deadline with the margin that measured errors ask for. */
export function canStillBeDone(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  return canBeDoneAs(state, lane, task, outlookOf(state, lane, task));
}

/** The same where the outlook is known. */
export function canBeDoneAs(
  state: SchedulerState,
  lane: Lane,
  task: TaskRecord,
  { bestUs, margin }: Outlook,
): boolean {
  if (state.now + bestUs * margin <= task.deadlineAt) return true;
  return task.prefix !== null && isKeptInTime(state, lane, { task, margin });
}

/** Whether a node that keeps much of the prompt would do the task in time, free at once. For where no other one would. */
export function isKeptInTime(
  state: SchedulerState,
  lane: Lane,
  { task, margin }: { readonly task: TaskRecord; readonly margin: number },
): boolean {
  const { context, now } = state;
  for (const { owner } of context.prefixes.longest(task.prefix?.blocks ?? [])) {
    const isOpen = owner.seats.some((seat) => seat.isIndexed && lane.pools.includes(seat.pool));
    if (!isOpen || !mayRunOn(state, task, owner)) continue;
    if (now + deadlineServiceUs(owner, task, context) * margin <= task.deadlineAt) return true;
  }
  return false;
}

/**
 * A margin refuses work that may miss. To the first class a refusal is a miss for certain: where the margin takes more than
 * half of the time that the task had at its arrival, which is a size thought too large more often than a deadline that is
 * too short, it gives way, down to the bare prediction.
 */
export function marginFor(state: SchedulerState, lane: Lane, task: TaskRecord): number {
  if (!isOfFirstClass(task, state.config)) return crowdedMargin(state, lane, task);
  return marginOver(state, lane, { task, bestUs: bestServiceUs(lane, task) });
}

/** The same where the best open node takes `bestUs`. */
export function marginOver(
  state: SchedulerState,
  lane: Lane,
  { task, bestUs }: { readonly task: TaskRecord; readonly bestUs: DurationUs },
): number {
  const margin = crowdedMargin(state, lane, task);
  if (!isOfFirstClass(task, state.config)) return margin;
  const halfUs = (task.deadlineAt - task.submittedAt) / 2;
  return Math.max(1, Math.min(margin, halfUs / bestUs));
}

/**
 * Where all that waits takes longer than the task has left, not everybody can be in time, and who misses has had a node in place
 * of one who would not have: of the first class nine of ten shall be in time, of the others 98 of 100, as far as
 * `crowdedMarginMax` goes. Elsewhere a node would be idle rather than better used, and the usual margin holds. O(pools).
 */
function crowdedMargin(state: SchedulerState, lane: Lane, task: TaskRecord): number {
  if (state.now + laneDrainUs(lane) <= task.deadlineAt) return marginOf(state);
  const { marginMin, marginMax, crowdedMarginMax } = state.config.admission;
  const max = Math.max(marginMax, crowdedMarginMax);
  return isOfFirstClass(task, state.config)
    ? state.margin.usualWithin(marginMin, max)
    : state.margin.sureWithin(marginMin, max);
}

/** What no margin exceeds. */
export function greatestMargin({ config }: SchedulerState): number {
  return Math.max(1, config.admission.marginMax, config.admission.crowdedMarginMax);
}

/** Whether the node, free now, would do in time what the deadline bounds, with the margin that placement asks for. */
export function meetsWithMargin(
  state: SchedulerState,
  lane: Lane,
  { task, node }: { readonly task: TaskRecord; readonly node: NodeRecord },
): boolean {
  const neededUs = deadlineServiceUs(node, task, state.context) * marginFor(state, lane, task);
  return state.now + neededUs <= task.deadlineAt;
}

/** Whether the node would do in time what the deadline bounds, with the margin that measured errors ask for. */
export function meetsDeadline(
  state: SchedulerState,
  task: TaskRecord,
  node: NodeRecord,
  startAt: MonoUs,
): boolean {
  return startAt + deadlineServiceUs(node, task, state.context) * marginOf(state) <= task.deadlineAt;
}

/**
 * Whether a node that is not the task's best one would do it in time so surely that leaving the best one costs
 * nothing: the margin covers the 90th percentile of the errors, its power of 2.5 the 99.9th if they are lognormal.
 */
export function meetsDeadlineSafely(state: SchedulerState, task: TaskRecord, node: NodeRecord): boolean {
  const margin = marginOf(state);
  const safe = margin * margin * Math.sqrt(margin);
  return state.now + deadlineServiceUs(node, task, state.context) * safe <= task.deadlineAt;
}

export function marginOf(state: SchedulerState): number {
  return state.margin.usualWithin(state.config.admission.marginMin, state.config.admission.marginMax);
}
