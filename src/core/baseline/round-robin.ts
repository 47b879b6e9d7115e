/**
 * The old design, for comparison: nodes take turns as if all were equal, and each has a queue of its own without a
 * bound. No classes, no deadlines, no feasibility, no retries. What it does, it does properly: a request whose client
 * left is taken out of its queue, nodes that are closed by a mark are passed over, and slots are respected.
 *
 * Same contract, same books, same transport as the product's rules; only the decisions differ.
 */
import type { MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { NOBODY, TaskRecord } from '../queue/task-record.ts';
import { type AttemptResult, NO_RETRY, type RejectReason } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import type { SchedulerEvent } from '../scheduler/events.ts';
import { bookAttempt } from '../scheduler/book.ts';
import { nodeTimerFired } from '../scheduler/marks.ts';
import { handleNode } from '../scheduler/node-events.ts';
import { applyConfig, flowOf, type SchedulerRules, type SchedulerState } from '../scheduler/state.ts';
import { forget, settle } from '../scheduler/settle.ts';
import { tallyAssigned } from '../scheduler/tallies.ts';

interface Turns {
  /** Tasks bound to a node and waiting for it, in order of arrival. */
  readonly queues: Map<NodeRecord, Set<TaskRecord>>;
  readonly boundTo: Map<TaskRecord, NodeRecord>;
  /** Whose turn it is, per model. */
  readonly turns: Map<string, number>;
}

export function roundRobinRules(): SchedulerRules {
  const turns: Turns = { queues: new Map(), boundTo: new Map(), turns: new Map() };
  return {
    apply: (state, event) => apply(state, turns, event),
    nextWakeAt: (state): MonoUs => state.nodeTimers.leastKey,
  };
}

function apply(state: SchedulerState, turns: Turns, event: SchedulerEvent): void {
  while (state.nodeTimers.leastKey <= state.now) {
    const node = state.nodeTimers.peek() as NodeRecord;
    nodeTimerFired(state, node);
    pump(state, turns, node);
  }
  if (event.kind === 'submit') return submit(state, turns, event.task);
  if (event.kind === 'config') return applyConfig(state, event.config);
  if (event.kind === 'shutdown') return shutDown(state, turns);
  if ('taskId' in event) return applyToTask(state, turns, event);
  if (!('nodeId' in event || event.kind === 'node-registered')) return;
  const removed = event.kind === 'node-removed' ? state.fleet.nodes.get(event.nodeId) : undefined;
  handleNode(state, event);
  if (removed !== undefined) return abandon(state, turns, removed);
  const node = state.fleet.nodes.get(event.kind === 'node-registered' ? event.node.id : event.nodeId);
  if (node !== undefined) pump(state, turns, node);
}

function applyToTask(
  state: SchedulerState,
  turns: Turns,
  event: Extract<SchedulerEvent, { taskId: number }>,
): void {
  const task = state.tasks.get(event.taskId);
  if (task === undefined) return;
  if (event.kind === 'attempt-sent') task.sentAt = state.now;
  if (event.kind === 'attempt-first-byte') task.hasFirstByte = true;
  if (event.kind === 'cancel') cancel(state, turns, task);
  if (event.kind === 'attempt-ended') end(state, turns, task, event.result);
}

function submit(state: SchedulerState, turns: Turns, spec: TaskSpec): void {
  state.counts.arrived += 1;
  const node = state.isShuttingDown ? undefined : nextNode(state, turns, spec.model);
  if (node === undefined) {
    const reason: RejectReason = state.isShuttingDown ? 'shutting-down' : 'no-node';
    state.counts.rejected += 1;
    state.out.outcome(spec.id, { kind: 'rejected', reason, hint: NO_RETRY });
    return;
  }
  const record = state.classByName.get(spec.className) ?? state.classes[0];
  if (record === undefined) return;
  const task = new TaskRecord(spec, flowOf(state, record, spec.tenant), state.now);
  record.tally.arrived += 1;
  state.tasks.add(task);
  state.tallies.residence.enter(state.now);
  task.flow.enter(task);
  queueOf(turns, node).add(task);
  turns.boundTo.set(task, node);
  state.out.admitted(spec.id);
  pump(state, turns, node);
}

/** The next open node in turn that offers the model. */
function nextNode(state: SchedulerState, turns: Turns, model: string): NodeRecord | undefined {
  const nodes = [...state.fleet.nodes.values()].filter(
    (node) => node.offers.has(model) && node.isOpen(state.now),
  );
  const turn = turns.turns.get(model) ?? 0;
  turns.turns.set(model, turn + 1);
  return nodes[turn % nodes.length];
}

function queueOf(turns: Turns, node: NodeRecord): Set<TaskRecord> {
  const known = turns.queues.get(node);
  if (known !== undefined) return known;
  const created = new Set<TaskRecord>();
  turns.queues.set(node, created);
  return created;
}

function pump(state: SchedulerState, turns: Turns, node: NodeRecord): void {
  const queue = queueOf(turns, node);
  const slots = node.spec.slots > 0 ? node.spec.slots : state.config.placement.slotsDefault;
  for (const task of queue) {
    if (node.running.length >= slots) return;
    unqueue(turns, task);
    task.flow.running += 1;
    task.flow.classRecord.tally.running += 1;
    task.isRunning = true;
    task.node = node;
    task.attempts = 1;
    tallyAssigned(state, task);
    task.decidedAt = state.now;
    state.counts.running += 1;
    node.start(task, state.now);
    task.startInflight = node.running.length;
    state.out.assign(task.id, node.spec.id, 1);
  }
}

function end(state: SchedulerState, turns: Turns, task: TaskRecord, result: AttemptResult): void {
  const { node } = task;
  if (node === null) return;
  const elapsedUs = Math.max(1, state.now - (task.sentAt === 0 ? task.decidedAt : task.sentAt));
  bookAttempt(state, task, { node, elapsedUs, result, heir: NOBODY });
  node.release(task, state.now);
  task.flow.running -= 1;
  task.flow.classRecord.tally.running -= 1;
  task.node = null;
  if (task.isSettled) {
    forget(state, task);
  } else {
    state.counts.running -= 1;
    if (result.kind === 'ok') {
      node.learn(task.model, task.workUs, elapsedUs, task.startInflight);
      node.verified = true;
      bookServed(state, task);
      settle(state, task, { kind: 'served' });
    } else if (result.kind === 'aborted') settle(state, task, { kind: 'cancelled' });
    else
      settle(state, task, {
        kind: 'failed',
        reason: result.kind === 'declined' ? 'declined' : 'node-failed',
        hint: NO_RETRY,
      });
  }
  pump(state, turns, node);
}

/** Nothing is aborted here when its deadline passes: a whole answer that comes after it is for nobody. */
function bookServed({ ledgers, now }: SchedulerState, task: TaskRecord): void {
  if (!task.isStream && now > task.deadlineAt) ledgers.waste.waste('late', task.workUs);
  else ledgers.waste.usefulUs += task.workUs;
}

function cancel(state: SchedulerState, turns: Turns, task: TaskRecord): void {
  if (task.isSettled) return;
  if (task.node === null) unqueue(turns, task);
  const running = task.node;
  settle(state, task, { kind: 'cancelled' });
  if (running !== null) state.out.abort(task.id, running.spec.id);
}

function abandon(state: SchedulerState, turns: Turns, node: NodeRecord): void {
  for (const task of queueOf(turns, node)) {
    unqueue(turns, task);
    settle(state, task, { kind: 'failed', reason: 'node-failed', hint: NO_RETRY });
  }
  turns.queues.delete(node);
}

function shutDown(state: SchedulerState, turns: Turns): void {
  state.isShuttingDown = true;
  for (const task of [...turns.boundTo.keys()]) {
    unqueue(turns, task);
    settle(state, task, { kind: 'evicted', reason: 'shutting-down', hint: NO_RETRY });
  }
}

function unqueue(turns: Turns, task: TaskRecord): void {
  const node = turns.boundTo.get(task);
  if (node === undefined) return;
  turns.boundTo.delete(task);
  queueOf(turns, node).delete(task);
  task.flow.leave(task);
}
