/**
 * Late binding: tasks meet nodes only here, and only when a node has room.
 *
 * A pass over a lane takes its tasks in fair order. Each goes to the node that completes it first; where that node is
 * busy, the task is held and reserves it, so that the next task sees the reservation. At most `heldMax` are held per
 * pass; in the queue nothing moves for them. Then an idle node takes the held task that loses least by it, if the
 * deadline holds and the loss is covered by the work that waits (waiting work / capacity) or by the time that it has waited, or work of its flow is refused:
 * to such a flow an idle node is pure loss, and it takes it before others that get their share.
 *
 * A pass has a cause and looks no further than that: a node that got room is offered to the lane until it has none;
 * an arrival is considered alone; only a timer looks at everything again.
 */
import type { DurationUs, MonoUs, NodeId, RefUs } from '../../base/units.ts';
import { laneDrainUs } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import { choose, chooseInTime, deadlineServiceUs, rankedUs, swapUs } from '../placement/choose.ts';
import { type Seat, SPEED_CLASS_MAX, speedClassOf } from '../placement/pool.ts';
import type { Lane } from '../queue/lane.ts';
import type { LaneFlow } from '../queue/lane-flow.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { assign } from './assign.ts';
import {
  canBeDoneAs,
  greatestMargin,
  isSurelyFor,
  marginFor,
  mayRunOn,
  meetsDeadline,
  meetsDeadlineSafely,
  meetsWithMargin,
  outlookOf,
} from './in-time.ts';
import { hasFreshReservation, RESERVATIONS_MAX, reserve, unreserve } from './reservations.ts';
import { evict, evictIfShut } from './settle.ts';
import type { SchedulerState } from './state.ts';

/** Bounds on when to think again about nodes that were left idle on purpose. */
const RECHECK_US_MIN: DurationUs = 10_000;
const RECHECK_US_MAX: DurationUs = 1_000_000;
/** How long a declined node is not offered again, and the growth of waiting work that ends it sooner. */
const DECLINED_US: DurationUs = 100_000;
const DECLINED_GROWTH = 1.25;
/** Held tasks among which the one that loses least is chosen, once one can afford the loss; and where somebody is turned away. */
const COMPARED_MIN = 3;
const COMPARED_CROWDED_MIN = 2;
/** Tasks up to this many times the pool's typical work explore; above 1, so that those of equal size all do. */
const EXPLORING_WORK_MAX = 1.1;
/** Behind a queue this many times as long as the loss, the first in line takes the node without comparison. */
const NEGLIGIBLE_LOSS = 1 / 4;
/** Nodes that are told apart where retried tasks are filed. */
const TRIED_ORDERS = 65_535;
/** Speed classes of nodes that are none for a task, each in two kinds; see `floorAt`. */
const FLOOR_MAX = 2 * SPEED_CLASS_MAX + 1;

export function hasRoom(lane: Lane): boolean {
  for (const pool of lane.pools) if (pool.roomySeats > 0) return true;
  return false;
}

/** A node got room, or came back: serves its lanes, the one with least served work first. */
export function dispatchNode(state: SchedulerState, node: NodeRecord): void {
  const only = node.firstSeat?.next === null ? node.firstSeat.pool.lanes : undefined;
  if (only?.length === 1) {
    const lane = only[0] as Lane;
    if (lane.tasks > 0 && hasRoomNow(node)) offer(state, lane, node);
    return;
  }
  const lanes: Lane[] = [];
  for (const { pool } of node.seats) {
    for (const lane of pool.lanes) if (lane.tasks > 0 && !lanes.includes(lane)) lanes.push(lane);
  }
  if (lanes.length > 1) lanes.sort((a, b) => a.laneTag - b.laneTag);
  for (const lane of lanes) if (hasRoomFor(lane, node)) offer(state, lane, node);
}

/** Offers one node with room to the lane, until it has none or nobody wants it, or may take it. */
function offer(state: SchedulerState, lane: Lane, node: NodeRecord): void {
  if (!lane.loadsModels && isDeclined(state, lane, node)) return recheckAt(state, lane, lane.declinedUntil);
  const { held } = state;
  held.clear();
  let heldMax = state.config.placement.heldMax;
  const comparedMin = lane.crowdedUntil > state.now ? COMPARED_CROWDED_MIN : COMPARED_MIN;
  while (hasRoomFor(lane, node) && held.size < heldMax && node.group?.hasSpareFor(lane.model) !== false) {
    const task = lane.next(state.now);
    if (task === null) break;
    if (node.group?.shutsOut(task) === true) {
      lane.holdFlow(task);
      continue;
    }
    if (evictIfShut(state, task)) continue;
    const loads = lane.loadsModels && node.residentModel !== task.model;
    if (!loads && takesAnyway(state, lane, task, node)) {
      assign(state, lane, task, node);
      continue;
    }
    const isReserved = hasFreshReservation(task, node, state.now);
    const waits = isReserved ? takeOrWait(state, lane, task, node) : placeOrWait(state, lane, task);
    if (!waits) continue;
    const isSure = isSurelyFor(state, task, node);
    const loss = lossUs(state, task, state.choice.busyDoneAt, node);
    const drainUs = laneDrainUs(lane);
    if (isSure && !loads && loss <= drainUs * NEGLIGIBLE_LOSS) {
      assign(state, lane, task, node);
      continue;
    }
    if (!isSure) sortOut(state, lane, task, node);
    hold(state, lane, task, node);
    const isAffordable = loss <= drainUs || loss <= patienceUs(state, lane, task, node);
    if (isSure && !loads && isAffordable) heldMax = Math.min(heldMax, comparedMin);
  }
  while (hasRoomFor(lane, node) && releaseTo(state, lane, node));
  if (node.group?.hasSpareFor(lane.model) === false) offerToClaimants(state, lane, node);
  lane.endScan();
  if (held.size > 0 && hasRoomFor(lane, node)) decline(state, lane, node);
  scheduleRecheck(state, lane);
}

/**
 * Whether the first in line takes the node whatever others offer: behind such a queue even all of its time there is no loss that
 * counts. Where no other has room, comparing nodes would choose this one too, and costs a tenth of a step under overload.
 */
function takesAnyway(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): boolean {
  const hereUs = rankedUs(node, task, state.context) / node.rankFactor;
  if (hereUs > laneDrainUs(lane) * NEGLIGIBLE_LOSS) return false;
  return isSurelyFor(state, task, node) && meetsWithMargin(state, lane, { task, node });
}

/** What is free of the node's group is kept: only who has a claim may take it, and none of the others is looked at. */
function offerToClaimants(state: SchedulerState, lane: Lane, node: NodeRecord): void {
  const group = node.group as NodeGroup;
  for (const share of group.shares) {
    if (share.config.holder !== 'tenant') continue;
    for (const { flows } of state.classes) {
      const flow = flows.get(share.config.name);
      while (flow !== undefined && hasRoomFor(lane, node) && share.unused > 0) {
        const task = lane.headOf(flow);
        if (task === null || group.shutsOut(task)) break;
        if (evictIfShut(state, task)) continue;
        if (!placeOrWait(state, lane, task)) continue;
        if (!isSurelyFor(state, task, node)) sortOut(state, lane, task, node);
        hold(state, lane, task, node);
      }
    }
  }
}

/** Looks at every idle node of the lane again. O(tasks placed x `heldMax` x buckets). */
export function dispatchLane(state: SchedulerState, lane: Lane): void {
  if (lane.hasGroups) return offerEverySeat(state, lane);
  // Behind each that gave up waiting for a faster node there may be others of its size that have waited as long.
  while (hasRoom(lane) && passOver(state, lane));
  scheduleRecheck(state, lane);
}

/** One pass in fair order; whether one of those that were held took an idle node after all. */
function passOver(state: SchedulerState, lane: Lane): boolean {
  const { held } = state;
  let hasReleased = false;
  held.clear();
  while (held.size < state.config.placement.heldMax && hasRoom(lane)) {
    const task = lane.next(state.now);
    if (task === null) break;
    if (evictIfShut(state, task)) continue;
    if (!placeOrWait(state, lane, task)) continue;
    const offered = state.choice.roomy?.node ?? null;
    if (offered === null || !isSurelyFor(state, task, offered)) sortOut(state, lane, task, offered);
    hold(state, lane, task, offered);
  }
  while (held.size > 0 && hasRoom(lane)) {
    choose(lane.pools, held.task(0), state.context, state.choice);
    const node = state.choice.roomy?.node;
    if (node === undefined || !releaseTo(state, lane, node)) break;
    hasReleased = true;
  }
  lane.endScan();
  return hasReleased;
}

/** Offers the nodes with room one by one, since not every task may take every node. O(pools x buckets + tasks placed). */
function offerEverySeat(state: SchedulerState, lane: Lane): void {
  for (const { buckets } of lane.pools) {
    for (const { roomy } of buckets) {
      let seat = roomy.peek();
      for (let last: Seat | undefined; seat !== undefined && seat !== last && lane.tasks > 0; ) {
        last = seat;
        offer(state, lane, seat.node);
        seat = roomy.peek();
      }
    }
  }
}

/** Groups in which somebody who was kept out may have a place now: whoever waits there is asked again. */
export function dispatchOpenedGroups(state: SchedulerState): void {
  for (const group of state.fleet.groups) {
    if (!group.hasOpened) continue;
    group.hasOpened = false;
    for (const pool of group.pools) {
      if (pool.roomySeats === 0) continue;
      for (const lane of [...pool.lanes].sort((a, b) => a.laneTag - b.laneTag)) {
        if (lane.tasks > 0) dispatchLane(state, lane);
      }
    }
  }
}

/** A queued task that just arrived: it alone is considered, since nothing changed for those who wait already. */
export function dispatchArrival(state: SchedulerState, lane: Lane, task: TaskRecord): void {
  const unexplored = unexploredFor(state, lane, task);
  if (unexplored !== null) return assign(state, lane, task, unexplored);
  const { held, choice } = state;
  choose(lane.pools, task, state.context, choice);
  if (choice.roomy === null) return;
  if (shouldStart(state, lane, task, marginFor(state, lane, task)))
    return assign(state, lane, task, choice.roomy.node);
  held.clear();
  held.push(task, choice.busyDoneAt, choice.roomy.node);
  if (releaseTo(state, lane, choice.roomy.node)) return;
  bookWait(state, lane, task);
  scheduleRecheck(state, lane);
}

/**
 * An idle node that nothing was sent to for long, so that its rate stays known. Only for tasks below the first class
 * that it surely does in time, and paced so that all nodes of a pool have their turn once per `exploreEveryMs`. A large
 * task leaves the turn to one that loses less: four times the work would wait four times as long for the same knowledge.
 */
function unexploredFor(state: SchedulerState, lane: Lane, task: TaskRecord): NodeRecord | null {
  if (task.flow.classRecord.index === 0 && state.classes.length > 1) return null;
  const everyUs = state.config.placement.exploreEveryMs * 1_000;
  for (const pool of lane.pools) {
    if (pool.exploreAt > state.now || everyUs === 0) continue;
    if (task.workUs > pool.typicalWorkUs * EXPLORING_WORK_MAX) continue;
    pool.exploreAt = state.now + Math.ceil(everyUs / Math.max(1, pool.openSeats));
    const seat = pool.unusedSeat(state.now - everyUs);
    if (seat === undefined || !mayRunOn(state, task, seat.node)) continue;
    if (swapUs(seat.node, task, state.config) > 0) continue;
    if (meetsDeadlineSafely(state, task, seat.node)) return seat.node;
  }
  return null;
}

/**
 * Gives the task its best node if that has room. True when it waits instead: then `state.choice` tells for which busy
 * node, and when it would be done there.
 */
function placeOrWait(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  unreserve(state, lane, task);
  const outlook = outlookOf(state, lane, task);
  if (!canBeDoneAs(state, lane, task, outlook)) {
    evict(state, task, 'wait-expired');
    return false;
  }
  choose(lane.pools, task, state.context, state.choice);
  const { choice } = state;
  if (choice.roomy !== null && shouldStart(state, lane, task, outlook.margin)) {
    assign(state, lane, task, choice.roomy.node);
    return false;
  }
  return true;
}

/** Gives the offered node to a task that waits for another one, if it would not be done sooner there; else true. */
function takeOrWait(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): boolean {
  const doneAt = task.reservedDoneAt;
  const hereUs = rankedUs(node, task, state.context) / node.rankFactor;
  const isFasterElsewhere = doneAt - state.now < hereUs * (1 - state.config.placement.nearTieRatio);
  const mayTake = mayRunOn(state, task, node) && meetsWithMargin(state, lane, { task, node });
  if (!isFasterElsewhere && mayTake) {
    assign(state, lane, task, node);
    return false;
  }
  state.choice.busyDoneAt = doneAt;
  return true;
}

/** Steps over a task that waits for the busy node of the choice, and with it over those of its kind; see `sortOut`. */
function hold(state: SchedulerState, lane: Lane, task: TaskRecord, offered: NodeRecord | null): void {
  state.held.push(task, state.choice.busyDoneAt, offered);
  bookWait(state, lane, task);
  lane.hold(task);
}

/**
 * What is offered is none for the task, since it has failed there or waited too long. Others of its size may take it: they are
 * not to be stepped over with it, or they idle the node and are as late in turn.
 */
function sortOut(state: SchedulerState, lane: Lane, task: TaskRecord, offered: NodeRecord | null): void {
  const { triedNodes } = task;
  const offeredFloor = offered === null ? FLOOR_MAX : floorAt(state, lane, { task, node: offered });
  const floor = triedNodes === null ? offeredFloor : FLOOR_MAX + triedMark(state, triedNodes);
  if (floor > task.speedFloor) (task.laneFlow as LaneFlow).raiseSpeedFloor(task, floor);
}

/** Who would be late there is told apart from who would most likely be in time, and may take the node once nothing better is left to it. */
function floorAt(
  state: SchedulerState,
  lane: Lane,
  at: { readonly task: TaskRecord; readonly node: NodeRecord },
): number {
  return 2 * speedClassOf(at.node) + (meetsWithMargin(state, lane, at) ? 0 : 1);
}

/** Tells apart where tasks have failed, by the first two nodes: who failed elsewhere may take what this one may not. Grows with each. */
function triedMark(state: SchedulerState, [first, second]: readonly NodeId[]): number {
  const orderOf = (id: NodeId | undefined): number =>
    id === undefined ? 0 : 1 + ((state.fleet.nodes.get(id)?.order ?? 0) % TRIED_ORDERS);
  return 1 + orderOf(first) + orderOf(second) * (1 + TRIED_ORDERS);
}

/** Reserves the busy node of the choice for the task, unless its reservation still stands. */
function bookWait(state: SchedulerState, lane: Lane, task: TaskRecord): void {
  const { busy, busyDoneAt } = state.choice;
  if (busy !== null && task.reservedNode === null && lane.reservations < RESERVATIONS_MAX)
    reserve(state, lane, task, { node: busy.node, doneAt: busyDoneAt });
}

/**
 * Gives the node the held task that loses least by it, of those that can afford the loss and keep their deadline. Where none
 * can and the lane refuses work, of all of them.
 */
function releaseTo(state: SchedulerState, lane: Lane, node: NodeRecord): boolean {
  const { held } = state;
  const drainUs = laneDrainUs(lane);
  const isSaturated = lane.saturatedUntil > state.now;
  let best = -1;
  let bestLossUs = Number.POSITIVE_INFINITY;
  let bestIsAffordable = false;
  for (let index = 0; index < held.size; index++) {
    const task = held.task(index);
    if (!mayRunOn(state, task, node)) continue;
    const loss = lossUs(state, task, held.doneAt(index), node);
    const isAffordable = loss <= drainUs || loss <= patienceUs(state, lane, task, node);
    if (!isAffordable && (bestIsAffordable || !isSaturated)) continue;
    if (bestIsAffordable === isAffordable && loss >= bestLossUs) continue;
    // Last, as it costs most and most lose more than they can afford.
    if (!meetsDeadlineSafely(state, task, node)) continue;
    best = index;
    bestLossUs = loss;
    bestIsAffordable = isAffordable;
  }
  if (best === -1) return false;
  const task = held.task(best);
  held.remove(best);
  assign(state, lane, task, node);
  return true;
}

/** How much later the task is done on this node than at `doneAt`, where it waits; 0 where it waits for none. */
function lossUs(state: SchedulerState, task: TaskRecord, doneAt: MonoUs, node: NodeRecord): DurationUs {
  if (doneAt === Number.POSITIVE_INFINITY) return 0;
  return state.now + rankedUs(node, task, state.context) / node.rankFactor - doneAt;
}

/**
 * What a task can lose beside what waits can. A flow of which work is refused keeps every node busy that it may. Others lose no more than
 * what waits can lose, or than they have
 * waited already: the node that they wait for is taken by others again and again, and so nobody waits more than about twice what
 * the best choice would have cost it (ski rental: Karlin, Manasse, Rudolph, Sleator 1988). Patience alone earns no place where others
 * pay for it: where nodes load models a swap costs the next task as well, and in an engine that batches who joins slows all.
 */
function patienceUs(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): DurationUs {
  if (task.flow.refusedUntil > state.now) return Number.MAX_SAFE_INTEGER;
  return lane.loadsModels || node.batches ? 0 : state.now - task.submittedAt;
}

/**
 * Whether the best node with room takes the task now: the best of all, or of those that do it by the deadline with the margin that
 * measured errors ask for. Not where a busy one is sooner and in time as well.
 */
function shouldStart(state: SchedulerState, lane: Lane, task: TaskRecord, margin: number): boolean {
  const { choice, context } = state;
  const leftUs: DurationUs = (task.deadlineAt - state.now) / margin;
  const isInTime = deadlineServiceUs((choice.roomy as Seat).node, task, context) <= leftUs;
  if (!isInTime && !chooseInTime(lane.pools, task, context, { leftUs, out: choice })) return false;
  const { busy, busyDoneAt, roomyDoneAt, busyStartAt } = choice;
  if (busy === null) return true;
  const tie = 1 - state.config.placement.nearTieRatio;
  const isFasterElsewhere = busyDoneAt - state.now < (roomyDoneAt - state.now) * tie;
  return !isFasterElsewhere || !meetsDeadline(state, task, busy.node, busyStartAt);
}

/**
 * Lets the lane be looked at again when the first of the held tasks should be done, or soon; and while each of them can still
 * start on the node with room that it did not take. What it waits for may be out of its reach by then, by a share or by work that
 * takes longer than predicted, of which nobody tells it.
 */
function scheduleRecheck(state: SchedulerState, lane: Lane): void {
  const { held } = state;
  if (held.size === 0 || lane.tasks === 0 || !hasRoom(lane)) return;
  let expectedAt = Number.POSITIVE_INFINITY;
  for (let index = 0; index < held.size; index++) expectedAt = Math.min(expectedAt, held.doneAt(index));
  const waitUs = Math.min(RECHECK_US_MAX, Math.max(RECHECK_US_MIN, expectedAt - state.now));
  const againAt = state.now + Math.round(waitUs);
  const chanceAt = lastChanceAt(state, lane, Math.max(lane.declinedUntil, againAt));
  lane.declinedUntil = Math.min(lane.declinedUntil, chanceAt);
  recheckAt(state, lane, Math.min(chanceAt, againAt));
}

/**
 * When the first of the held tasks has its last chance to start on the node with room that it did not take, or `until` if that is
 * sooner. O(held x pools).
 */
function lastChanceAt(state: SchedulerState, lane: Lane, until: MonoUs): MonoUs {
  const { held } = state;
  const marginMax = greatestMargin(state);
  let at = until;
  for (let index = 0; index < held.size; index++) {
    const task = held.task(index);
    const node = held.offered(index);
    if (node === null || !mayRunOn(state, task, node)) continue;
    const serviceUs = deadlineServiceUs(node, task, state.context);
    // Most have so much time that no margin makes it the first.
    if (task.deadlineAt - serviceUs * marginMax >= at + 1) continue;
    // Whole, or it would be late by the rounding.
    const lastAt = Math.floor(task.deadlineAt - serviceUs * marginFor(state, lane, task));
    if (lastAt > state.now) at = Math.min(at, lastAt);
  }
  return at;
}

function recheckAt(state: SchedulerState, lane: Lane, at: MonoUs): void {
  state.heldLanes.add(lane);
  state.heldRecheckAt = Math.min(state.heldRecheckAt, at);
}

/**
 * Nobody wants this node. While no more waits than now, those who wait are not asked again about it or a slower one;
 * who comes new is asked anyway.
 */
function decline(state: SchedulerState, lane: Lane, node: NodeRecord): void {
  const isOther = node.group !== lane.declinedGroup;
  if (isOther || state.now >= lane.declinedUntil || lane.workUs > lane.declinedWorkUs) lane.declinedRate = 0;
  if (lane.declinedRate === 0) {
    lane.declinedAwaitedUs = 0;
    lane.declinedUntil = state.now + DECLINED_US;
    lane.declinedWorkUs = lane.workUs * DECLINED_GROWTH;
    lane.declinedGroup = node.group;
  }
  lane.declinedRate = Math.max(lane.declinedRate, node.nextRate);
  lane.declinedAwaitedUs = Math.max(lane.declinedAwaitedUs, awaitedFirstUs(node));
}

function isDeclined(state: SchedulerState, lane: Lane, node: NodeRecord): boolean {
  return (
    node.nextRate <= lane.declinedRate &&
    awaitedFirstUs(node) >= lane.declinedAwaitedUs &&
    state.now < lane.declinedUntil &&
    lane.workUs <= lane.declinedWorkUs &&
    node.group === lane.declinedGroup
  );
}

/** Work on prompts that the node computes before that of a stream which comes now. */
function awaitedFirstUs({ batches, awaitedUs: work }: NodeRecord): RefUs {
  return batches ? work : 0;
}

function hasRoomNow(node: NodeRecord): boolean {
  return node.firstSeat?.hasRoom === true;
}

/** The same where a breaker may have closed the node for some of its models: then only the lane's own seat counts. */
function hasRoomFor(lane: Lane, node: NodeRecord): boolean {
  if (node.breakers === null) return hasRoomNow(node);
  return node.seats.some((seat) => seat.hasRoom && lane.pools.includes(seat.pool));
}

/** A task that was let in waits: for what, by the counters of its pools. */
export function tellQueued(state: SchedulerState, lane: Lane, task: TaskRecord): void {
  state.ranking.count(lane.pools, task, state.fleet.nodes.size);
  state.watch?.queued(task.id, state.ranking);
}
