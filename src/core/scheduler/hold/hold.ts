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
import type { DurationMs, MonoUs } from '../../../base/units.ts';
import type { NodeGroup } from '../../placement/bulkhead.ts';
import type { Lane } from '../../queue/lane.ts';
import type { TaskRecord } from '../../queue/task-record.ts';
import { canStillBeDone, meetsDeadlineSafely } from '../in-time.ts';
import type { SchedulerState } from '../state.ts';
import type { Cure, GateView, NodeGetsRoom } from '../views.ts';
import {
  type Asking,
  askingAt,
  type Candidate,
  candidatesOf,
  doneUs,
  isFree,
  isInTimeBeside,
  isOpen,
  msUntil,
  ROOM,
  soonest,
} from './candidates.ts';
import { LEASES, opens, opensInTimeAt } from './openings.ts';

export interface Hold {
  readonly gates: readonly GateView[];
  readonly cure: Cure;
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

function getsRoom(asking: Asking, candidate: Candidate): NodeGetsRoom {
  const { now } = asking;
  const { node, reasons } = candidate;
  const why = reasons.filter((reason) => ROOM.has(reason));
  // Of what runs there some has to end, though it has room.
  if (why.length === 0 && !isInTimeBeside(asking, candidate)) why.push('too-slow');
  const until = Math.max(node.roomAt(now), node.readingUntil, node.drainLongUntil, node.refusedUntil);
  return { kind: 'node-gets-room', nodeId: node.spec.id, reasons: why, inMs: msUntil(until, now) };
}
