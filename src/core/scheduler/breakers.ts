/**
 * Breakers of models: what the ends of attempts say of them, whom they keep out, and what is remembered of them.
 * The gate `breaker` decides whether they hold; in shadow they are worked out, and refuse nothing.
 */
import type { DurationUs, MonoUs, TaskId } from '../../base/units.ts';
import {
  type BreakerView,
  ModelAnywhere,
  type ModelMemory,
  type ModelOnNode,
  WATCHED_MODELS_MAX,
} from '../health/model-breakers.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { isShutFor } from '../placement/eligibility.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { FailureKind, Refused } from '../request/outcome.ts';
import type { SchedulerState } from './state.ts';

/** What an attempt's failure speaks against, once its model was considered. */
export type Blame = 'node' | 'model' | 'node-at-once';

/** An attempt of the model ended well on the node. */
export function modelSucceeded(state: SchedulerState, node: NodeRecord, task: TaskRecord): void {
  const { model } = task;
  const { health } = state.config;
  const here = node.breakers?.get(model);
  if (here?.breaker.heeds(task.decidedAt)) {
    if (here.breaker.isTrial) here.failures.reset();
    here.breaker.succeeded(health);
    here.failures.record(true, state.now);
    if (here.isSpotless) node.forgetBreaker(model);
  }
  const anywhere = state.modelBreakers.get(model);
  if (!anywhere?.breaker.heeds(task.decidedAt)) return;
  if (anywhere.breaker.isTrial) {
    anywhere.failing.clear();
    anywhere.window.reset();
  }
  anywhere.breaker.succeeded(health);
  anywhere.failing.delete(node);
  anywhere.window.record(true, state.now);
  if (anywhere.isSpotless) state.modelBreakers.delete(model);
}

/** The first content byte of a probe proves as much, however long the rest takes. Tells whether it was one. */
export function modelAnswered(state: SchedulerState, node: NodeRecord, task: TaskRecord): boolean {
  const { model } = task;
  const isProbe = [node.breakers?.get(model), state.modelBreakers.get(model)].some(
    (entry) => entry?.breaker.isTrial === true && entry.breaker.heeds(task.decidedAt),
  );
  if (isProbe) modelSucceeded(state, node, task);
  return isProbe;
}

/**
 * An attempt of the model failed on the node. Tells what speaks against: the model as long as the node does its other
 * work. A connection that could not be made is the node's or the network's, never a model's.
 */
export function modelFailed(
  state: SchedulerState,
  node: NodeRecord,
  task: TaskRecord,
  failure: FailureKind,
): Blame {
  if (failure === 'connect' || !state.gates.isWatching('breaker')) return 'node';
  // That all nodes are full is no fault of the model.
  if (failure !== 'refused') failedAnywhere(state, node, task);
  return node.offers.size > 1 ? failedHere(state, node, task) : 'node';
}

function failedHere(state: SchedulerState, node: NodeRecord, task: TaskRecord): Blame {
  const here = node.breakerOf(task.model);
  const { breaker, failures } = here;
  const isHeld = state.gates.isOn('breaker');
  if (breaker.heeds(task.decidedAt)) {
    const isOverLimit = failures.record(false, state.now);
    if (isOverLimit || breaker.isTrial) {
      failures.acquit();
      breaker.open(state.now, state.config.health);
      state.gates.refuses('breaker');
      if (isHeld && hasFailedOtherwise(node, here)) return 'node-at-once';
      if (isHeld && node.culprit === here.model) node.failures.acquit();
    }
  }
  return isHeld && breaker.isTrial ? 'model' : 'node';
}

/** Whether another model of the node is shut too, and the node did nothing well since: then it is the node. */
function hasFailedOtherwise(node: NodeRecord, opened: ModelOnNode): boolean {
  for (const other of node.breakers?.values() ?? []) {
    if (other !== opened && other.breaker.isTrial && node.succeededAt < other.breaker.openedAt) return true;
  }
  return false;
}

function failedAnywhere(state: SchedulerState, node: NodeRecord, task: TaskRecord): void {
  const anywhere = watched(state, task.model);
  if (!anywhere?.breaker.heeds(task.decidedAt)) return;
  const { breaker, window, failing, model } = anywhere;
  window.record(false, state.now);
  failing.add(node);
  if (!breaker.isTrial && !anywhere.failsEverywhere(state.fleet.openSeats(model), state.now)) return;
  anywhere.explain();
  breaker.open(state.now, state.config.health);
}

function watched(state: SchedulerState, model: string): ModelAnywhere | undefined {
  const known = state.modelBreakers.get(model);
  if (known !== undefined || state.modelBreakers.size >= WATCHED_MODELS_MAX) return known;
  const created = new ModelAnywhere(model);
  state.modelBreakers.set(model, created);
  return created;
}

/** Whether the model's breaker keeps the task out, and until when. Where it is half-open, the first one passes. */
export function modelRefusal(state: SchedulerState, model: string, taskId: TaskId): Refused | null {
  if (state.modelBreakers.size === 0) return null;
  const anywhere = state.modelBreakers.get(model);
  if (anywhere === undefined || anywhere.breaker.passes(taskId, state.now, state.config.health)) return null;
  return state.gates.refuses('breaker') ? refusedBy(anywhere, state.now) : null;
}

/** What a task is told whose own attempt opened the breaker, or found it open; null while it is closed. */
export function modelShut(state: SchedulerState, model: string): Refused | null {
  if (state.modelBreakers.size === 0 || !state.gates.isOn('breaker')) return null;
  const anywhere = state.modelBreakers.get(model);
  return anywhere?.breaker.state(state.now) === 'open' ? refusedBy(anywhere, state.now) : null;
}

/** While a probe runs nobody knows how long: a retry is told the shortest time. */
function refusedBy({ breaker, cause }: ModelAnywhere, now: MonoUs): Refused {
  return { hint: { retryable: true, afterUs: Math.max(0, breaker.openUntil - now) }, cause };
}

/** Whether no open node of the lane may take the model. O(1) while the fastest one may, else O(nodes of the lane). */
export function isShutEverywhere(state: SchedulerState, lane: Lane, model: string): boolean {
  for (const pool of lane.pools) {
    const fastest = pool.fastest();
    if (fastest === undefined) continue;
    if (!isShutFor(fastest, model, state.context)) return false;
    for (const seat of pool.seats)
      if (seat.isIndexed && !isShutFor(seat.node, model, state.context)) return false;
  }
  return true;
}

/** What to tell where breakers keep the model off nodes of the lane that are open otherwise. O(nodes of the lane). */
export function shutCause(state: SchedulerState, lane: Lane, model: string): { readonly cause?: string } {
  let nodes = 0;
  let shut = 0;
  for (const pool of lane.pools) {
    for (const { node } of pool.seats) {
      nodes += 1;
      if (isShutFor(node, model, state.context)) shut += 1;
    }
  }
  return shut === 0 ? {} : { cause: `the model fails on ${shut} of its ${nodes} nodes` };
}

/** The task left, whatever became of it: if it was the probe of its model, another may be. */
export function releaseModelProbe(state: SchedulerState, model: string, taskId: TaskId): void {
  if (state.modelBreakers.size > 0) state.modelBreakers.get(model)?.breaker.release(taskId);
}

/** A node that is gone says nothing of its models any more. */
export function forgetNode(state: SchedulerState, node: NodeRecord): void {
  for (const anywhere of state.modelBreakers.values()) anywhere.failing.delete(node);
}

/** The gate was switched off: nothing is known of models any more. */
export function forgetBreakers(state: SchedulerState): void {
  state.modelBreakers.clear();
  for (const node of state.fleet.nodes.values()) node.breakers = null;
}

/** The task is sent to the node: where the model's breaker there is half-open, it is the probe. */
export function noteProbe(state: SchedulerState, node: NodeRecord, task: TaskRecord): void {
  const here = node.breakers?.get(task.model);
  here?.breaker.passes(task.id, state.now, state.config.health);
}

/** When the model could be tried on the node again, by its breaker there; 0 when it is not shut. */
export function modelReturnsAt(node: NodeRecord, model: string): MonoUs {
  return node.breakers?.get(model)?.breaker.openUntil ?? 0;
}

export function breakersOf(state: SchedulerState, node: NodeRecord, now: MonoUs): readonly BreakerView[] {
  const rows: BreakerView[] = [];
  for (const { model, breaker, failures } of node.breakers?.values() ?? []) {
    rows.push(rowOf(model, 'node', { breaker, now, successRatio: failures.successRatio }));
  }
  for (const { model, breaker, window } of state.modelBreakers.values()) {
    if (breaker.state(now) === 'closed' || !node.offers.has(model)) continue;
    const successRatio = window.size === 0 ? 1 : 1 - window.failures / window.size;
    rows.push(rowOf(model, 'everywhere', { breaker, now, successRatio }));
  }
  return rows.sort((a, b) => (a.model < b.model ? -1 : a.model > b.model ? 1 : a.scope < b.scope ? 1 : -1));
}

interface Told {
  readonly breaker: ModelOnNode['breaker'];
  readonly now: MonoUs;
  readonly successRatio: number;
}

function rowOf(
  model: string,
  scope: BreakerView['scope'],
  { breaker, now, successRatio }: Told,
): BreakerView {
  const openForUs: DurationUs = Math.max(0, breaker.openUntil - now);
  return {
    model,
    scope,
    state: breaker.state(now),
    openForMs: openForUs / 1_000,
    opens: breaker.opens,
    successRatio: Number(successRatio.toFixed(3)),
  };
}

/** Of each model what a restart must not forget. */
export function breakerMemory(state: SchedulerState, node: NodeRecord, now: MonoUs): readonly ModelMemory[] {
  const rows: ModelMemory[] = [];
  for (const { model, breaker, failures } of node.breakers?.values() ?? []) {
    const kept = failures.memory(now);
    rows.push({
      model,
      scope: 'node',
      ...breaker.memory(now),
      ...(kept === undefined ? {} : { failures: kept }),
    });
  }
  for (const { model, breaker, failing } of state.modelBreakers.values()) {
    if (!failing.has(node) || !breaker.isTrial) continue;
    rows.push({ model, scope: 'everywhere', ...breaker.memory(now) });
  }
  return rows;
}

/** Takes over what a node remembers of its models. What it does not offer any more is dropped. */
export function restoreBreakers(
  state: SchedulerState,
  node: NodeRecord,
  memory: readonly ModelMemory[],
): void {
  if (!state.gates.isWatching('breaker')) return;
  for (const row of memory) {
    if (!node.offers.has(row.model)) continue;
    if (row.scope === 'node') {
      if (node.offers.size === 1) continue;
      const here = node.breakerOf(row.model);
      here.breaker.restore(row, state.now);
      if (row.failures !== undefined) here.failures.restore(row.failures, state.now);
    } else {
      const anywhere = watched(state, row.model);
      if (anywhere === undefined) continue;
      anywhere.breaker.restore(row, state.now);
      anywhere.failing.add(node);
      if (anywhere.cause === '') anywhere.explain();
    }
  }
}
