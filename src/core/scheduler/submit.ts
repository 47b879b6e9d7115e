/**
 * Admission: what is refused before it queues, in the order of cost. While a node is idle that would finish the task
 * by its deadline, nothing is refused for queueing.
 */
import {
  bestServiceUs,
  flowWaitUs,
  gateUs,
  isOfFirstClass,
  keepsWholeGate,
} from '../admission/feasibility.ts';
import { waitShareOf } from '../admission/retry-shed.ts';
import { noteArrival, standingCause } from '../admission/standing-queue.ts';
import { isReplaceable } from '../degrade/alternative.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { Reservation } from '../limits/index.ts';
import type { ClassRecord } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { NO_RETRY, type Outcome, type RejectReason, type RetryHint } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import { shedByLadder } from './shed-by-ladder.ts';
import { bookEarlyRefusal, bookRefusal, bookReturn, expectDoneAt } from './book.ts';
import { isShutEverywhere, modelRefusal, releaseModelProbe, shutCause } from './breakers.ts';
import { assign } from './assign.ts';
import { noteSaturated } from './crowded.ts';
import { dispatchArrival, hasRoom, tellQueued } from './dispatch.ts';
import { isKeptInTime } from './in-time.ts';
import { preemptFor } from './preempt.ts';
import { doubtfulNodeFor, idleNodeFor, makeWay } from './make-way.ts';
import { afterRestart, classReturn, keepPlace, nextLook, retryHint, soonestReturn } from './retry-hint.ts';
import { endReservation, enqueue } from './settle.ts';
import { flowOf, type SchedulerState } from './state.ts';
import { tallyStanding } from './tallies.ts';
import type { IneligibleReason } from './views.ts';

export type Rejection = Extract<Outcome, { kind: 'rejected' }>;
const SHED_CAUSE = 'a repeated request, while others wait for their first attempt';

export function submit(state: SchedulerState, spec: TaskSpec): void {
  state.counts.arrived += 1;
  const record = classOf(state, spec);
  record.tally.arrived += 1;
  const early = refusedAtOnce(state, spec, record);
  if (early !== null && spec.alternatives === undefined) {
    bookEarlyRefusal(state, spec, { outcome: early, classIndex: record.index });
    return reject(state, spec, early);
  }
  const task = state.records.take(spec, flowOf(state, record, spec.tenant), state.now);
  if (early === null && spec.alternatives !== undefined && beginsWithLess(state, task)) {
    state.degrading.push({ task, end: null });
    return;
  }
  const refusal = early ?? enter(state, task);
  if (refusal === null) return;
  if (spec.alternatives !== undefined && isReplaceable(refusal)) state.degrading.push({ task, end: refusal });
  else {
    if (task.reservation !== null) endReservation(state, task);
    keepPlace(state, task, refusal);
    bookRefusal(state, task, refusal);
    reject(state, spec, refusal);
    state.records.give(task);
  }
}

/** Whether the overload ladder asks the task to begin with a lesser answer. */
function beginsWithLess(state: SchedulerState, task: TaskRecord): boolean {
  const { ladder, now } = state;
  if (!ladder.isRaised) return false;
  const lane = state.fleet.laneFor(task.model, task.spec.needs, task.spec.tenant);
  if (typeof lane === 'string') return false;
  const { model } = task;
  const own = ladder.of(model, state.fleet.modelNumber(model), lane, now);
  return ladder.degradesClass(task.flow.classRecord.index, own, now);
}

/** Admits the task, at its arrival or with another lesser answer, or tells why not. */
export function enter(state: SchedulerState, task: TaskRecord): Rejection | null {
  const { spec } = task;
  const limited = state.limits.isActive ? reserveLimits(state, task) : null;
  if (limited !== null) return limited;
  if (state.modelsOff.size > 0 && state.modelsOff.has(spec.model)) return SWITCHED_OFF;
  const lane = state.fleet.laneFor(spec.model, spec.needs, spec.tenant);
  if (typeof lane === 'string') return refusedWithoutLane(state, spec, lane);
  task.modelNumber = state.fleet.modelNumber(spec.model);
  task.ladder = state.ladder.of(spec.model, task.modelNumber, lane, state.now);
  const shed = state.ladder.isRaised ? shedByLadder(state, lane, task) : null;
  if (shed !== null) return shed;
  const shut = modelRefusal(state, spec.model, spec.id);
  if (shut !== null) return { kind: 'rejected', reason: 'no-node', ...shut };
  const refusal = enterLane(state, lane, task);
  if (refusal !== null) releaseModelProbe(state, spec.model, spec.id);
  return refusal;
}

function enterLane(state: SchedulerState, lane: Lane, task: TaskRecord): Rejection | null {
  const { spec } = task;
  const bestUs = bestServiceUs(lane, task);
  if (bestUs === Number.POSITIVE_INFINITY || isShutEverywhere(state, lane, spec.model))
    return {
      ...rejection('no-node', soonestReturn(state, lane, spec.model)),
      ...shutCause(state, lane, spec.model),
    };
  const { admission } = state.config;
  if (!spec.deadlineWished) {
    const leastUs = Math.ceil(admission.serviceTimesMin * bestUs);
    task.deadlineAt = Math.max(task.deadlineAt, task.submittedAt + leastUs);
  }
  const isTooSlow = state.now + bestUs > task.deadlineAt;
  if (isTooSlow && !(task.prefix !== null && isKeptInTime(state, lane, { task, margin: 1 }))) {
    const doubtful = doubtfulNodeFor(state, lane, task);
    return doubtful === null ? TOO_SLOW : admit(state, lane, task, doubtful);
  }
  const claimed = claimPastGate(state, lane, task);
  noteAtGate(state, lane, task, typeof claimed === 'string');
  expectDoneAt(task, task.submittedAt + task.etaUs + bestUs);
  if (task.standing === 'invited') bookReturn(state, typeof claimed !== 'string');
  if (claimed === 'shed') return { ...rejection('shed', retryHint(state, lane, task)), cause: SHED_CAUSE };
  if (claimed === 'refused') {
    noteSaturated(state, lane, task);
    return refusedAtGate(state, lane, task);
  }
  if (claimed !== null) return admit(state, lane, task, claimed);
  const way = makeWay(state, lane, task);
  if (way === 'refused') return rejection('queue-full', retryHint(state, lane, task));
  return admit(state, lane, task, way);
}

/** The cause is told only where the gate is not the usual one, which the configuration tells. */
function refusedAtGate(state: SchedulerState, lane: Lane, task: TaskRecord): Rejection {
  const refusal = rejection('deadline-infeasible', retryHint(state, lane, task));
  const cause = standingCause(lane.flowHere(task.flow), state);
  return cause === '' || keepsWholeGate(task) ? refusal : { ...refusal, cause };
}

function admit(state: SchedulerState, lane: Lane, task: TaskRecord, claimed: NodeRecord | null): null {
  const { id } = task;
  // With a lesser answer it enters anew, and was inside all the time.
  if (!state.tasks.has(id)) state.tallies.residence.enter(state.now);
  state.tasks.add(task);
  if (task.wheelHandle < 0) state.wheel.add(task);
  task.isTold = false;
  enqueue(lane, task);
  if (state.offered !== null) state.out.degraded(id, state.offered);
  state.out.admitted(id);
  if (claimed !== null) assign(state, lane, task, claimed);
  else if (hasRoom(lane)) dispatchArrival(state, lane, task);
  if (task.flow.classRecord.index === 0) preemptFor(state, task);
  if (state.watch !== null && task.lane !== null) tellQueued(state, task.lane, task);
  return null;
}

/**
 * Reserves what the task may use of its limits; with a lesser answer anew, since another model has other limits. In shadow
 * a refusal is counted and reserves nothing, as it would not if it held.
 */
function reserveLimits(state: SchedulerState, task: TaskRecord): Rejection | null {
  endReservation(state, task);
  const reserved = state.limits.reserve(task.spec, task.flow.classRecord.config.name, state.now);
  if (reserved === null || reserved instanceof Reservation) {
    task.reservation = reserved;
    return null;
  }
  return state.gates.refuses('limits') ? { kind: 'rejected', reason: 'rate-limited', ...reserved } : null;
}

function classOf(state: SchedulerState, spec: TaskSpec): ClassRecord {
  // There are a few, and most names are the same string: looking at each is quicker than a look-up.
  for (const record of state.classes) if (record.config.name === spec.className) return record;
  const known = state.classByName.get(state.config.defaultClass);
  return known ?? (state.classes.at(-1) as ClassRecord);
}

export function refusedAtOnce(state: SchedulerState, spec: TaskSpec, record: ClassRecord): Rejection | null {
  if (state.isShuttingDown) return rejection('shutting-down', afterRestart(state));
  if (record.index >= state.classes.length - state.shedClasses)
    return rejection('self-protection', classReturn(state, record));
  // A fingerprint may be worked out when it is asked for.
  if (state.poison.marked > 0 && state.poison.isMarked(spec.fingerprint, state.now)) return POISON;
  return null;
}

/**
 * The gate per flow, closed sooner for those who come back before their time, and the idle node that a task takes which
 * it would refuse.
 */
function claimPastGate(
  state: SchedulerState,
  lane: Lane,
  task: TaskRecord,
): NodeRecord | null | 'refused' | 'shed' {
  const standing = (task.standing ??= tallyStanding(state, task));
  const limitUs = gateUs(lane, task, state);
  const waitUs = flowWaitUs(lane, task.flow);
  expectDoneAt(task, state.now + waitUs);
  const isExempt = isOfFirstClass(task, state.config) || task.alternative >= 0;
  const share = isExempt ? 1 : waitShareOf(standing, lane.flowHere(task.flow), state.now);
  if (standing !== 'repeat') task.ladder?.noteGate(task.flow.classRecord.index, share * limitUs);
  if (waitUs <= share * limitUs) return null;
  const isRepeat = standing === 'repeat' && !isExempt;
  const isAtStake =
    (isRepeat && state.gates.isOn('retry-shed')) || (waitUs > limitUs && state.gates.isOn('flow-wait'));
  const idle = idleNodeFor(state, lane, task);
  // A gate that refuses nothing changes nothing: the task waits for the node that is best for it.
  if (idle !== null) return isAtStake ? idle : null;
  if (isRepeat) {
    if (state.gates.refuses('retry-shed')) return 'shed';
    if (waitUs <= limitUs) return null;
  }
  return state.gates.refuses('flow-wait') ? 'refused' : null;
}

/** Where the gate refuses nothing, no queue is shortened. */
function noteAtGate(state: SchedulerState, lane: Lane, task: TaskRecord, isRefused: boolean): void {
  const laneFlow = lane.flowHere(task.flow);
  if (laneFlow !== undefined && task.alternative < 0 && state.gates.isOn('flow-wait'))
    noteArrival(laneFlow, isRefused, state);
}

function reject(state: SchedulerState, spec: TaskSpec, refusal: Rejection): void {
  state.counts.rejected += 1;
  state.tallies.rejected(refusal.reason);
  state.out.outcome(spec.id, refusal);
}

function rejection(reason: RejectReason, hint: RetryHint): Rejection {
  return { kind: 'rejected', reason, hint };
}

const SOON: RetryHint = Object.freeze({ retryable: true, afterUs: 0 });
const POISON = rejection('poison', NO_RETRY);
const TOO_SLOW = rejection('too-slow', NO_RETRY);
const RESERVED: Rejection = {
  ...rejection('no-node', NO_RETRY),
  cause: 'every node that could serve it is of a node group that is reserved to others',
};
const SWITCHED_OFF: Rejection = {
  ...rejection('no-node', SOON),
  cause: 'the model is switched off by configuration',
};

function refusedWithoutLane(state: SchedulerState, spec: TaskSpec, missing: IneligibleReason): Rejection {
  if (missing === 'model-not-offered') {
    const isConfigured = state.config.models.some((model) => model.id === spec.model);
    return isConfigured ? rejection('no-node', nextLook(state)) : rejection('unknown-model', NO_RETRY);
  }
  if (missing === 'bulkhead') {
    state.gates.refuses('bulkhead');
    return RESERVED;
  }
  return rejection(missing === 'context-too-long' ? 'context-too-long' : 'capability-missing', NO_RETRY);
}
