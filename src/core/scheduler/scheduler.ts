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
import { msToUs } from '../../base/units.ts';
import type { MonoUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { attemptEnded, attemptFirstByte, attemptSent, cancel, expire } from './attempts.ts';
import type { Scheduler } from './contract.ts';
import { accountsOf, dumpOf, memoryOf, nodeView, queueView } from './describe.ts';
import { dispatchLane, dispatchNode, hasRoom } from './dispatch.ts';
import type { EffectSink } from './effects.ts';
import type { SchedulerEvent } from './events.ts';
import { explainTask } from './explain.ts';
import { heartbeat, nodeTimerFired, probed, refreshNode } from './marks.ts';
import { nodeReading, registerNode, removeNode } from './node-events.ts';
import { reconfigure, relayWhenDue } from './relay.ts';
import { evict } from './settle.ts';
import { submit } from './submit.ts';
import { createState, type SchedulerState, workModelOf } from './state.ts';

const SILENT: EffectSink = {
  admitted() {},
  assign() {},
  abort() {},
  outcome() {},
  nodeState() {},
  nodeDrained() {},
};

export function createScheduler(config: SchedulerConfig): Scheduler {
  const state = createState(config, SILENT);
  return {
    apply(event, now, out) {
      invariant(now >= state.now, 'Time does not go back');
      state.now = now;
      state.context.now = now;
      state.out = out;
      advance(state);
      handle(state, event);
      state.out = SILENT;
    },
    nextWakeAt: () => nextWakeAt(state),
    estimate: (model, shape) => workModelOf(state, model).estimate(shape),
    learn: (model, shape, usage) => workModelOf(state, model).learn(shape, usage),
    classDeadlineUs(className, stream) {
      const record = state.classByName.get(className) ?? state.classByName.get(state.config.defaultClass);
      invariant(record !== undefined, 'The default class is configured');
      return msToUs(stream ? record.config.firstByteMs : record.config.completionMs);
    },
    accounts: () => accountsOf(state),
    nodes: (now) => [...state.fleet.nodes.values()].map((node) => nodeView(state, node, now)),
    node(nodeId, now) {
      const node = state.fleet.nodes.get(nodeId);
      return node === undefined ? undefined : nodeView(state, node, now);
    },
    nodeMemory(nodeId, now) {
      const node = state.fleet.nodes.get(nodeId);
      return node === undefined ? undefined : memoryOf(node, now);
    },
    models: () => state.fleet.models(),
    queue: (now) => queueView(state, now),
    explain(taskId, now) {
      const task = state.tasks.get(taskId);
      return task === undefined || task.isSettled ? undefined : explainTask(state, task, now);
    },
    dump: (now) => dumpOf(state, now),
  };
}

/** What time alone brings: deadlines, ends of marks, stale lanes, nodes left idle on purpose. */
function advance(state: SchedulerState): void {
  for (const task of state.wheel.takeExpired(state.now)) expire(state, task);
  for (let node = state.nodeTimers.peek(); node !== undefined && node.heapKey <= state.now; node = state.nodeTimers.peek()) {
    nodeTimerFired(state, node);
  }
  relayWhenDue(state);
  if (state.heldRecheckAt > state.now) return;
  state.heldRecheckAt = Number.POSITIVE_INFINITY;
  for (const lane of [...state.heldLanes]) {
    state.heldLanes.delete(lane);
    if (lane.tasks > 0 && hasRoom(lane)) dispatchLane(state, lane);
  }
}

function nextWakeAt(state: SchedulerState): MonoUs {
  const timer = state.nodeTimers.peek()?.heapKey ?? Number.POSITIVE_INFINITY;
  const relay = state.fleet.lanesAreStale ? state.relayAt : Number.POSITIVE_INFINITY;
  return Math.min(state.wheel.nextAt(), timer, relay, state.heldRecheckAt);
}

function handle(state: SchedulerState, event: SchedulerEvent): void {
  switch (event.kind) {
    case 'submit':
      return submit(state, event.task);
    case 'cancel':
    case 'attempt-sent':
    case 'attempt-first-byte':
    case 'attempt-ended':
      return handleTask(state, event);
    case 'node-registered':
      return registerNode(state, event.node, event.memory);
    case 'node-removed':
    case 'node-heartbeat':
    case 'node-probed':
    case 'node-reading':
    case 'node-cordoned':
    case 'node-draining':
      return handleNode(state, event);
    case 'survival':
      state.shedClasses = event.shedClasses;
      return;
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
      return attemptEnded(state, task, event.result);
    default:
      return assertNever(event);
  }
}

function handleNode(state: SchedulerState, event: Exclude<Extract<SchedulerEvent, { nodeId: string }>, never>): void {
  const node = state.fleet.nodes.get(event.nodeId);
  if (node === undefined) return;
  switch (event.kind) {
    case 'node-removed':
      return removeNode(state, node);
    case 'node-heartbeat':
      return heartbeat(state, node);
    case 'node-probed':
      return probed(state, node, event.alive);
    case 'node-reading':
      return nodeReading(state, node, event.reading);
    case 'node-cordoned':
      node.cordoned = event.cordoned;
      return reopen(state, node);
    case 'node-draining':
      node.draining = event.draining;
      return reopen(state, node);
    default:
      return assertNever(event);
  }
}

function reopen(state: SchedulerState, node: NodeRecord): void {
  refreshNode(state, node);
  dispatchNode(state, node);
}

function shutDown(state: SchedulerState): void {
  state.isShuttingDown = true;
  for (const task of [...state.tasks.values()]) if (!task.isRunning) evict(state, task, 'shutting-down');
}
