/**
 * The scheduler: one function from (state, event, now) to effects, composed of the rules in the neighbouring modules.
 *
 *   submit ──► admission (submit.ts) ──► lane (queue/) ──► dispatch (dispatch.ts) ──► assign
 *                                                             ▲                          │
 *                             node has room, mark ends ───────┘     attempts.ts ◄────────┘ ──► outcome
 *
 * Deterministic: equal config, seed and events give equal effects. Time is whatever the events say, and must not go
 * back. Nothing here throws for an expected case.
 */
import { assertNever, invariant } from '../../base/assert.ts';
import type { MonoUs } from '../../base/units.ts';
import { roundRobinRules } from '../baseline/round-robin.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { attemptEnded, attemptFirstByte, attemptSent, cancel, expire } from './attempts.ts';
import type { Scheduler } from './contract.ts';
import { viewsOf } from './describe.ts';
import { degradePending } from './degrade.ts';
import { dispatchLane, dispatchOpenedGroups, hasRoom } from './dispatch.ts';
import { SILENT_SINK } from './effects.ts';
import type { SchedulerEvent } from './events.ts';
import { type LadderWish, overrideOf } from '../overload/override.ts';
import { nodeTimerFired } from './marks.ts';
import { handleNode } from './node-events.ts';
import { reconfigure, relayWhenDue } from './relay.ts';
import { noteShutdown } from './retry-hint.ts';
import { saneResult, saneTask } from './sane.ts';
import { evict } from './settle.ts';
import { submit } from './submit.ts';
import { createState, type SchedulerRules, type SchedulerState } from './state.ts';

export function createScheduler(config: SchedulerConfig): Scheduler {
  const rules = config.policy === 'round-robin' ? roundRobinRules() : spillwayRules;
  const state = createState(config);
  return {
    apply(event, now, out) {
      invariant(now >= state.now, 'Time does not go back');
      state.now = now;
      state.context.now = now;
      state.out = out;
      rules.apply(state, event);
      state.out = SILENT_SINK;
    },
    nextWakeAt: () => rules.nextWakeAt(state),
    ...viewsOf(state),
  };
}

const spillwayRules: SchedulerRules = {
  apply(state, event) {
    advance(state);
    // Before the event, which may be about one of them; and after it.
    if (state.degrading.length > 0) degradePending(state);
    handle(state, event);
    if (state.fleet.groups.length > 0) dispatchOpenedGroups(state);
    if (state.degrading.length > 0) degradePending(state);
  },
  nextWakeAt,
};

/** What time alone brings: deadlines, ends of marks, stale lanes, nodes left idle on purpose. */
function advance(state: SchedulerState): void {
  if (state.wheel.isDue(state.now)) {
    for (const task of state.wheel.takeExpired(state.now)) expire(state, task);
  }
  while (state.nodeTimers.leastKey <= state.now) nodeTimerFired(state, state.nodeTimers.peek() as NodeRecord);
  relayWhenDue(state);
  if (state.ladder.sampleAt <= state.now) state.ladder.sample(state.now);
  if (state.ledgers.refusals.settleAt <= state.now) state.ledgers.refusals.settle(state.now);
  if (state.heldRecheckAt > state.now) return;
  state.heldRecheckAt = Number.POSITIVE_INFINITY;
  for (const lane of [...state.heldLanes]) {
    state.heldLanes.delete(lane);
    if (lane.tasks > 0 && hasRoom(lane)) dispatchLane(state, lane);
  }
}

function nextWakeAt(state: SchedulerState): MonoUs {
  const relay = state.fleet.lanesAreStale ? state.relayAt : Number.POSITIVE_INFINITY;
  return Math.min(
    state.wheel.nextAt(),
    state.nodeTimers.leastKey,
    relay,
    state.heldRecheckAt,
    state.ladder.sampleAt,
  );
}

function handle(state: SchedulerState, event: SchedulerEvent): void {
  switch (event.kind) {
    case 'submit':
      return submit(state, saneTask(event.task, state.now));
    case 'cancel':
    case 'attempt-sent':
    case 'attempt-first-byte':
    case 'attempt-ended':
      return handleTask(state, event);
    case 'node-registered':
    case 'node-removed':
    case 'node-heartbeat':
    case 'node-probed':
    case 'node-reading':
    case 'node-memory':
    case 'node-cordoned':
    case 'node-draining':
      return handleNode(state, event);
    case 'survival':
      state.shedClasses = event.shedClasses;
      return;
    case 'ladder-override':
      return overrideLadder(state, event.override);
    case 'config':
      return reconfigure(state, event.config);
    case 'shutdown':
      return shutDown(state);
    case 'tick':
      return;
    default:
      return assertNever(event);
  }
}

/** A task that is unknown has had its outcome and given back its permit: late news of it is no news. */
function handleTask(state: SchedulerState, event: Extract<SchedulerEvent, { taskId: number }>): void {
  const task = state.tasks.get(event.taskId);
  if (task === undefined) return;
  switch (event.kind) {
    case 'cancel':
      return cancel(state, task);
    case 'attempt-sent':
      return attemptSent(state, task);
    case 'attempt-first-byte':
      return attemptFirstByte(state, task);
    case 'attempt-ended':
      return attemptEnded(state, task, saneResult(event.result));
    default:
      return assertNever(event);
  }
}

function overrideLadder(state: SchedulerState, wish: LadderWish | null): void {
  state.ladder.setOverride(wish === null ? null : overrideOf(wish, state.now), state.now);
}

function shutDown(state: SchedulerState): void {
  state.isShuttingDown = true;
  noteShutdown(state);
  for (const task of state.tasks.inOrder()) if (!task.isRunning) evict(state, task, 'shutting-down');
}
