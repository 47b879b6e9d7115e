/**
 * Admission: what is refused before it queues, in the order of cost. While a node is idle that would finish the task
 * by its deadline, nothing is refused for queueing.
 */
import { bestServiceUs, flowWaitUs, gateUs } from '../admission/feasibility.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { ClassRecord } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import { TaskRecord } from '../queue/task-record.ts';
import { NO_RETRY, type RejectReason, type RetryHint } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import { assign, dispatchArrival, hasRoom } from './dispatch.ts';
import { doubtfulNodeFor, idleNodeFor, makeWay } from './make-way.ts';
import { enqueue, retryHint } from './settle.ts';
import { flowOf, type SchedulerState } from './state.ts';
import type { IneligibleReason } from './views.ts';

export function submit(state: SchedulerState, spec: TaskSpec): void {
  state.counts.arrived += 1;
  const record = classOf(state, spec);
  const refusal = refusedAtOnce(state, spec, record);
  if (refusal !== null) return reject(state, spec, refusal, NO_RETRY);
  const lane = state.fleet.laneFor(spec.model, spec.needs);
  if (typeof lane === 'string') return rejectWithoutLane(state, spec, lane);
  const task = new TaskRecord(spec, flowOf(state, record, spec.tenant), state.now);
  const bestUs = bestServiceUs(lane, task);
  if (bestUs === Number.POSITIVE_INFINITY) return reject(state, spec, 'no-node', soonestReturn(state, lane));
  const { admission } = state.config;
  if (!spec.deadlineWished) {
    task.deadlineAt = Math.max(task.deadlineAt, state.now + Math.ceil(admission.serviceTimesMin * bestUs));
  }
  if (state.now + bestUs > task.deadlineAt) {
    const doubtful = doubtfulNodeFor(state, lane, task);
    return doubtful === null ? reject(state, spec, 'too-slow', NO_RETRY) : admit(state, lane, task, doubtful);
  }
  const claimed = claimPastGate(state, lane, task);
  if (claimed === 'refused') {
    lane.saturatedUntil = state.now + admission.flowWaitMsMax * 1_000;
    return reject(state, spec, 'deadline-infeasible', retryHint(lane, task));
  }
  if (claimed !== null) return admit(state, lane, task, claimed);
  const way = makeWay(state, lane, task);
  if (way === 'refused') return reject(state, spec, 'queue-full', retryHint(lane, task));
  admit(state, lane, task, way);
}

function admit(state: SchedulerState, lane: Lane, task: TaskRecord, claimed: NodeRecord | null): void {
  state.tasks.set(task.spec.id, task);
  state.wheel.add(task);
  enqueue(lane, task);
  state.out.admitted(task.spec.id);
  if (claimed !== null) assign(state, lane, task, claimed);
  else if (hasRoom(lane)) dispatchArrival(state, lane, task);
}

function classOf(state: SchedulerState, spec: TaskSpec): ClassRecord {
  const known = state.classByName.get(spec.className) ?? state.classByName.get(state.config.defaultClass);
  return known ?? (state.classes.at(-1) as ClassRecord);
}

function refusedAtOnce(state: SchedulerState, spec: TaskSpec, record: ClassRecord): RejectReason | null {
  if (state.isShuttingDown) return 'shutting-down';
  if (record.index >= state.classes.length - state.shedClasses) return 'self-protection';
  // A fingerprint may be worked out when it is asked for.
  if (state.poison.size > 0 && state.poison.isMarked(spec.fingerprint, state.now)) return 'poison';
  return null;
}

/** The gate per flow, and the idle node that a task takes which it would refuse. */
function claimPastGate(state: SchedulerState, lane: Lane, task: TaskRecord): NodeRecord | null | 'refused' {
  const limitUs = gateUs(task, state.now, state.config);
  if (flowWaitUs(lane, task.flow) <= limitUs) return null;
  const idle = idleNodeFor(state, lane, task);
  if (idle !== null) return idle;
  return state.gates.refuses('flow-wait') ? 'refused' : null;
}

function reject(state: SchedulerState, spec: TaskSpec, reason: RejectReason, hint: RetryHint): void {
  state.counts.rejected += 1;
  const isPassing = reason === 'shutting-down' || reason === 'self-protection';
  state.out.outcome(spec.id, {
    kind: 'rejected',
    reason,
    hint: isPassing ? { retryable: true, afterUs: 0 } : hint,
  });
}

function rejectWithoutLane(state: SchedulerState, spec: TaskSpec, missing: IneligibleReason): void {
  if (missing === 'model-not-offered') {
    const isConfigured = state.config.models.some((model) => model.id === spec.model);
    const hint = isConfigured ? { retryable: true, afterUs: 0 } : NO_RETRY;
    return reject(state, spec, isConfigured ? 'no-node' : 'unknown-model', hint);
  }
  reject(state, spec, missing === 'context-too-long' ? 'context-too-long' : 'capability-missing', NO_RETRY);
}

/** When the first closed node of the lane may take work again. */
function soonestReturn(state: SchedulerState, lane: Lane): RetryHint {
  let soonest = Number.POSITIVE_INFINITY;
  for (const pool of lane.pools) {
    for (const { node } of pool.seats) {
      if (!node.cordoned && !node.draining)
        soonest = Math.min(soonest, Math.max(node.suspectUntil, node.ejectedUntil));
    }
  }
  return { retryable: true, afterUs: Number.isFinite(soonest) ? Math.max(0, soonest - state.now) : 0 };
}
