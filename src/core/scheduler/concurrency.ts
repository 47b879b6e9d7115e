/**
 * The learned bound on tasks at once of nodes that state no slots. An engine that tells its load is held by its readings
 * instead; when they stop, the bound that was learned meanwhile holds. In shadow the fixed bound holds and what the
 * learned one would have kept away is counted.
 */
import type { DurationUs, RefUs } from '../../base/units.ts';
import { ConcurrencyLimit } from '../capacity/concurrency.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { SchedulerState } from './state.ts';
import type { ConcurrencyView } from './views.ts';

/** How long readings hold instead after the last one: a node that is not used is not read. */
const READINGS_US: DurationUs = 600_000_000;

/** Brings the bound of a node in line with the gate, its statement and its readings. Call before it is placed. */
export function holdToLimit(state: SchedulerState, node: NodeRecord): void {
  if (node.spec.slots > 0 || !state.gates.isWatching('concurrency')) {
    node.slotsLearned = 0;
    return;
  }
  node.concurrency ??= new ConcurrencyLimit(boundsOf(state));
  const isRead = state.now - node.readAt < READINGS_US;
  node.slotsLearned = isRead || state.config.gates.concurrency !== 'on' ? 0 : node.concurrency.limit;
}

/** After the configuration changed. */
export function reboundLimit(state: SchedulerState, node: NodeRecord): void {
  node.concurrency?.configure(boundsOf(state));
  holdToLimit(state, node);
}

/** A task is about to start on the node. */
export function limitStarting(state: SchedulerState, node: NodeRecord): void {
  const { concurrency } = node;
  if (concurrency === null || node.spec.slots > 0) return;
  const inflight = node.running.length + 1;
  concurrency.starting(inflight > 1 ? 0 : state.now - node.lastDoneAt, state.now);
  holdToLimit(state, node);
  const isRead = state.now - node.readAt < READINGS_US;
  // Where it holds: the place that it closes and the fixed bound would have left. In shadow: a task it would have kept away.
  const { limit } = concurrency;
  const keepsAway =
    node.slotsLearned > 0 ? inflight === limit && inflight < fixedOf(state, node) : inflight > limit;
  if (!isRead && keepsAway) state.gates.refuses('concurrency');
}

/** A task ended well there. */
export function limitServed(
  state: SchedulerState,
  node: NodeRecord,
  done: { readonly workUs: RefUs; readonly elapsedUs: DurationUs; readonly inflight: number },
): void {
  node.concurrency?.observe(done, state.now);
  holdToLimit(state, node);
}

/** The node said that it is full. */
export function limitRefused(state: SchedulerState, node: NodeRecord): void {
  node.concurrency?.refused(node.running.length + 1);
  holdToLimit(state, node);
}

export function limitView(
  state: SchedulerState,
  { spec, concurrency, slotsLearned }: NodeRecord,
): { readonly concurrency?: ConcurrencyView } {
  if (concurrency === null || spec.slots > 0 || !state.gates.isWatching('concurrency')) return {};
  const { limit, settled, reason, paceOfFew } = concurrency;
  const pace = Math.round(paceOfFew * 1_000) / 1_000;
  return { concurrency: { limit, settled, holds: slotsLearned > 0, reason, paceOfFew: pace } };
}

function fixedOf(state: SchedulerState, node: NodeRecord): number {
  const { batchSlotsMax, slotsDefault } = state.config.placement;
  return node.spec.batching ? batchSlotsMax : slotsDefault;
}

function boundsOf(state: SchedulerState): { readonly start: number; readonly max: number } {
  const { batchSlotsMax, slotsDefault } = state.config.placement;
  return { start: slotsDefault, max: Math.max(slotsDefault, batchSlotsMax) };
}
