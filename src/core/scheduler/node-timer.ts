/** The one timer of a node: the next instant at which one of its leases ends by itself. */
import { NO_HANDLE } from '../../base/keyed-heap.ts';
import type { MonoUs } from '../../base/units.ts';
import type { ModelOnNode } from '../health/model-breakers.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { SchedulerState } from './state.ts';

export function setNodeTimer(state: SchedulerState, node: NodeRecord): void {
  let at = node.heartbeatDueAt;
  at = soonerOf(at, node.suspectUntil, state.now);
  at = soonerOf(at, node.ejectedUntil, state.now);
  at = soonerOf(at, node.refusedUntil, state.now);
  at = soonerOf(at, node.readingUntil, state.now);
  at = soonerOf(at, node.drainLongUntil, state.now);
  if (node.breakers !== null) at = soonerOfBreakers(at, node.breakers.values(), state.now);
  const timers = state.nodeTimers;
  if (at === Number.POSITIVE_INFINITY) stopNodeTimer(state, node);
  else if (node.timer === NO_HANDLE) node.timer = timers.insert(node, node.order, at);
  else timers.move(node.timer, at);
}

export function stopNodeTimer(state: SchedulerState, node: NodeRecord): void {
  if (node.timer === NO_HANDLE) return;
  state.nodeTimers.delete(node.timer, node);
  node.timer = NO_HANDLE;
}

/** The earlier of the timer and the end of a lease; a lease that has ended asks for nothing. */
function soonerOf(at: MonoUs, lease: MonoUs, now: MonoUs): MonoUs {
  return lease > now && lease < at ? lease : at;
}

function soonerOfBreakers(at: MonoUs, breakers: Iterable<ModelOnNode>, now: MonoUs): MonoUs {
  let soonest = at;
  for (const { breaker } of breakers)
    soonest = soonerOf(soonerOf(soonest, breaker.openUntil, now), breaker.probeUntil, now);
  return soonest;
}
