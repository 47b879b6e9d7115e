/**
 * The learned bound on tasks at once of nodes that state no slots. Where an engine tells its load, it is learned from its
 * readings instead; when they stop, the bound that was learned from its pace meanwhile holds. In shadow the fixed bound holds
 * and what the one by pace would have kept away is counted.
 */
import type { DurationUs, RefUs } from '../../base/units.ts';
import { ConcurrencyLimit } from '../capacity/concurrency.ts';
import { ReadLimit } from '../capacity/read-limit.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { SchedulerState } from './state.ts';
import type { EngineReading } from './events.ts';
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
  if (!state.gates.isOn('concurrency')) node.slotsLearned = 0;
  else if (!isRead(state, node)) node.slotsLearned = node.concurrency.limit;
  else node.slotsLearned = node.readLimit === null ? 0 : Math.max(1, node.readLimit.limit);
}

/**
 * A reading tells how many wait inside the engine; what it does not tell, or what is no number, is not known any more. Returns
 * whether those who wait close the node: where none of ours runs, or no limit is learned.
 */
export function limitRead(state: SchedulerState, node: NodeRecord, { waiting = -1 }: EngineReading): boolean {
  const isTold = waiting >= 0;
  if (isTold && node.spec.slots === 0) {
    const max = fixedOf(state, node);
    node.readLimit ??= new ReadLimit(max);
    node.readLimit.told({ waiting, inflight: node.running.length, max }, state.now);
  } else node.readLimit = null;
  holdToLimit(state, node);
  return isTold && waiting > 0 && (node.slotsLearned === 0 || node.readLimit?.limit === 0);
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
  // Where it holds: the place that it closes and the fixed bound would have left. In shadow: a task it would have kept away.
  const { limit } = concurrency;
  const keepsAway =
    node.slotsLearned > 0 ? inflight === limit && inflight < fixedOf(state, node) : inflight > limit;
  if (!isRead(state, node) && keepsAway) state.gates.refuses('concurrency');
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
  node: NodeRecord,
): { readonly concurrency?: ConcurrencyView } {
  const { spec, concurrency, slotsLearned } = node;
  if (concurrency === null || spec.slots > 0 || !state.gates.isWatching('concurrency')) return {};
  const paceOfFew = Math.round(concurrency.paceOfFew * 1_000) / 1_000;
  const holds = slotsLearned > 0;
  if (holds && isRead(state, node)) {
    const limit = node.readLimit?.limit ?? 0;
    return { concurrency: { limit, settled: limit, holds, reason: 'readings', paceOfFew } };
  }
  const { limit, settled, reason } = concurrency;
  return { concurrency: { limit, settled, holds, reason, paceOfFew } };
}

function isRead({ now }: SchedulerState, { readAt }: NodeRecord): boolean {
  return now - readAt < READINGS_US;
}

function fixedOf(state: SchedulerState, node: NodeRecord): number {
  const { batchSlotsMax, slotsDefault } = state.config.placement;
  return node.spec.batching ? batchSlotsMax : slotsDefault;
}

function boundsOf(state: SchedulerState): { readonly start: number; readonly max: number } {
  const { batchSlotsMax, slotsDefault } = state.config.placement;
  return { start: slotsDefault, max: Math.max(slotsDefault, batchSlotsMax) };
}
