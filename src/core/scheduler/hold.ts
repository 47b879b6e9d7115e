/**
 * What holds a waiting task, and what would let it go: one cause that is true at this instant, and its cure. True means that
 * if the cure happened, the task would be dispatched, or one that is ahead of it in order.
 *
 * The candidates are the nodes of its lane, told apart by what keeps each from it:
 *
 *   no candidate, or each closed by a mark      no-open-node          the end of one node's marks
 *   each open one has failed it                 tried-before          another node that opens
 *   no untried open one would be in time        no-node-in-time       the end of the marks of one that would
 *   the same, and it is too late for all        too-late              the same; else it is ended when it is looked at
 *   room, but behind a share                    bulkhead              the share
 *   no room                                     no-room               room on the node that would be done first
 *   room, and a busy node is done sooner        held-for-faster-node  room on that node
 *   room on nodes that would be too late        free-nodes-too-slow   room on a faster node
 *   room, and not looked at yet                 not-looked-at         the next look
 *   a node that its lane does not know yet      fleet-changed         the lanes laid anew
 *
 * O(nodes of the lane), for one task when somebody asks.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { deadlineServiceUs, swapUs } from '../placement/choose.ts';
import { ineligibleReasons } from '../placement/eligibility.ts';
import { completionUs } from '../placement/ranking.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { modelReturnsAt } from './breakers.ts';
import { canStillBeDone, marginFor, meetsWithMargin } from './dispatch.ts';
import type { SchedulerState } from './state.ts';
import type { Cure, GateView, IneligibleReason, NodeGetsRoom } from './views.ts';

export interface Hold {
  readonly gates: readonly GateView[];
  readonly cure: Cure;
}

/** A node of the lane, and what keeps the task from it. */
interface Candidate {
  readonly node: NodeRecord;
  readonly reasons: readonly IneligibleReason[];
}

const MARKS: ReadonlySet<IneligibleReason> = new Set([
  'cordoned',
  'draining',
  'ejected',
  'suspect',
  'breaker-open',
]);
/** What no time and no operator changes. */
const UNFIT: ReadonlySet<IneligibleReason> = new Set([
  'model-not-offered',
  'context-too-long',
  'capability-missing',
  'lora-missing',
  'pixels-too-many',
  'embedding-size',
  'zone',
]);
const ROOM: ReadonlySet<IneligibleReason> = new Set([
  'no-room',
  'drain-too-long',
  'reading-full',
  'refused-recently',
  'half-open-busy',
  'slow-start',
]);

export function holdOf(state: SchedulerState, lane: Lane, task: TaskRecord, now: MonoUs): Hold {
  const asking: Asking = { state, lane, task, now };
  const candidates = candidatesOf(asking);
  const open = candidates.filter(({ reasons }) => !reasons.some((reason) => MARKS.has(reason)));
  if (open.length === 0) return noOpenNode(asking, candidates);
  const untried = open.filter(({ reasons }) => !reasons.includes('tried-before'));
  if (untried.length === 0) return triedBefore(asking, candidates);
  const timely = untried.filter(({ node }) => isInTimeAlone(asking, node));
  if (timely.length === 0) return noNodeInTime(asking, candidates);
  const free = timely.filter(({ reasons }) => !reasons.some((each) => ROOM.has(each) || each === 'bulkhead'));
  if (free.length > 0) return heldWithRoom(asking, free, timely);
  const isShut = ({ reasons }: Candidate): boolean => reasons.includes('bulkhead');
  const hasShutRoom = timely.some((each) => isShut(each) && !each.reasons.some((reason) => ROOM.has(reason)));
  return hasShutRoom || timely.every(isShut)
    ? behindShare(asking, timely.filter(isShut))
    : noRoom(asking, timely);
}

interface Asking {
  readonly state: SchedulerState;
  readonly lane: Lane;
  readonly task: TaskRecord;
  readonly now: MonoUs;
}

/** Nodes of the lane; while lanes are stale, all that the next ones would know. */
function candidatesOf({ state, lane, task, now }: Asking): readonly Candidate[] {
  const candidates: Candidate[] = [];
  const consider = (node: NodeRecord): void => {
    const reasons = ineligibleReasons(node, task, now, state.config);
    if (!reasons.some((reason) => UNFIT.has(reason))) candidates.push({ node, reasons });
  };
  if (state.fleet.lanesAreStale) for (const node of state.fleet.nodes.values()) consider(node);
  else for (const { seats } of lane.pools) for (const { node } of seats) consider(node);
  return candidates;
}

/** Whether the node would do it in time from then on with nothing beside it, with the margin that placement asks for. */
function isInTimeAlone({ state, lane, task, now }: Asking, node: NodeRecord, startAt: MonoUs = now): boolean {
  const aloneUs = swapUs(node, task, state.config) + task.deadlineWorkUs / node.rateOf(task.spec.model, 1);
  const neededUs = Math.min(aloneUs, deadlineServiceUs(node, task, state.context));
  return startAt + neededUs * marginFor(state, lane, task) <= task.deadlineAt;
}

function gate({ task, now }: Asking, name: string, detail: string): GateView {
  return { gate: name, sinceMs: Math.round((now - task.submittedAt) / 1_000), detail };
}

function noOpenNode(asking: Asking, candidates: readonly Candidate[]): Hold {
  const detail =
    candidates.length === 0
      ? 'No node that could serve it is registered any more'
      : 'Every node that could serve it is closed by a mark';
  return { gates: [gate(asking, 'no-open-node', detail)], cure: opens(asking, candidates, 'node-joins') };
}

function triedBefore(asking: Asking, candidates: readonly Candidate[]): Hold {
  const detail = 'Every open node that could serve it has failed it already';
  return { gates: [gate(asking, 'tried-before', detail)], cure: opens(asking, candidates, 'node-joins') };
}

function noNodeInTime(asking: Asking, candidates: readonly Candidate[]): Hold {
  const { state, lane, task } = asking;
  const cure = opens(asking, candidates, 'none');
  if (canStillBeDone(state, lane, task)) {
    const detail = 'The open nodes that have not failed it yet would most likely miss its deadline';
    return { gates: [gate(asking, 'no-node-in-time', detail)], cure };
  }
  const detail = 'No open node would do it by its deadline any more; it is ended when it is looked at next';
  return { gates: [gate(asking, 'too-late', detail)], cure };
}

/**
 * The end of what closes a node that has not failed the task and would do it in time: the one that the fewest reasons close;
 * of those, whose reasons end first. `otherwise` where there is none.
 */
function opens(asking: Asking, candidates: readonly Candidate[], otherwise: 'node-joins' | 'none'): Cure {
  const { task, now } = asking;
  let best: Extract<Cure, { kind: 'marks-end' }> | undefined;
  for (const { node, reasons } of candidates) {
    const isMarked = reasons.some((reason) => MARKS.has(reason));
    if (!isMarked || reasons.includes('tried-before')) continue;
    const closing = reasons.filter((reason) => reason !== 'too-slow');
    const byHand = closing.some((reason) => reason === 'cordoned' || reason === 'draining');
    const opensAt = Math.max(now, ...closing.map((reason) => endOf(reason, node, task)));
    if (!isInTimeAlone(asking, node, opensAt)) continue;
    const inMs = msUntil(opensAt, now) as number;
    const cure = { kind: 'marks-end', nodeId: node.spec.id, reasons: closing, byHand, inMs } as const;
    if (best === undefined || isSooner(cure, best)) best = cure;
  }
  return best ?? { kind: otherwise };
}

type MarksEnd = Extract<Cure, { kind: 'marks-end' }>;

function isSooner(a: MarksEnd, b: MarksEnd): boolean {
  if (a.byHand !== b.byHand) return b.byHand;
  return a.reasons.length === b.reasons.length ? a.inMs < b.inMs : a.reasons.length < b.reasons.length;
}

const FOREVER = Number.POSITIVE_INFINITY;

/** When what closes a node ends by itself; 0 where nothing but somebody's hand, or the end of what runs there, ends it. */
function endOf(reason: IneligibleReason, node: NodeRecord, task: TaskRecord): MonoUs {
  switch (reason) {
    case 'ejected':
      return node.ejectedUntil;
    case 'suspect':
      return node.suspectUntil;
    case 'breaker-open':
      return modelReturnsAt(node, task.spec.model);
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

/** A share keeps it from nodes; where the best of them has no room either, that is needed too. */
function behindShare(asking: Asking, shut: readonly Candidate[]): Hold {
  const { task } = asking;
  const gates: GateView[] = [];
  const groups: string[] = [];
  for (const { node } of shut) {
    const { group } = node;
    if (group === null || groups.includes(group.config.name)) continue;
    groups.push(group.config.name);
    gates.push(gate(asking, 'bulkhead', group.explain(task) ?? `Group ${group.config.name}`));
  }
  const best = soonest(asking, shut);
  const isFull = best.reasons.some((reason) => ROOM.has(reason));
  return { gates, cure: { kind: 'share-lifted', groups, room: isFull ? getsRoom(asking, best) : undefined } };
}

function noRoom(asking: Asking, untried: readonly Candidate[]): Hold {
  const { lane, task } = asking;
  const share = (lane.shareOf(task.flow) * 100).toFixed(1);
  const unshut = untried.filter(({ reasons }) => !reasons.includes('bulkhead'));
  const best = soonest(asking, unshut.length > 0 ? unshut : untried);
  const detail = `All nodes are busy; its flow gets ${share} % of what becomes free`;
  const room = getsRoom(asking, best);
  // A slot that becomes free may be kept for somebody's minimum.
  const { group } = best.node;
  const isKept = group?.shares.some(({ slotsMin }) => slotsMin > 0) === true;
  const cure: Cure = isKept ? { kind: 'share-lifted', groups: [group.config.name], room } : room;
  return { gates: [gate(asking, 'no-room', detail)], cure };
}

/** A node has room and does not get it: what is waited for. */
function heldWithRoom(asking: Asking, free: readonly Candidate[], timely: readonly Candidate[]): Hold {
  const { state, lane, task, now } = asking;
  const inMs = msUntil(state.heldRecheckAt, now);
  const again = inMs === undefined ? 'with the next event' : `within ${inMs} ms`;
  const best = soonest(asking, free);
  const busy = timely.filter(({ reasons }) => reasons.some((reason) => ROOM.has(reason)));
  const awaited = busy.length === 0 ? undefined : soonest(asking, busy);
  const nearTie = 1 - state.config.placement.nearTieRatio;
  const isSooner = awaited !== undefined && doneUs(asking, awaited) < doneUs(asking, best) * nearTie;
  if (awaited !== undefined && isSooner) {
    const detail = `A node is idle, but ${awaited.node.spec.id} is expected to finish it sooner; decided anew ${again}`;
    return { gates: [gate(asking, 'held-for-faster-node', detail)], cure: getsRoom(asking, awaited) };
  }
  if (!free.some(({ node }) => meetsWithMargin(state, lane, { task, node }))) {
    const detail = 'The nodes with room would most likely miss its deadline beside what they run';
    return { gates: [gate(asking, 'free-nodes-too-slow', detail)], cure: getsRoom(asking, awaited ?? best) };
  }
  if (state.fleet.lanesAreStale) {
    const relayMs = msUntil(state.relayAt, now);
    const detail = `Nodes joined or left, and who waits is told of them within ${relayMs} ms`;
    return { gates: [gate(asking, 'fleet-changed', detail)], cure: { kind: 'next-look', inMs: relayMs } };
  }
  const detail = `A node has room, and those ahead of it wait for others; decided anew ${again}`;
  return { gates: [gate(asking, 'not-looked-at', detail)], cure: { kind: 'next-look', inMs } };
}

function soonest(asking: Asking, candidates: readonly Candidate[]): Candidate {
  let best = candidates[0] as Candidate;
  for (const candidate of candidates) {
    if (doneUs(asking, candidate) < doneUs(asking, best)) best = candidate;
  }
  return best;
}

/** As placement reckons it, which takes the task's own reservation back first. */
function doneUs({ state, task }: Asking, { node }: Candidate): DurationUs {
  const ownUs = task.reservedNode === node ? task.reservedUs : 0;
  return completionUs(node, task, state.context) - ownUs;
}

function getsRoom({ now }: Asking, { node, reasons }: Candidate): NodeGetsRoom {
  const why = reasons.filter((reason) => ROOM.has(reason));
  const until = Math.max(node.roomAt(now), node.readingUntil, node.drainLongUntil, node.refusedUntil);
  return { kind: 'node-gets-room', nodeId: node.spec.id, reasons: why, inMs: msUntil(until, now) };
}

/** Undefined where it does not come by itself. */
function msUntil(at: MonoUs, now: MonoUs): number | undefined {
  const us: DurationUs = Math.max(0, at - now);
  return us === FOREVER ? undefined : Math.round(us / 1_000);
}

/** The cure in a sentence. */
export function cureText(cure: Cure): string {
  const when = 'inMs' in cure && cure.inMs !== undefined ? `, in about ${cure.inMs} ms` : '';
  switch (cure.kind) {
    case 'node-gets-room':
      return `Room on ${cure.nodeId} (${cure.reasons.join(', ')})${when}: then it runs there, or one ahead of it.`;
    case 'marks-end':
      return `The end of what closes ${cure.nodeId} (${cure.reasons.join(', ')})${cure.byHand ? ', by hand' : ''}${cure.inMs > 0 ? when : ''}.`;
    case 'share-lifted':
      return `A slot within the shares of ${cure.groups.join(', ')}${cure.room === undefined ? '' : `, and room on ${cure.room.nodeId} (${cure.room.reasons.join(', ')})`}.`;
    case 'next-look':
      return `The next look at the queue${when}.`;
    case 'node-joins':
      return 'A node of its model that joins.';
    case 'none':
      return 'Nothing: a longer deadline, or a faster node, would have.';
  }
}
