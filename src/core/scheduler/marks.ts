/**
 * The marks of nodes: who is open, suspect, ejected, on trial; and the one timer per node that ends them.
 * Every mark is a lease: extending keeps the later expiry, and none needs completed work to end.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { NodeState } from '../health/state.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { FailureKind } from '../request/outcome.ts';
import { modelFailed, modelSucceeded } from './breakers.ts';
import { dispatchNode } from './dispatch.ts';
import { setNodeTimer } from './node-timer.ts';
import { peersSharingCause } from './shared-slowness.ts';
import type { SchedulerState } from './state.ts';

/** Probes in a row that must fail before a node is suspect: one lost packet is not a dead node. */
const FAILED_PROBES_MAX = 2;
/** Longest time for which a node's own retry-after is believed. */
const REFUSED_US_MAX: DurationUs = 60_000_000;

/** Brings index, state and timer in line with the node's marks. Call after every change of a node. */
export function refreshNode(state: SchedulerState, node: NodeRecord): void {
  if (node.state === 'gone') return;
  state.fleet.place(node, state.now, state.config);
  const derived = stateOf(node, state.now);
  if (derived !== node.state) {
    // One that stays dead is tried again and again; only who was at work goes, and only who served comes back.
    if (derived === 'active' || node.state === 'active') {
      node.flips += 1;
      state.tallies.fleetChanged(state.now);
    }
    node.state = derived;
    state.out.nodeState(node.spec.id, derived);
  }
  setNodeTimer(state, node);
  if (node.draining && node.running.length === 0) state.out.nodeDrained(node.spec.id);
}

export function stateOf(node: NodeRecord, now: MonoUs): NodeState {
  if (node.cordoned) return 'cordoned';
  if (node.draining) return 'draining';
  if (node.ejectedUntil > now) return 'ejected';
  if (node.suspectUntil > now) return 'suspect';
  return node.verified ? 'active' : 'unverified';
}

/**
 * Whether an attempt says something of the node as it is now. One that began before the node was last ejected does
 * not: sixteen that die together are one failure, and one that ends well is not the trial.
 */
export function isEvidence(node: NodeRecord, startedAt: MonoUs): boolean {
  return startedAt > node.ejectedAt;
}

export function afterSuccess(
  state: SchedulerState,
  node: NodeRecord,
  task: TaskRecord,
  isSlowed: boolean,
): void {
  if (node.breakers !== null || state.modelBreakers.size > 0) modelSucceeded(state, node, task);
  // What it stood trial for is proven to be over.
  if (node.isTrial) node.failures.reset();
  node.succeededAt = state.now;
  node.verified = true;
  node.isTrial = false;
  node.successes += 1;
  node.refusedUntil = 0;
  if (node.successes >= state.config.health.slowStartTasks) node.ejections = 0;
  node.failures.record(true, state.now);
  if (isSlowed && hasOtherNodes(node)) {
    const peers = peersSharingCause(state, node, task.model);
    node.acceptPace();
    if (peers === null) eject(state, node);
    else for (const peer of peers) peer.acceptPace();
  }
}

/** A failure that speaks against the node, or against its model. On trial one is enough. */
export function afterFailure(
  state: SchedulerState,
  node: NodeRecord,
  task: TaskRecord,
  failure: FailureKind,
): void {
  const blame = modelFailed(state, node, task, failure);
  if (blame === 'model' && !node.isTrial) return;
  noteCulprit(node, failure === 'connect' ? '' : task.model);
  const isOverLimit = node.failures.record(false, state.now);
  const isUnreachable = failure === 'connect' && node.failedProbes > 0;
  if (isOverLimit || node.isTrial || isUnreachable || blame === 'node-at-once') eject(state, node);
}

/** Remembers whether all failures since the score was clean were of one model. */
function noteCulprit(node: NodeRecord, model: string): void {
  if (node.failures.isClean) node.culprit = model;
  else if (node.culprit !== model) node.culprit = '';
}

/** The node said that it is full: no new task until the lease ends, or until something finishes there. */
export function closeRoom(state: SchedulerState, node: NodeRecord, askedUs: DurationUs): void {
  const leaseUs = Math.min(REFUSED_US_MAX, Math.max(askedUs, state.config.health.refusedMs * 1_000));
  node.refusedUntil = Math.max(node.refusedUntil, state.now + leaseUs);
}

export function eject(state: SchedulerState, node: NodeRecord): void {
  const { ejectMs, ejectMsMax } = state.config.health;
  const sleepUs = Math.min(ejectMsMax, ejectMs * 2 ** Math.min(16, node.ejections)) * 1_000;
  node.ejections += 1;
  node.ejectedAt = state.now;
  node.ejectedUntil = Math.max(node.ejectedUntil, state.now + sleepUs);
  node.verified = false;
  node.isTrial = true;
  node.successes = 0;
  // What it did goes on being told until it has proven itself: an error never improves a score.
  node.failures.acquit();
  node.breakers = null;
  forgetPrefixes(state, node);
}

export function probed(state: SchedulerState, node: NodeRecord, alive: boolean): void {
  if (alive) {
    node.failedProbes = 0;
    if (node.heartbeatDueAt === Number.POSITIVE_INFINITY || node.heartbeatDueAt > state.now)
      node.suspectUntil = 0;
  } else {
    node.failedProbes += 1;
    if (node.failedProbes >= FAILED_PROBES_MAX) suspect(state, node);
  }
  refreshNode(state, node);
  if (alive) dispatchNode(state, node);
}

export function heartbeat(state: SchedulerState, node: NodeRecord): void {
  if (node.spec.heartbeats) node.heartbeatDueAt = state.now + state.config.health.suspectAfterMs * 1_000;
  if (node.failedProbes < FAILED_PROBES_MAX) node.suspectUntil = 0;
  refreshNode(state, node);
  dispatchNode(state, node);
}

/** A node's timer fired: whatever lease ended, the node is looked at again. */
export function nodeTimerFired(state: SchedulerState, node: NodeRecord): void {
  if (node.heartbeatDueAt <= state.now) {
    node.heartbeatDueAt = Number.POSITIVE_INFINITY;
    suspect(state, node);
  }
  refreshNode(state, node);
  dispatchNode(state, node);
}

function suspect(state: SchedulerState, node: NodeRecord): void {
  forgetPrefixes(state, node);
  node.suspectUntil = Math.max(node.suspectUntil, state.now + state.config.health.suspectLeaseMs * 1_000);
}

/** Who was out of reach may come back from a restart, with nothing of what it kept. */
function forgetPrefixes(state: SchedulerState, node: NodeRecord): void {
  if (node.prefixes !== null) state.context.prefixes.forget(node.prefixes);
}

/** Never while no other node could take its work. */
function hasOtherNodes(node: NodeRecord): boolean {
  return node.seats.every((seat) => seat.pool.openSeats > 1);
}
