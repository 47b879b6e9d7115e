/** How a task gets past a full queue, at its arrival and when a failed attempt brings it back. */
import { victimsFor } from '../admission/bounds.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { choose } from '../placement/choose.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { hasRoom } from './dispatch.ts';
import { mayRunOn, meetsDeadlineSafely } from './in-time.ts';
import { evict } from './settle.ts';
import type { SchedulerState } from './state.ts';

/**
 * Sees to it that the task can enter the queue within its bounds, if others must leave for it. Where the queue is
 * full and a node is idle, the task takes the node instead and nobody leaves.
 */
export function makeWay(state: SchedulerState, lane: Lane, task: TaskRecord): NodeRecord | null | 'refused' {
  const victims = victimsFor(task, state.classes, state.config.bounds);
  if (victims !== null && victims.length === 0) return null;
  const idle = idleNodeFor(state, lane, task);
  if (idle !== null) return idle;
  if (victims === null) return 'refused';
  for (const victim of victims) evict(state, victim, 'evicted');
  return null;
}

/**
 * An idle node that does the task in time, for one that a gate or a bound would keep from waiting: such a node is
 * idle because those who wait expect to be done sooner elsewhere, so it takes nothing from them.
 */
export function idleNodeFor(state: SchedulerState, lane: Lane, task: TaskRecord): NodeRecord | null {
  if (!hasRoom(lane)) return null;
  choose(lane.pools, task, state.context, state.choice);
  const seat = state.choice.roomy;
  return seat !== null && meetsDeadlineSafely(state, task, seat.node) ? seat.node : null;
}

/**
 * An idle node that is too slow by what was measured long ago, and fast enough by its prior: the task tries it, at most
 * one per node and `exploreEveryMs`. No gate may need completed work in order to open again.
 */
export function doubtfulNodeFor(state: SchedulerState, lane: Lane, task: TaskRecord): NodeRecord | null {
  const untilUs = state.now - state.config.placement.exploreEveryMs * 1_000;
  for (const pool of lane.pools) {
    const node = pool.fastest();
    if (
      node === undefined ||
      !mayRunOn(state, task, node) ||
      node.running.length > 0 ||
      !node.hasRoom(state.now, state.config)
    )
      continue;
    const wasMeasured = node.observations > 0 && node.lastDoneAt <= untilUs;
    if (!wasMeasured || state.now + task.deadlineWorkUs / node.priorRate > task.deadlineAt) continue;
    node.doubtRates();
    state.fleet.place(node, state.now, state.config);
    return node;
  }
  return null;
}
