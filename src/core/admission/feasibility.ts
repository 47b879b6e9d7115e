/**
 * How long work would wait: capacity of a lane, share of a flow, and the gate that refuses before a queue forms
 * which its deadline could not survive.
 */
import type { DurationUs, Rate, RefUs } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';
import type { NodeRecord } from '../health/node-record.ts';
import type { Flow } from '../queue/flow.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { type At, keptShareOf } from './standing-queue.ts';

/** Rate of the lane's open nodes; a pool that several backlogged lanes share counts in equal parts. O(pools). */
export function laneCapacity(lane: Lane): Rate {
  let capacity = 0;
  for (const pool of lane.pools) {
    const sharers = pool.backloggedLanes + (lane.tasks === 0 ? 1 : 0);
    capacity += pool.capacity / Math.max(1, sharers);
  }
  return capacity;
}

/** How long the flow's waiting work in the lane takes at the flow's share, or Infinity without capacity; but for `ownUs` of it. */
export function flowWaitUs(lane: Lane, flow: Flow, ownUs: RefUs = 0): DurationUs {
  const queuedUs = lane.queuedUsOf(flow) - ownUs;
  if (queuedUs <= 0) return 0;
  const rate = laneCapacity(lane) * lane.shareOf(flow);
  return drainUs(queuedUs, lane.hasGroups ? Math.min(rate, capacityFor(lane, flow)) : rate);
}

/** What the bulkheads leave to the flow, however short its queue makes the others'. O(pools). */
function capacityFor(lane: Lane, flow: Flow): Rate {
  let capacity = 0;
  for (const { capacity: whole, group } of lane.pools)
    capacity += whole * (group?.partFor(lane.model, flow.tenant) ?? 1);
  return capacity;
}

/** How long everything that waits in the lane takes. */
export function laneDrainUs(lane: Lane): DurationUs {
  return drainUs(lane.workUs, laneCapacity(lane));
}

/**
 * The gate per flow, neutral to size: a flow whose queue already takes longer than a quarter of the deadline (and
 * 5 s) admits no more. Without it, noise in the estimates turns a third of the fleet into work that misses.
 *
 * The first of several classes is bound by its deadline alone: a burst of it waits behind running tasks of the others
 * for a moment, and a refusal would cost its users more than that moment. A lesser task may wait longer than a whole one:
 * it is there because whole ones are refused already.
 */
function wholeGateUs(task: TaskRecord, { now, config }: At): DurationUs {
  const { flowWaitDeadlineShare, flowWaitMsMax } = config.admission;
  const byDeadlineUs = (task.deadlineAt - now) * flowWaitDeadlineShare;
  const limitUs = isOfFirstClass(task, config) ? byDeadlineUs : Math.min(byDeadlineUs, flowWaitMsMax * 1_000);
  return task.alternative < 0 ? limitUs : limitUs * config.degrade.flowWaitTimes;
}

/**
 * Whose gate stays whole while the queue of its flow stands: a lesser answer, which comes because whole ones are refused, and who
 * comes back at the time that it was told, and so was promised a place.
 */
export function keepsWholeGate({ alternative, standing }: TaskRecord): boolean {
  return alternative >= 0 || standing === 'invited';
}

/**
 * The gate in force: the whole one, or what is left of it while the flow's queue stands. Where nothing of the flow waits, one
 * may, however little is left.
 */
export function gateUs(lane: Lane, task: TaskRecord, at: At): DurationUs {
  const wholeUs = wholeGateUs(task, at);
  if (keepsWholeGate(task)) return wholeUs;
  return wholeUs * keptShareOf(lane.flowHere(task.flow), at);
}

/** Of the most important class, where there are several. */
export function isOfFirstClass(task: TaskRecord, config: Pick<SchedulerConfig, 'classes'>): boolean {
  return task.flow.classRecord.index === 0 && config.classes.length > 1;
}

/** Least time in which any open node does what the deadline bounds, or Infinity when none is open. O(pools). */
export function bestServiceUs(lane: Lane, task: TaskRecord): DurationUs {
  const { model, isStream } = task;
  let best = Number.POSITIVE_INFINITY;
  for (const pool of lane.pools) {
    const node: NodeRecord | undefined = pool.fastest();
    if (node === undefined) continue;
    let rate = isStream ? node.rateInTurnOf(model) : 0;
    if (rate === 0) rate = node.soloRateOf(model, task.modelNumber);
    // Who begins streams soonest need not be who does the whole of them soonest.
    if (isStream) rate = Math.max(rate, pool.fastestInTurn()?.rateInTurnOf(model) ?? 0);
    best = Math.min(best, task.deadlineWorkUs / rate);
  }
  return best;
}

function drainUs(workUs: RefUs, rate: Rate): DurationUs {
  return workUs === 0 ? 0 : rate === 0 ? Number.POSITIVE_INFINITY : workUs / rate;
}
