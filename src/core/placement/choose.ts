/**
 * Earliest completion time: where a task would be done first, with room now and among the busy.
 *
 *   completion(node) = wait for room + what waiting tasks reserved + swap + prompts before its own
 *                      + (work - what the node keeps of its prompt) / rate(model, inflight) x rank penalty
 *
 * Prompts before its own are waited for by streams, and where the engine computes them in turn; see first-bytes.ts.
 * Candidates are the tops of the pools' buckets and the few nodes that keep most of the prompt, so the cost does not depend
 * on the number of nodes. A prompt that is kept is priced above its time where other tasks run beside it. Near-ties among
 * nodes with room break towards the resident model, then the prompt that is kept, then least bound work, then a seeded draw.
 * Nothing else favours a node that keeps a prompt: where it is busy or slow for the load that it has, the task goes where it
 * is done sooner, and from then on that node keeps the prompt too.
 */
import type { Prng } from '../../base/prng.ts';
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';
import type { TimeLeftLaw } from '../capacity/time-left.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { TaskPrefix } from '../request/task.ts';
import { isShutFor } from './eligibility.ts';
import type { Bucket, Pool, Seat, SeatGroup } from './pool.ts';
import type { PrefixIndex } from './prefix-index.ts';

/** A swap is priced above its time: it also costs the next task of the model that leaves. */
const SWAP_PRICE = 2;
/** By less than that two ways to work out one time differ. */
const ROUNDING_US = 1;
/** Seats of one bucket that are compared: the order inside is for typical work. A retry that avoids nodes needs more. */
const TIES_MAX = 3;
const TIES_WITH_EXCLUSIONS_MAX = 16;
/** The same of busy ones where errors are so large that the order in which they lie says less. */
const TIES_BY_WIDE_LAW_MAX = 5;
/** In a pool of nodes with many models, one whose breaker of this model is open is passed over, within this bound. */
const SHUT_SEATS_MAX = 64;
const REFRESHES_MAX = 4;
/** Seats of one bucket that are looked at where the best node would be late: they differ in speed by a quarter at most. */
const IN_TIME_SEATS_MAX = 16;
/** What is left of a task whose whole prompt is kept, at least: something is always computed. */
const LEFT_SHARE_MIN = 1 / 20;
/**
 * Tasks beside it that a prompt's computation is reckoned to hold up, at most: one more task slows them all as well, which
 * no rate tells, and speaks against the node that has most.
 */
const STALLED_MAX = 3;
/** Part of what should be saved that deadlines count on: what a node keeps is believed, not known. */
const SURELY_SAVED_SHARE = 1 / 2;

export interface Choice {
  /** Best seat with room, and when the task would be done there; null when there is none. */
  roomy: Seat | null;
  roomyDoneAt: MonoUs;
  /** Best busy seat that is faster than the one with room. */
  busy: Seat | null;
  busyDoneAt: MonoUs;
  busyStartAt: MonoUs;
}

export function emptyChoice(): Choice {
  return { roomy: null, roomyDoneAt: 0, busy: null, busyDoneAt: 0, busyStartAt: 0 };
}

export interface ChooseContext {
  readonly config: SchedulerConfig;
  readonly prng: Prng;
  readonly prefixes: PrefixIndex<NodeRecord>;
  /** How long tasks still take that run, by the measured errors of predictions; null while these hold. */
  timeLeft: TimeLeftLaw | null;
  now: MonoUs;
}

/** Time the node needs for the task once it starts, swap included. */
export function serviceUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): DurationUs {
  if (isPlain(node, task)) return task.workUs / node.nextRate;
  return (
    swapUs(node, task, context.config) +
    leftUs(node, task, context) / node.nextRateOf(task.model, task.modelNumber)
  );
}

/**
 * Whether nothing but its rate tells the node's time for a task: it never loads another model, and keeps no prompt. Most are of that
 * kind, and are asked for every candidate.
 */
function isPlain(node: NodeRecord, task: TaskRecord): boolean {
  return node.isSingleModel && task.prefix === null;
}

/**
 * The same as placement ranks it: a swap counts for more than its time, and a prompt that others would wait for too. Both ways end in
 * arithmetic here, not in a call, for which the engine would box every time that is compared.
 */
export function rankedUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): DurationUs {
  if (isPlain(node, task) && node.awaitedUs === 0) return task.workUs / node.nextRate;
  const workUs = pricedUs(node, task, context);
  return waitUs(node, task, context) + workUs / node.nextRateOf(task.model, task.modelNumber);
}

/** What the task would wait for on the node before its own work begins, as placement ranks it. */
function waitUs(node: NodeRecord, task: TaskRecord, { config }: ChooseContext): DurationUs {
  return SWAP_PRICE * swapUs(node, task, config) + promptsAheadUs(node, task);
}

/** Time in which a node that begins its streams in turn computes the prompts before this stream's; 0 elsewhere. */
function promptsAheadUs(node: NodeRecord, { spec: { model, stream } }: TaskRecord): DurationUs {
  if (!stream || node.awaitedUs === 0) return 0;
  const rateInTurn = node.rateInTurnOf(model);
  return rateInTurn > 0 ? node.awaitedUs / rateInTurn : 0;
}

/**
 * While a node computes a prompt, those stand still that it works on: each of them saves that time too. Where it has room,
 * that is; a node without is waited for no longer than the task itself saves.
 */
function pricedUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): RefUs {
  if (task.prefix === null) return task.workUs;
  const price = node.hasRoomAsPlanned(context.now) ? 1 + Math.min(STALLED_MAX, node.running.length) : 1;
  return Math.max(task.workUs * LEFT_SHARE_MIN, task.workUs - price * savedUs(node, task, context));
}

/** Work that the node has to do for the task. */
function leftUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): RefUs {
  return task.prefix === null ? task.workUs : task.workUs - savedUs(node, task, context);
}

/** Time until what the deadline bounds is done: the first byte of a stream, else the whole task. */
export function deadlineServiceUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): DurationUs {
  if (isPlain(node, task) && !task.isStream) return task.deadlineWorkUs / node.nextRate;
  return swapUs(node, task, context.config) + deadlineWorkTimeUs(node, task, context);
}

/** The same but for a swap. */
function deadlineWorkTimeUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): DurationUs {
  const workUs = deadlineLeftUs(node, task, context);
  const { model, isStream } = task;
  const rateInTurn = isStream ? node.rateInTurnOf(model) : 0;
  if (rateInTurn > 0) return (workUs + node.awaitedUs) / rateInTurn;
  return workUs / node.nextRateOf(model, task.modelNumber);
}

/** Work until a stream's first byte, of what the node does not keep; 0 for what is no stream. Whole, so that sums of it stay exact. */
export function awaitedUs({ spec, deadlineWorkUs, savedUs }: TaskRecord): RefUs {
  if (!spec.stream) return 0;
  return Math.max(1, Math.round(Math.max(deadlineWorkUs * LEFT_SHARE_MIN, deadlineWorkUs - savedUs)));
}

/** Work that the deadline bounds and that the node has to do. */
export function deadlineLeftUs(node: NodeRecord, task: TaskRecord, context: ChooseContext): RefUs {
  const workUs = task.deadlineWorkUs;
  if (task.prefix === null) return workUs;
  // A prompt is computed before the first byte.
  return Math.max(workUs * LEFT_SHARE_MIN, workUs - savedUs(node, task, context) * SURELY_SAVED_SHARE);
}

/** Work that the node need not do again, as it is believed to keep a part of the prompt. O(log blocks). */
export function savedUs(
  { prefixes }: NodeRecord,
  { prefix, workUs }: TaskRecord,
  { prefixes: index }: ChooseContext,
): RefUs {
  if (prefix === null || prefixes === null) return 0;
  return Math.min(
    workUs * (1 - LEFT_SHARE_MIN),
    index.matched(prefixes, prefix.blocks) * prefix.workUsPerBlock,
  );
}

/**
 * Fills `out` with the best seat with room and the best busy one, of those that no bulkhead closes to the task.
 * O(pools x buckets).
 */
export function choose(pools: readonly Pool[], task: TaskRecord, context: ChooseContext, out: Choice): void {
  reset(out);
  const { now, config } = context;
  const { workUs } = task;
  const loads = config.placement.swapMs > 0;
  if (task.prefix !== null && context.prefixes.size > 0) considerHolders(pools, task, context, out);
  for (let at = 0; at < pools.length; at++) {
    const pool = pools[at] as Pool;
    if (pool.group !== null && pool.group.shutsOut(task)) continue;
    const { buckets, modelSpread } = pool;
    const residents = loads ? pool.residentsOf(task.model) : undefined;
    if (residents !== undefined) {
      if (residents.busy.size > 0) considerBusy(residents, task, context, out);
      if (residents.roomy.size > 0) considerRoomy(residents, task, context, out);
    }
    const isRankedByRate = task.prefix === null && !pool.mixesModels;
    let isTooSlow = false;
    for (let index = 0; index < buckets.length; index++) {
      const bucket = buckets[index] as Bucket;
      const isRoomy = bucket.roomy.size > 0;
      const isBusy = bucket.busy.size > 0;
      // Where the bucket before it was too slow already, so is this one.
      if (!isRoomy && (isTooSlow || !isBusy)) continue;
      // No node of this bucket or a slower one can beat that, even at the rate of its best model and without a swap.
      const bestCaseUs = workUs / (bucket.speedMax * modelSpread);
      isTooSlow = now + bestCaseUs >= earliest(out);
      if (isTooSlow && out.roomy !== null && bestCaseUs > tieUs(context, out)) break;
      if (!isTooSlow && isBusy) considerBusy(bucket, task, context, out);
      if (!isRoomy || (isRankedByRate && isPastTies(bucket, workUs, context, out))) continue;
      considerRoomy(bucket, task, context, out);
      // A tie may have been won by a slower node, so that a busy one can win again.
      isTooSlow = false;
    }
  }
}

/**
 * For where the best node with room would miss the deadline, by a swap's price, a kept prompt, an unproven node's rank or a
 * tie: puts in its place the best of those that would not, if there is one, and tells whether there is. A node is in time
 * that needs no more than `leftUs`. Costs a comparison per bucket where none is fast enough; of nodes with several models each
 * bucket is searched, since a model may run faster than its node does on the whole by more than is known yet; and so it is for
 * streams that begin in turn, which the node's speed does not bound.
 */
export function chooseInTime(
  pools: readonly Pool[],
  task: TaskRecord,
  context: ChooseContext,
  { leftUs, out }: { readonly leftUs: DurationUs; readonly out: Choice },
): boolean {
  const { roomy: late, roomyDoneAt: lateDoneAt } = out;
  const comparison = { task, context, out };
  out.roomyDoneAt = Number.POSITIVE_INFINITY;
  const leastUs = task.prefix === null ? task.deadlineWorkUs : task.deadlineWorkUs * LEFT_SHARE_MIN;
  for (const pool of pools) {
    if (pool.group !== null && pool.group.shutsOut(task)) continue;
    const residents = context.config.placement.swapMs > 0 ? pool.residentsOf(task.model) : undefined;
    if (residents !== undefined) considerInTime(residents, leftUs, comparison);
    const mayBeFaster = pool.mixesModels || (task.isStream && pool.fastestInTurn() !== undefined);
    for (const bucket of pool.buckets) {
      if (!mayBeFaster && leastUs / bucket.speedMax > leftUs) break;
      considerInTime(bucket, leftUs, comparison);
    }
  }
  if (out.roomy !== late) return true;
  out.roomyDoneAt = lateDoneAt;
  return false;
}

function considerInTime({ roomy }: SeatGroup, leftUs: DurationUs, { task, context, out }: Comparison): void {
  for (let index = 0; index < roomy.size && index < IN_TIME_SEATS_MAX; index++) {
    const seat = roomy.at(index) as Seat;
    const { node } = seat;
    if (task.triedNodes?.includes(node.spec.id) || isShutFor(node, task.model, context)) continue;
    if (deadlineServiceUs(node, task, context) > leftUs) continue;
    const doneAt = context.now + rankedUs(node, task, context) / node.rankFactor;
    if (doneAt >= out.roomyDoneAt) continue;
    out.roomy = seat;
    out.roomyDoneAt = doneAt;
  }
}

/** Up to which time a node with room still ties with the best one. */
function tieUs(context: ChooseContext, choice: Choice): DurationUs {
  return (choice.roomyDoneAt - context.now) * (1 + context.config.placement.nearTieRatio);
}

/**
 * Whether even the first with room loses to the best one, told by the rank at which it lies, without a look at the node. Only
 * where nothing but its rate makes a node sooner than another.
 */
function isPastTies({ roomy }: SeatGroup, workUs: RefUs, context: ChooseContext, choice: Choice): boolean {
  return choice.roomy !== null && workUs / -roomy.leastKey > tieUs(context, choice) + ROUNDING_US;
}

function earliest(choice: Choice): MonoUs {
  return Math.min(choice.roomyDoneAt, choice.busyDoneAt);
}

function reset(choice: Choice): void {
  choice.roomy = null;
  choice.busy = null;
  choice.roomyDoneAt = Number.POSITIVE_INFINITY;
  choice.busyDoneAt = Number.POSITIVE_INFINITY;
}

function considerRoomy(group: SeatGroup, task: TaskRecord, context: ChooseContext, out: Choice): void {
  const { roomy } = group;
  const { triedNodes } = task;
  let limit = Math.min(roomy.size, triedNodes === null ? TIES_MAX : TIES_WITH_EXCLUSIONS_MAX);
  for (let index = 0; index < limit; index++) {
    const seat = roomy.at(index) as Seat;
    const { node } = seat;
    if (node.breakers !== null && isShutFor(node, task.model, context)) {
      if (limit < Math.min(roomy.size, SHUT_SEATS_MAX)) limit += 1;
      continue;
    }
    if (triedNodes !== null && triedNodes.includes(node.spec.id)) continue;
    compareRoomy(seat, task, context, out);
  }
}

function compareRoomy(seat: Seat, task: TaskRecord, context: ChooseContext, out: Choice): void {
  const { node } = seat;
  const { now } = context;
  const tie = context.config.placement.nearTieRatio;
  const doneAt = now + rankedUs(node, task, context) / node.rankFactor;
  const span = doneAt - now;
  const bestSpan = out.roomyDoneAt - now;
  if (span > bestSpan * (1 + tie)) return;
  const isTie = out.roomy !== null && span >= bestSpan * (1 - tie);
  if (isTie && !winsTie(node, (out.roomy as Seat).node, task, context)) return;
  out.roomy = seat;
  out.roomyDoneAt = doneAt;
}

/** Among near-ties: the resident model, then the prompt that is kept, then least bound work, then a draw. */
function winsTie(a: NodeRecord, b: NodeRecord, task: TaskRecord, context: ChooseContext): boolean {
  if (!a.isSingleModel) {
    const { model } = task;
    const residency = Number(a.residentModel === model) - Number(b.residentModel === model);
    if (residency !== 0) return residency > 0;
  }
  if (task.prefix !== null) {
    const saved = a === b ? 0 : savedUs(a, task, context) - savedUs(b, task, context);
    if (saved !== 0) return saved > 0;
  }
  const bound = a.remainingUs(context.now) - b.remainingUs(context.now);
  if (bound !== 0) return bound < 0;
  return context.prng.nextUint32() < 0x8000_0000;
}

function considerBusy(group: SeatGroup, task: TaskRecord, context: ChooseContext, out: Choice): void {
  const { busy } = group;
  const { now, timeLeft } = context;
  if ((busy.peek() as Seat).node.plannedRoomAt <= now) refreshTop(group, context);
  const { workUs, triedNodes } = task;
  const limit = Math.min(busy.size, timeLeft?.isWide === true ? TIES_BY_WIDE_LAW_MAX : TIES_MAX);
  for (let index = 0; index < limit; index++) {
    const seat = busy.at(index) as Seat;
    const { node, pool } = seat;
    if (triedNodes !== null && triedNodes.includes(node.spec.id)) continue;
    if (node.breakers !== null && isShutFor(node, task.model, context)) continue;
    const predictedAt = node.roomAt(now) + node.reservedUs;
    // Before the model's own rate and the law are looked up: could it win at the best ratio that any model has shown?
    if (predictedAt + workUs / (node.nextRate * pool.modelSpread) >= out.busyDoneAt) continue;
    const startAt = timeLeft === null ? predictedAt : node.roomByLawAt(now, timeLeft) + node.reservedUs;
    compareBusy(seat, startAt, { task, context, out });
  }
}

interface Comparison {
  readonly task: TaskRecord;
  readonly context: ChooseContext;
  readonly out: Choice;
}

function compareBusy(seat: Seat, startAt: MonoUs, { task, context, out }: Comparison): void {
  const doneAt = startAt + rankedUs(seat.node, task, context) / seat.node.rankFactor;
  if (doneAt >= out.busyDoneAt) return;
  out.busy = seat;
  out.busyDoneAt = doneAt;
  out.busyStartAt = startAt;
}

/** When a busy node should have room, as far as predictions can be believed. */
export function roomAt(node: NodeRecord, { now, timeLeft }: ChooseContext): MonoUs {
  return timeLeft === null ? node.roomAt(now) : node.roomByLawAt(now, timeLeft);
}

/** The nodes that keep most of the prompt, wherever they lie in their buckets. */
function considerHolders(
  pools: readonly Pool[],
  task: TaskRecord,
  context: ChooseContext,
  out: Choice,
): void {
  for (const { owner: node } of context.prefixes.longest((task.prefix as TaskPrefix).blocks)) {
    if (task.triedNodes?.includes(node.spec.id) || isShutFor(node, task.model, context)) continue;
    if (node.group !== null && node.group.shutsOut(task)) continue;
    for (const seat of node.seats) {
      if (seat.bucket === null || !pools.includes(seat.pool)) continue;
      if (seat.hasRoom) compareRoomy(seat, task, context, out);
      else compareBusy(seat, roomAt(node, context) + node.reservedUs, { task, context, out });
    }
  }
}

/** Moves busy nodes back that overran their estimate, a few per look, so that the first completes a typical task first. */
function refreshTop(group: SeatGroup, context: ChooseContext): void {
  const { busy } = group;
  for (let round = 0; round < REFRESHES_MAX; round++) {
    const seat = busy.peek() as Seat;
    if (seat.node.plannedRoomAt > context.now) return;
    const stale = busy.leastKey;
    seat.pool.postpone(seat, context.now);
    if (busy.keyAt(group.handleOf(seat)) <= stale) return;
  }
}

/** Time that loading the task's model takes first, if the node has another one loaded. */
export function swapUs(node: NodeRecord, task: TaskRecord, config: SchedulerConfig): DurationUs {
  const { swapMs } = config.placement;
  if (swapMs === 0 || node.isSingleModel || node.residentModel === task.model) return 0;
  return swapMs * 1_000;
}
