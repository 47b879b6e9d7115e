/** The one timer of a node: the next instant at which one of its leases ends by itself. */
import type { NodeRecord } from '../health/node-record.ts';
import type { SchedulerState } from './state.ts';

export function setNodeTimer(state: SchedulerState, node: NodeRecord): void {
  let at = node.heartbeatDueAt;
  const { suspectUntil, ejectedUntil, refusedUntil, readingUntil, drainLongUntil } = node;
  for (const lease of [suspectUntil, ejectedUntil, refusedUntil, readingUntil, drainLongUntil]) {
    if (lease > state.now) at = Math.min(at, lease);
  }
  const timers = state.nodeTimers;
  if (at === Number.POSITIVE_INFINITY) {
    if (node.timer.isInHeap) timers.remove(node.timer);
  } else if (node.timer.isInHeap) timers.update(node.timer, at);
  else timers.push(node.timer, at);
}
