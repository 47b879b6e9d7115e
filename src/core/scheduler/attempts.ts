/**
 * What happens to a task once a node has it: progress, the end of the attempt (the one release of the permit),
 * retries, the deadline while running, and the client leaving.
 */
import type { DurationUs } from '../../base/units.ts';
import { timeLeftLaw } from '../capacity/time-left.ts';
import type { BadEnd } from '../degrade/alternative.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Lane } from '../queue/lane.ts';
import { NOBODY, type TaskRecord } from '../queue/task-record.ts';
import {
  type AttemptResult,
  type FailureKind,
  NO_RETRY,
  type Outcome,
  type Refused,
} from '../request/outcome.ts';
import type { Usage } from '../request/task.ts';
import { BROKEN_NODES_MAX, STRIKE_US } from '../retry/poison.ts';
import { bookAttempt, bookDone, bookNotDone, bookService, type EndedAttempt } from './book.ts';
import { modelAnswered, modelShut } from './breakers.ts';
import { assign } from './assign.ts';
import { dispatchLane, dispatchNode, hasRoom } from './dispatch.ts';
import { makeWay } from './make-way.ts';
import { afterFailure, afterSuccess, closeRoom, isEvidence, refreshNode } from './marks.ts';
import { limitRefused, limitServed } from './concurrency.ts';
import { giveWay, preemptFor, tookPlaceLate } from './preempt.ts';
import { insteadOfWork } from './instead.ts';
import { attemptTimed, firstByteTimed } from './patience.ts';
import { dequeue, enqueue, evict, evictIfShut, forget, settle, settleOrDegrade } from './settle.ts';
import { type SchedulerState, workModelOf } from './state.ts';
import { tallyServed } from './tallies.ts';

/** A running task that took this many times its predicted time when its deadline came speaks against the node. */
const HANG_FACTOR = 3;
/** Bodies that are remembered as having broken one node. */
const STRIKES_PER_NODE_MAX = 8;
const SOON: Refused = { hint: { retryable: true, afterUs: 0 } };
const SERVED: Outcome = { kind: 'served' };
const CANCELLED: Outcome = { kind: 'cancelled' };
const DECLINED: Outcome = { kind: 'failed', reason: 'declined', hint: NO_RETRY };
const TIMED_OUT: BadEnd = { kind: 'failed', reason: 'node-timeout', ...SOON };

type FailedAttempt = Extract<AttemptResult, { kind: 'failed' }>;

export function attemptSent(state: SchedulerState, task: TaskRecord): void {
  if (task.node !== null && task.sentAt === 0) task.sentAt = state.now;
}

/**
 * From the first content byte on, a stream's deadline is met and nothing is retried. A whole answer is held back until
 * it is whole: its first byte binds nothing, and the edge says in the attempt's end whether a part has left.
 */
export function attemptFirstByte(state: SchedulerState, task: TaskRecord): void {
  if (task.node === null) return;
  task.isAnswering = true;
  if (task.hasFirstByte || !task.isStream) return;
  task.node.learnFirstByte(task, workedUs(task, elapsedUsOf(state, task, task.node)));
  firstByteTimed(state, task, task.node);
  task.hasFirstByte = true;
  if (!task.isSettled) bookDone(state, task);
  state.wheel.remove(task);
  const { node } = task;
  const mayOpen = node.breakers !== null || state.modelBreakers.size > 0;
  const isOpened = mayOpen && modelAnswered(state, node, task);
  // Where streams begin in turn, there is one prompt less before those who wait.
  if (!isOpened && node.rateInTurnOf(task.model) === 0) return;
  refreshNode(state, node);
  dispatchNode(state, node);
}

export function attemptEnded(state: SchedulerState, task: TaskRecord, result: AttemptResult): void {
  const { node } = task;
  if (node === null) return;
  const elapsedUs = elapsedUsOf(state, task, node);
  const heir = task.givesWayTo;
  const ended: EndedAttempt = { node, elapsedUs, result, heir };
  if (result.kind !== 'ok' || task.isSettled) bookAttempt(state, task, ended);
  node.release(task, state.now);
  task.flow.running -= 1;
  task.flow.classRecord.tally.running -= 1;
  task.node = null;
  if (heir !== NOBODY) {
    task.givesWayTo = NOBODY;
    node.isGivingWay = false;
  }
  const isCut = attemptTimed(state, task, ended);
  if (!task.isSettled) state.counts.running -= 1;
  task.reservation?.note(result);
  switch (result.kind) {
    case 'ok':
      succeeded(state, task, ended, result.usage);
      break;
    case 'declined':
      correct(task, task.workUs);
      finish(state, task, DECLINED);
      break;
    case 'aborted':
      if (heir !== NOBODY && !task.isSettled && result.passed === undefined) {
        correct(task, 0);
        giveWay(state, task, node, heir);
        break;
      }
      correct(task, Math.min(task.workUs, elapsedUs * node.rateOf(task.model, task.startInflight)));
      finish(state, task, CANCELLED);
      break;
    case 'failed':
      failed(state, { task, node, result, isCut });
      break;
  }
  if (node.breakers !== null) node.breakers.get(task.model)?.breaker.release(task.id);
  refreshNode(state, node);
  if (heir !== NOBODY && !task.gaveWay) tookPlaceLate(state, heir, node);
  dispatchNode(state, node);
}

/** The client left. */
export function cancel(state: SchedulerState, task: TaskRecord): void {
  if (task.isSettled) return;
  if (task.isRunning) return stop(state, task, CANCELLED);
  dequeue(state, task);
  settle(state, task, CANCELLED);
}

/** The deadline passed: what waits leaves, what runs is aborted, for nobody waits for its answer any more. */
export function expire(state: SchedulerState, task: TaskRecord): void {
  // What expired in the same instant may have opened the breaker that it waited behind.
  if (task.isSettled || (task.node === null && task.lane === null)) return;
  if (!task.isRunning) return evict(state, task, 'wait-expired');
  const node = task.node as NodeRecord;
  const isHanging = state.now - task.decidedAt > HANG_FACTOR * task.predictedUs;
  if (isHanging && isEvidence(node, task.decidedAt)) speaksAgainst(state, node, task, 'timeout');
  task.ladder?.noteDeadline(task.flow.classRecord.index, false, state.now);
  task.hasExpired = true;
  bookNotDone(state, task);
  stop(state, task, insteadOfWork(state, task, TIMED_OUT));
  refreshNode(state, node);
}

function stop(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  const node = task.node as NodeRecord;
  settle(state, task, outcome);
  if (!task.isAborting) state.out.abort(task.id, node.spec.id);
  task.isAborting = true;
}

function succeeded(
  state: SchedulerState,
  task: TaskRecord,
  { node, elapsedUs }: EndedAttempt,
  usage: Usage | undefined,
): void {
  const actualUs =
    usage === undefined ? task.workUs : workModelOf(state, task.model).actual(usage, task.workUs);
  const inflight = node.meanInflight(task, state.now);
  const ownUs = workedUs(task, elapsedUs);
  // What was kept of the prompt is no work either: its saving would count twice.
  const doneUs = Math.max(1, actualUs - task.savedUs);
  node.learn(task.model, doneUs, ownUs, inflight);
  tallyServed(node, task, doneUs, elapsedUs);
  node.tallyPace(task.model, Math.log(ownUs / doneUs), inflight);
  if (node.concurrency !== null) limitServed(state, node, { workUs: doneUs, elapsedUs: ownUs, inflight });
  state.margin.observe(elapsedUs, task.predictedUs);
  state.context.timeLeft = timeLeftLaw(state.margin.usual);
  if (!task.isSettled) {
    bookService(state, task, elapsedUs);
    if (!task.isStream) bookDone(state, task);
    state.ledgers.waste.usefulUs += actualUs;
  }
  state.budget.deposit(actualUs, state.config.retry);
  state.preemptions.budget.deposit(actualUs, state.config.preemption);
  correct(task, actualUs);
  if (isEvidence(node, task.decidedAt)) {
    const { healthMin } = state.config.placement;
    const pace = node.paceOf(task.model);
    afterSuccess(state, node, task, pace.record(doneUs, ownUs, inflight, healthMin));
  }
  // It broke a node before and was served now: it was not the cause.
  if (task.brokenNodes > 0) state.poison.forgive(task.fingerprint);
  if (!task.isSettled) task.ladder?.noteDeadline(task.flow.classRecord.index, true, state.now);
  finish(state, task, task.alternative < 0 ? SERVED : { kind: 'degraded', alternative: task.alternative });
}

interface Failure {
  readonly task: TaskRecord;
  readonly node: NodeRecord;
  readonly result: FailedAttempt;
  /** At its learned bound: nothing broke, so it says nothing of the request. */
  readonly isCut: boolean;
}

function failed(state: SchedulerState, { task, node, result, isCut }: Failure): void {
  correct(task, 0);
  if (result.failure === 'refused') node.refused += 1;
  else if (isEvidence(node, task.decidedAt)) node.failed += 1;
  if (task.isSettled) return forget(state, task);
  // Whatever comes next is another node's: a retry, or a lesser answer where the model is given up.
  task.triedNodes = [...(task.triedNodes ?? []), node.spec.id];
  let isPoison = false;
  if (result.failure === 'refused') {
    closeRoom(state, node, result.nodeRetryAfterUs ?? 0);
    if (node.concurrency !== null) limitRefused(state, node);
  }
  if (isEvidence(node, task.decidedAt)) {
    if (!isCut && breaksNode(result.failure) && isHealthy(node)) isPoison = strike(state, task, node);
    speaksAgainst(state, node, task, result.failure);
  }
  if (isPoison) return settle(state, task, { kind: 'failed', reason: 'poison', hint: NO_RETRY });
  const shut = modelShut(state, task.model);
  if (result.retryable && shut === null && retry(state, task)) return;
  const reason = result.failure === 'timeout' ? 'node-timeout' : 'node-failed';
  const end: BadEnd = { kind: 'failed', reason, ...(shut ?? SOON) };
  // Once a part of the answer has left, no other can stand in for it.
  if (result.retryable && !task.hasFirstByte) settleOrDegrade(state, task, end);
  else settle(state, task, end);
}

/** Judges node and model by a failure, and keeps from both what they must not get any more. */
function speaksAgainst(
  state: SchedulerState,
  node: NodeRecord,
  task: TaskRecord,
  failure: FailureKind,
): void {
  afterFailure(state, node, task, failure);
  // Before anything is dispatched: the index must not offer what was just closed.
  if (node.firstSeat !== null) state.fleet.place(node, state.now, state.config);
  if (modelShut(state, task.model) === null) return;
  for (const lane of state.fleet.lanesOf(task.model)) {
    for (let next = lane.next(state.now); next !== null && evictIfShut(state, next); )
      next = lane.next(state.now);
  }
}

/** Nothing spoke against the node before: what breaks it now may be the body. */
function isHealthy(node: NodeRecord): boolean {
  return node.failures.isClean && !node.isTrial;
}

/** The body broke a healthy node: its second one, in this submission or another, makes it poison. */
function strike(state: SchedulerState, task: TaskRecord, node: NodeRecord): boolean {
  const { fingerprint } = task;
  task.brokenNodes += 1;
  if (fingerprint !== '') {
    node.struckBy = [...node.struckBy.filter((known) => known !== fingerprint), fingerprint].slice(
      -STRIKES_PER_NODE_MAX,
    );
  }
  const isMarked = state.poison.strike({ fingerprint, forUs: STRIKE_US }, node.spec.id, state.now);
  return isMarked || task.brokenNodes >= BROKEN_NODES_MAX;
}

/** Puts the task back for another node, if one is left, the budget allows it and the attempts are not used up. */
function retry(state: SchedulerState, task: TaskRecord): boolean {
  if (task.hasFirstByte) return false;
  const lane = state.fleet.laneFor(task.model, task.spec.needs, task.spec.tenant);
  if (typeof lane === 'string' || !mayTryElsewhere(state, task, lane)) return false;
  const way = makeWay(state, lane, task);
  if (way === 'refused') return false;
  task.isRunning = false;
  enqueue(lane, task);
  if (way !== null) assign(state, lane, task, way);
  else if (hasRoom(lane)) dispatchLane(state, lane);
  if (task.flow.classRecord.index === 0) preemptFor(state, task);
  return true;
}

/** Whether a task whose attempt failed may be tried again in this lane; takes the price of it from the budget. */
export function mayTryElsewhere(state: SchedulerState, task: TaskRecord, lane: Lane): boolean {
  const { retry: config } = state.config;
  if (task.attemptsUsed >= config.attemptsMax || state.isShuttingDown) return false;
  return hasOtherNode(state, lane, task) && state.budget.withdraw(task.workUs, state.now, config);
}

function hasOtherNode(state: SchedulerState, lane: Lane, task: TaskRecord): boolean {
  let open = 0;
  for (const pool of lane.pools) open += pool.openSeats;
  for (const nodeId of task.triedNodes ?? []) {
    const seats = state.fleet.nodes.get(nodeId)?.seats ?? [];
    if (seats.some((seat) => seat.isIndexed && lane.pools.includes(seat.pool))) open -= 1;
  }
  return open > 0;
}

function breaksNode(failure: FailureKind): boolean {
  return failure === 'reset' || failure === 'protocol' || failure === 'timeout';
}

/** Replaces the charged estimate by what was really used, so that a wrong estimate cannot be gamed. */
function correct(task: TaskRecord, actualUs: number): void {
  const { flow } = task;
  const record = flow.classRecord;
  const difference = actualUs - task.chargedUs;
  if (difference === 0) return;
  if (difference > 0) {
    task.classCounter?.charge(difference, record.weight);
    task.flowCounter?.charge(difference, flow.weight);
  } else {
    task.classCounter?.refund(-difference, record.weight);
    task.flowCounter?.refund(-difference, flow.weight);
  }
  task.chargedUs = actualUs;
}

function finish(state: SchedulerState, task: TaskRecord, outcome: Outcome): void {
  if (task.isSettled) forget(state, task);
  else settle(state, task, outcome);
}

/** Since the node could begin with it. */
function elapsedUsOf(state: SchedulerState, task: TaskRecord, node: NodeRecord): DurationUs {
  const sentAt = task.sentAt === 0 ? task.decidedAt : task.sentAt;
  return Math.max(1, state.now - Math.max(sentAt, queuedUntil(task, node)));
}

/** Loading is no work; who was faster than that had the model loaded. */
function workedUs({ swapUs }: TaskRecord, elapsedUs: DurationUs): DurationUs {
  return elapsedUs > swapUs ? elapsedUs - swapUs : elapsedUs;
}

/** A task sent ahead waits inside the node until the one before it is done. */
function queuedUntil(task: TaskRecord, node: NodeRecord): number {
  return node.slotsStated === 1 && node.lastDoneAt > task.decidedAt ? node.lastDoneAt : 0;
}
