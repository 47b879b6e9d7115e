/**
 * Laying queued tasks anew: after pools came or went, and after the classes changed. Rare and paced: many nodes that
 * join at once cause one relay, not one each. New tasks use the new lanes at once.
 */
import type { DurationUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { ClassRecord } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { groupsOf, isGroupedAlike } from '../placement/bulkhead.ts';
import { forgetBreakers } from './breakers.ts';
import { reboundLimit } from './concurrency.ts';
import { dispatchLane, hasRoom } from './dispatch.ts';
import { nextLook } from './retry-hint.ts';
import { dequeue, enqueue, evict, settleOrDegrade } from './settle.ts';
import { applyConfig, classRecords, flowOf, type SchedulerState } from './state.ts';

const RELAY_EVERY_US: DurationUs = 250_000;

/** Relays if lanes are stale and the last time is long enough ago. */
export function relayWhenDue(state: SchedulerState): void {
  if (!state.fleet.lanesAreStale || state.now < state.relayAt) return;
  state.relayAt = state.now + RELAY_EVERY_US;
  relay(state, state.classes);
}

export function reconfigure(state: SchedulerState, config: SchedulerConfig): void {
  const classes = classRecords(config, state.classByName);
  const isGrouped = isGroupedAlike(state.config, config);
  const isSame =
    classes.length === state.classes.length &&
    classes.every((c, i) => c.config.name === state.classes[i]?.config.name);
  if (isSame) {
    for (const [index, record] of state.classes.entries()) {
      record.config = (classes[index] as ClassRecord).config;
      record.weight = (classes[index] as ClassRecord).weight;
    }
  } else {
    relay(state, classes, config);
  }
  applyConfig(state, config);
  if (state.modelsOff.size > 0) evictSwitchedOff(state);
  if (!state.gates.isWatching('breaker')) forgetBreakers(state);
  if (!isGrouped) state.fleet.regroup(groupsOf(config, state.gates));
  for (const lane of state.fleet.lanes.values()) lane.reweigh();
  for (const node of state.fleet.nodes.values()) {
    reboundLimit(state, node);
    state.fleet.place(node, state.now, config);
  }
}

/** Nobody waits for a model that is switched off. What runs goes on. */
function evictSwitchedOff(state: SchedulerState): void {
  for (const task of queuedTasks(state)) {
    if (state.modelsOff.has(task.model)) evict(state, task, 'no-node');
  }
}

/** Takes out every queued task and lays it into the lanes, and the classes, as they are now. O(queued x log). */
function relay(state: SchedulerState, classes: ClassRecord[], config: SchedulerConfig = state.config): void {
  const tasks = queuedTasks(state);
  for (const task of tasks) dequeue(state, task);
  const previous = new Map(state.classByName);
  for (const record of state.classes) {
    for (const flow of record.flows.values()) flow.forgetLanes();
    record.forgetModels();
  }
  state.classes = classes;
  state.classByName = new Map(classes.map((record) => [record.config.name, record]));
  state.fleet.relay(classes);
  state.heldLanes.clear();
  for (const task of state.tasks.inOrder()) moveFlow(state, task, config, previous);
  const lanes = new Set<Lane>();
  for (const task of tasks) {
    const lane = state.fleet.laneFor(task.model, task.spec.needs, task.spec.tenant);
    if (typeof lane === 'string') {
      settleOrDegrade(state, task, { kind: 'evicted', reason: 'no-node', hint: nextLook(state) });
      continue;
    }
    enqueue(lane, task);
    lanes.add(lane);
  }
  for (const lane of lanes) if (hasRoom(lane)) dispatchLane(state, lane);
}

/** A task of a removed class goes on in the default class. */
function moveFlow(
  state: SchedulerState,
  task: TaskRecord,
  config: SchedulerConfig,
  previous: ReadonlyMap<string, ClassRecord>,
): void {
  const { classRecord, tenant } = task.flow;
  const { name } = classRecord.config;
  const target = state.classByName.get(name) ?? state.classByName.get(config.defaultClass);
  if (target === undefined || (target === classRecord && previous.get(name) === target)) return;
  if (task.node !== null) task.flow.running -= 1;
  task.flow = flowOf(state, target, tenant);
  if (task.node !== null) task.flow.running += 1;
}

/** Every queued task in order of arrival. */
function queuedTasks(state: SchedulerState): TaskRecord[] {
  const tasks: TaskRecord[] = [];
  for (const record of state.classes) {
    for (const flow of record.victims) {
      for (let task = flow.oldest; task !== null; task = flow.newerThan(task)) tasks.push(task);
    }
  }
  return tasks.sort((a, b) => a.id - b.id);
}
