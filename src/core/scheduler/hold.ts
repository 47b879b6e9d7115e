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
 * O(nodes and flows of the lane), for one task when somebody asks.
 */
import type { DurationMs, DurationUs, MonoUs } from '../../base/units.ts';
import { bestServiceUs } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import { type ChooseContext, deadlineLeftUs, deadlineServiceUs, swapUs } from '../placement/choose.ts';
import { ineligibleReasons } from '../placement/eligibility.ts';
import { completionUs } from '../placement/ranking.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { modelReturnsAt } from './breakers.ts';
import { canStillBeDone, marginFor, marginOver, meetsDeadlineSafely } from './in-time.ts';
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

/** Of the hardware in whose time work is told. */
const REFERENCE_RATE = 1;
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

/** What ends by itself at a known time. */
const LEASES: ReadonlySet<IneligibleReason> = new Set([
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

function isOpen({ reasons }: Candidate): boolean {
  return !reasons.some((reason) => MARKS.has(reason));
}

function isFree({ reasons }: Candidate): boolean {
  return !reasons.some((reason) => ROOM.has(reason) || reason === 'bulkhead');
}

export function holdOf(state: SchedulerState, lane: Lane, task: TaskRecord, now: MonoUs): Hold {
  const asking = askingAt(now, { state, lane, task });
  const candidates = candidatesOf(asking);
  const open = candidates.filter(isOpen);
  if (open.length === 0) return noOpenNode(asking, candidates);
  const untried = open.filter(({ reasons }) => !reasons.includes('tried-before'));
  if (untried.length === 0) return triedBefore(asking, candidates);
  const timely = untried.filter((each) => opensInTimeAt(asking, each, candidates) !== undefined);
  if (timely.length === 0) return noNodeInTime(asking, candidates);
  if (timely.some(isFree)) return heldWithRoom(asking, untried.filter(isFree), timely);
  const isShut = ({ reasons }: Candidate): boolean => reasons.includes('bulkhead');
  const hasShutRoom = timely.some((each) => isShut(each) && !each.reasons.some((reason) => ROOM.has(reason)));
  return hasShutRoom || timely.every(isShut)
    ? behindShare(asking, timely.filter(isShut))
    : noRoom(asking, timely, candidates);
}

interface Waiting {
  readonly state: SchedulerState;
  readonly lane: Lane;
  readonly task: TaskRecord;
}

interface Asking extends Waiting {
  readonly now: MonoUs;
  readonly context: ChooseContext;
}

/** What will be true at that instant, if nothing happens until then. */
function askingAt(now: MonoUs, { state, lane, task }: Waiting): Asking {
  return { state, lane, task, now, context: { ...state.context, now } };
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

/** Whether the node, open and idle, would do it in time from then on, with the margin that placement asks for then. */
function isInTimeAlone(asking: Asking, node: NodeRecord, startAt: MonoUs): boolean {
  return isInTimeAfter(asking, node, { startAt, inflight: 1 });
}

/** The same as one of so many tasks. What is planned of a closed node is of the time before. */
function isInTimeAfter(
  { state, lane, task, context }: Asking,
  node: NodeRecord,
  { startAt, inflight }: { readonly startAt: MonoUs; readonly inflight: number },
): boolean {
  const { model } = task.spec;
  const leftUs = deadlineLeftUs(node, task, context);
  const neededUs = swapUs(node, task, state.config) + leftUs / node.rateOf(model, inflight);
  const bestUs = Math.min(bestServiceUs(lane, task), task.deadlineWorkUs / node.rateOf(model, 1));
  return startAt + neededUs * marginOver(state, lane, { task, bestUs }) <= task.deadlineAt;
}

/** Whether the node with room would do it in time beside what it runs, with the margin that placement asks for. */
function isInTimeBeside({ state, lane, task, now, context }: Asking, { node }: Candidate): boolean {
  return now + deadlineServiceUs(node, task, context) * marginFor(state, lane, task) <= task.deadlineAt;
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

/** Whether a node of the reference speed that joined now would do it in time. */
function isInTimeOnReference({ state, lane, task, now }: Asking): boolean {
  const neededUs: DurationUs = task.deadlineWorkUs / REFERENCE_RATE;
  return now + neededUs * marginOver(state, lane, { task, bestUs: neededUs }) <= task.deadlineAt;
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

interface Opening {
  readonly node: NodeRecord;
  readonly at: MonoUs;
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

/** When the node opens by itself, or by news where that would be too late; undefined where it is too late anyway. */
function opensInTimeAt(
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
  if (closing.includes('breaker-open') && modelReturnsAt(node, task.spec.model) <= asking.now)
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

/** A share keeps it from nodes; where the best of them has no room either, or is too slow beside what it runs, that is needed too. */
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
  const room = getsRoom(asking, best);
  return { gates, cure: { kind: 'share-lifted', groups, room: room.reasons.length > 0 ? room : undefined } };
}

function noRoom(asking: Asking, untried: readonly Candidate[], candidates: readonly Candidate[]): Hold {
  const { lane, task } = asking;
  const share = (lane.shareOf(task.flow) * 100).toFixed(1);
  const unshut = untried.filter(({ reasons }) => !reasons.includes('bulkhead'));
  const best = soonest(asking, unshut.length > 0 ? unshut : untried);
  const detail = `All nodes are busy; its flow gets ${share} % of what becomes free`;
  const room = getsRoom(asking, best);
  const rival = opensSooner(asking, { best, inMs: room.inMs ?? 0 }, candidates);
  if (rival !== undefined)
    return { gates: [gate(asking, 'no-room', detail)], cure: opens(asking, [rival], 'none') };
  // A slot that becomes free may be kept for somebody's minimum, which grows when others of its group open meanwhile.
  const { group } = best.node;
  const grows = best.reasons.some((reason) => LEASES.has(reason)) && hasClosedNode(asking, group);
  const isKept =
    group?.shares.some(({ slotsMin, config }) => slotsMin > 0 || (grows && config.min > 0)) === true;
  const cure: Cure = isKept ? { kind: 'share-lifted', groups: [group.config.name], room } : room;
  return { gates: [gate(asking, 'no-room', detail)], cure };
}

function hasClosedNode({ state }: Asking, group: NodeGroup | null): boolean {
  for (const node of state.fleet.nodes.values())
    if (node.group === group && node.groupSlots === 0) return true;
  return false;
}

/** A closed node that opens before the best of the busy ones gets room by a lease, and is then waited for instead, if there is one. */
function opensSooner(
  asking: Asking,
  { best, inMs }: { readonly best: Candidate; readonly inMs: DurationMs },
  candidates: readonly Candidate[],
): Candidate | undefined {
  if (!best.reasons.some((reason) => LEASES.has(reason))) return undefined;
  const then = asking.now + inMs * 1_000;
  const rivals = candidates.filter((each) => {
    if (isOpen(each) || each.reasons.includes('tried-before')) return false;
    const at = opensInTimeAt(asking, each, candidates);
    return at !== undefined && at > asking.now && at <= then;
  });
  return awaitedIn(askingAt(then, asking), [best], rivals);
}

/** A node has room and does not get it: what is waited for. */
function heldWithRoom(asking: Asking, free: readonly Candidate[], timely: readonly Candidate[]): Hold {
  const { state, task, now } = asking;
  const inMs = msUntil(state.heldRecheckAt, now);
  const again = inMs === undefined ? 'with the next event' : `within ${inMs} ms`;
  const busy = timely.filter(
    ({ reasons }) => reasons.some((reason) => ROOM.has(reason)) && !reasons.includes('bulkhead'),
  );
  const lookAt = inMs === undefined ? now : Math.max(now, state.heldRecheckAt);
  // What keeps it now, or at the next look: a node that works is nearer then.
  const awaited = awaitedIn(asking, free, busy) ?? awaitedIn(askingAt(lookAt, asking), free, busy);
  if (awaited !== undefined) {
    const detail = `A node is idle, but ${awaited.node.spec.id} is expected to finish it sooner; decided anew ${again}`;
    return { gates: [gate(asking, 'held-for-faster-node', detail)], cure: getsRoom(asking, awaited) };
  }
  const best = soonest(asking, free);
  // In time as placement asks for, which gives way to the first class, or surely so.
  if (!free.some((each) => isInTimeBeside(asking, each) || meetsDeadlineSafely(state, task, each.node))) {
    const detail = 'The nodes with room would most likely miss its deadline beside what they run';
    const faster = busy.length > 0 ? soonest(asking, busy) : best;
    const cure: Cure =
      faster.node.running.length > 0 || busy.length > 0 ? getsRoom(asking, faster) : { kind: 'node-joins' };
    return { gates: [gate(asking, 'free-nodes-too-slow', detail)], cure };
  }
  if (state.fleet.lanesAreStale) {
    const relayMs = msUntil(state.relayAt, now);
    const detail = `Nodes joined or left, and who waits is told of them within ${relayMs} ms`;
    return { gates: [gate(asking, 'fleet-changed', detail)], cure: { kind: 'next-look', inMs: relayMs } };
  }
  const detail = `A node has room, and those ahead of it wait for others; decided anew ${again}`;
  return { gates: [gate(asking, 'not-looked-at', detail)], cure: { kind: 'next-look', inMs } };
}

/** The busy node that is expected to finish it sooner than each one with room, if there is one. */
function awaitedIn(
  asking: Asking,
  free: readonly Candidate[],
  busy: readonly Candidate[],
): Candidate | undefined {
  if (busy.length === 0) return undefined;
  const awaited = soonest(asking, busy);
  const tie = 1 - asking.state.config.placement.nearTieRatio;
  const first = soonest(asking, free);
  const inTime = isInTimeBeside(asking, first) ? [] : free.filter((each) => isInTimeBeside(asking, each));
  const offered = inTime.length === 0 ? first : soonest(asking, inTime);
  return doneUs(asking, awaited) < doneUs(asking, offered) * tie ? awaited : undefined;
}

function soonest(asking: Asking, candidates: readonly Candidate[]): Candidate {
  let best = candidates[0] as Candidate;
  for (const candidate of candidates) {
    if (doneUs(asking, candidate) < doneUs(asking, best)) best = candidate;
  }
  return best;
}

/** As placement reckons it, which takes the task's own reservation back first. */
function doneUs({ task, context }: Asking, { node }: Candidate): DurationUs {
  const ownUs = task.reservedNode === node ? task.reservedUs : 0;
  return completionUs(node, task, context) - ownUs;
}

function getsRoom(asking: Asking, candidate: Candidate): NodeGetsRoom {
  const { now } = asking;
  const { node, reasons } = candidate;
  const why = reasons.filter((reason) => ROOM.has(reason));
  // Of what runs there some has to end, though it has room.
  if (why.length === 0 && !isInTimeBeside(asking, candidate)) why.push('too-slow');
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
