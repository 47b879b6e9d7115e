/** When nodes that are closed to a task open by themselves, whether that is soon enough, and what is in the way of each. */
import type { DurationUs, MonoUs } from '../../../base/units.ts';
import type { NodeRecord } from '../../health/node-record.ts';
import type { TaskRecord } from '../../queue/task-record.ts';
import { modelReturnsAt } from '../breakers.ts';
import { marginOver } from '../in-time.ts';
import type { Cure, IneligibleReason } from '../views.ts';
import {
  type Asking,
  type Candidate,
  isFree,
  isInTimeAfter,
  isInTimeAlone,
  isOpen,
  msUntil,
  ROOM,
} from './candidates.ts';

/** Of the hardware in whose time work is told. */
const REFERENCE_RATE = 1;
/** What ends by itself at a known time. */
export const LEASES: ReadonlySet<IneligibleReason> = new Set([
  'ejected',
  'suspect',
  'breaker-open',
  'refused-recently',
  'reading-full',
  'drain-too-long',
]);
/** What goes on keeping a task out, or from being looked at, when leases end. */
const KEEPS_OUT: ReadonlySet<IneligibleReason> = new Set([
  'cordoned',
  'draining',
  'no-room',
  'half-open-busy',
  'slow-start',
  'bulkhead',
]);
const FOREVER = Number.POSITIVE_INFINITY;

type MarksEnd = Extract<Cure, { kind: 'marks-end' }>;

interface Opening {
  readonly node: NodeRecord;
  readonly at: MonoUs;
}

/**
 * The end of what closes a node that has not failed the task and would do it in time: the one that the fewest reasons close;
 * of those, whose reasons end first. `otherwise` where there is none.
 */
export function opens(
  asking: Asking,
  candidates: readonly Candidate[],
  otherwise: 'node-joins' | 'none',
): Cure {
  const { now } = asking;
  let best: Extract<Cure, { kind: 'marks-end' }> | undefined;
  for (const candidate of candidates) {
    const { node, reasons } = candidate;
    if (isOpen(candidate) || reasons.includes('tried-before')) continue;
    const opensAt = opensInTimeAt(asking, candidate, candidates);
    if (opensAt === undefined) continue;
    const closing = closingOf(asking, candidate, opensAt);
    const byHand = closing.some((reason) => reason === 'cordoned' || reason === 'draining');
    const inMs = msUntil(opensAt, now) as number;
    const cure = { kind: 'marks-end', nodeId: node.spec.id, reasons: closing, byHand, inMs } as const;
    if (best === undefined || isSooner(cure, best)) best = cure;
  }
  if (best !== undefined) return best;
  return { kind: otherwise === 'node-joins' && isInTimeOnReference(asking) ? otherwise : 'none' };
}

function isSooner(a: MarksEnd, b: MarksEnd): boolean {
  if (a.byHand !== b.byHand) return b.byHand;
  return a.reasons.length === b.reasons.length ? a.inMs < b.inMs : a.reasons.length < b.reasons.length;
}

/** Whether a node of the reference speed that joined now would do it in time. */
function isInTimeOnReference({ state, lane, task, now }: Asking): boolean {
  const neededUs: DurationUs = task.deadlineWorkUs / REFERENCE_RATE;
  return now + neededUs * marginOver(state, lane, { task, bestUs: neededUs }) <= task.deadlineAt;
}

/** When the node opens by itself, or by news where that would be too late; undefined where it is too late anyway. */
export function opensInTimeAt(
  asking: Asking,
  { node, reasons }: Candidate,
  candidates: readonly Candidate[],
): MonoUs | undefined {
  const { task, now } = asking;
  const inTimeAfter = (ending: readonly IneligibleReason[]): MonoUs | undefined => {
    const at = Math.max(now, ...ending.map((reason) => endOf(reason, node, task)));
    return isInTimeAlone(asking, node, at) && isKeptUntil(asking, candidates, { node, at }) ? at : undefined;
  };
  return inTimeAfter(reasons) ?? inTimeAfter(reasons.filter((reason) => !isEndedByNews(reason, node, now)));
}

/**
 * Whether it is not given up before the node opens: who is looked at is ended once no node that is open by then would do it in
 * time. It is looked at again and again while there is room, and when a node gets some by the end of a lease.
 */
function isKeptUntil(asking: Asking, candidates: readonly Candidate[], opening: Opening): boolean {
  const { now } = asking;
  const { at } = opening;
  const open = candidates.filter(isOpen).map(({ node }) => node);
  const isGivenUp = (lookAt: MonoUs): boolean => !open.some((node) => isInTimeAlone(asking, node, lookAt));
  const room = candidates.filter((each) => isOpen(each) && isFree(each)).map(({ node }) => node);
  const isLookedAt = room.length > 0 && nextLookAt(asking) <= at && !isTakenByOthers(asking, room);
  if (isLookedAt && isGivenUp(at)) return false;
  if (at === now) return true;
  for (const look of looksOf(asking, candidates)) {
    if (look.at > at || (look.at === at && !isBefore(look.node, opening))) break;
    open.push(look.node);
    if (isGivenUp(look.at)) return false;
  }
  return true;
}

/**
 * Whether others of its lane may take all the room before it is looked at. Where lanes are laid anew all are asked, and until then
 * none of them was. O(flows of the lane).
 */
function isTakenByOthers(asking: Asking, room: readonly NodeRecord[]): boolean {
  const { state, lane, task, now } = asking;
  if (!state.fleet.lanesAreStale) return false;
  let others = 0;
  for (const { flows } of lane.classes) {
    for (const laneFlow of flows) {
      const head = laneFlow.head();
      if (head === null || head === task) continue;
      if (room.some((node) => isInTimeAlone({ ...asking, task: head }, node, now))) others += laneFlow.tasks;
    }
  }
  return others >= room.reduce((sum, node) => sum + node.slotsMax(state.config) - node.running.length, 0);
}

/** Timers that end together fire in the order of the nodes, and before anybody's hand. */
function isBefore(node: NodeRecord, opening: Opening): boolean {
  return node.order < opening.node.order || opening.node.cordoned || opening.node.draining;
}

/** When the lane is looked at next while it has room, as far as that is known. */
function nextLookAt({ state, lane }: Asking): MonoUs {
  const relayAt = state.fleet.lanesAreStale ? state.relayAt : FOREVER;
  return state.heldLanes.has(lane) ? Math.min(relayAt, state.heldRecheckAt) : relayAt;
}

/** The ends of leases, in order, that give a node room for it without anybody's doing. */
function looksOf({ task, now }: Asking, candidates: readonly Candidate[]): readonly Opening[] {
  return candidates
    .filter(({ reasons }) => reasons.some((reason) => LEASES.has(reason)))
    .filter(({ reasons }) => !reasons.some((reason) => KEEPS_OUT.has(reason)))
    .map(({ node, reasons }) => ({
      node,
      at: Math.max(now, ...reasons.map((reason) => endOf(reason, node, task))),
    }))
    .sort((a, b) => a.at - b.at || a.node.order - b.node.order);
}

/** Whether something that may happen at any time ends it: a sign of life, a reading, a success or another end of what runs. */
function isEndedByNews(reason: IneligibleReason, node: NodeRecord, now: MonoUs): boolean {
  if (reason === 'refused-recently') return hasPromisingTask(node, now);
  return reason === 'suspect' || reason === 'reading-full' || reason === 'drain-too-long';
}

/** Whether a success there would count, and none would show the node to be slower than it is taken for. */
function hasPromisingTask({ running, ejectedAt }: NodeRecord, now: MonoUs): boolean {
  return (
    running.some(({ decidedAt }) => decidedAt > ejectedAt) &&
    running.every(({ decidedAt, predictedUs }) => now - decidedAt <= predictedUs)
  );
}

/** What keeps it from the closed node: its marks, what runs there, and a share of the slots that are open then. */
function closingOf(
  asking: Asking,
  { node, reasons }: Candidate,
  opensAt: MonoUs,
): readonly IneligibleReason[] {
  const { state, task } = asking;
  const closing: IneligibleReason[] = reasons.filter(
    (reason) => reason !== 'too-slow' && reason !== 'bulkhead',
  );
  // Its trial keeps others out.
  if (closing.includes('breaker-open') && modelReturnsAt(node, task.model) <= asking.now)
    closing.push('half-open-busy');
  const slots = node.slotsMax(state.config);
  let running: readonly TaskRecord[] = node.running;
  if (closing.some((reason) => ROOM.has(reason))) running = [];
  else if (
    !isInTimeAfter(asking, node, { startAt: opensAt, inflight: Math.min(slots, running.length + 1) })
  ) {
    closing.push('too-slow');
    running = [];
  }
  if (node.group?.mayTakeOnceOpen(task, node, { slots, running }) === false) closing.push('bulkhead');
  return closing;
}

/** When what closes a node ends by itself; 0 where nothing but somebody's hand, or the end of what runs there, ends it. */
function endOf(reason: IneligibleReason, node: NodeRecord, task: TaskRecord): MonoUs {
  switch (reason) {
    case 'ejected':
      return node.ejectedUntil;
    case 'suspect':
      return node.suspectUntil;
    case 'breaker-open':
      return modelReturnsAt(node, task.model);
    case 'refused-recently':
      return node.refusedUntil;
    case 'reading-full':
      return node.readingUntil;
    case 'drain-too-long':
      return node.drainLongUntil;
    default:
      return 0;
  }
}
