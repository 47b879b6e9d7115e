/**
 * Hard bounds on what is queued: tasks, bytes and work, in all, per class and per tenant. When full, one in, one
 * out: from the lowest class, from the flow with the most queued work in it, the newest leaves, and an arrival that
 * would itself be that one is refused. A more important task is never evicted for a less important one. Whoever is
 * at a share of their own gives way to themselves: a class to its lighter flows, a tenant to its higher classes.
 */
import type { TenantId } from '../../base/units.ts';
import type { BoundsConfig } from '../config/types.ts';
import type { ClassRecord, Flow, Holding } from '../queue/flow.ts';
import type { TaskRecord } from '../queue/task-record.ts';

/** Evictions that one arrival may cause; a large task that needs more is refused instead of stalling the loop. */
export const VICTIMS_PER_ARRIVAL_MAX = 16;

/** Makes room for an arrival: the tasks that must leave for it, or null when the arrival is refused. */
export function victimsFor(
  arrival: TaskRecord,
  classes: readonly ClassRecord[],
  bounds: BoundsConfig,
): readonly TaskRecord[] | null {
  const { flow } = arrival;
  const own = flow.classRecord;
  const total = totalOf(classes);
  const isFree =
    !isOver(flow.tenantQueued, arrival, bounds, bounds.tenantShareMax) &&
    !isOver(own.queued, arrival, bounds, bounds.classShareMax) &&
    !isOver(total, arrival, bounds, 1);
  if (isFree) return NOBODY;
  if (isRefusedAtOnce(arrival, { classes, bounds, total })) return null;
  const room: Room = {
    arrival,
    bounds,
    victims: [],
    tenant: { ...flow.tenantQueued },
    class: { ...own.queued },
    total,
  };
  const hasRoom =
    makeRoom(room, {
      held: room.tenant,
      share: bounds.tenantShareMax,
      from: lowestFlowOf(classes, flow.tenant),
    }) &&
    makeRoom(room, { held: room.class, share: bounds.classShareMax, from: own.heaviestFlow() }) &&
    makeRoom(room, { held: total, share: 1, from: heaviestOfLowest(classes) });
  return hasRoom ? room.victims : null;
}

const NOBODY: readonly TaskRecord[] = [];

interface Bounded {
  readonly classes: readonly ClassRecord[];
  readonly bounds: BoundsConfig;
  readonly total: Holding;
}

/**
 * Whether the first bound that the arrival is over has nobody to take from: the usual end under overload, where the price of
 * a refusal counts, so that nothing is copied for it.
 */
function isRefusedAtOnce(arrival: TaskRecord, { classes, bounds, total }: Bounded): boolean {
  const { flow } = arrival;
  const own = flow.classRecord;
  if (isOver(flow.tenantQueued, arrival, bounds, bounds.tenantShareMax))
    return !givesWay(lowestFlowOf(classes, flow.tenant), arrival);
  if (isOver(own.queued, arrival, bounds, bounds.classShareMax))
    return !givesWay(own.heaviestFlow(), arrival);
  return isOver(total, arrival, bounds, 1) && !givesWay(heaviestOfLowest(classes), arrival);
}

/** What would be held under each bound once the victims so far have left. */
interface Room {
  readonly arrival: TaskRecord;
  readonly bounds: BoundsConfig;
  readonly victims: TaskRecord[];
  readonly tenant: Holding;
  readonly class: Holding;
  readonly total: Holding;
}

interface Scope {
  readonly held: Holding;
  readonly share: number;
  /** The flow that gives way under this bound. */
  readonly from: Flow | undefined;
}

/** Lets the newest of the scope's flow go until the arrival fits; false when the arrival is refused instead. */
function makeRoom(room: Room, { held, share, from }: Scope): boolean {
  const { arrival, bounds, victims } = room;
  if (!isOver(held, arrival, bounds, share)) return true;
  if (!givesWay(from, arrival)) return false;
  for (
    let task = from.newest;
    task !== null && victims.length < VICTIMS_PER_ARRIVAL_MAX;
    task = from.olderThan(task)
  ) {
    if (victims.includes(task)) continue;
    victims.push(task);
    take(room.total, task);
    if (task.flow.classRecord === arrival.flow.classRecord) take(room.class, task);
    if (task.flow.tenant === arrival.flow.tenant) take(room.tenant, task);
    if (!isOver(held, arrival, bounds, share)) return true;
  }
  return false;
}

/** Never for a less important one, nor for one that would itself be the one to leave. */
function givesWay(from: Flow | undefined, arrival: TaskRecord): from is Flow {
  if (from === undefined || from.classRecord.index < arrival.flow.classRecord.index) return false;
  return from.classRecord !== arrival.flow.classRecord || !isHeaviest(arrival, from);
}

function take(held: Holding, task: TaskRecord): void {
  held.tasks -= 1;
  held.workUs -= task.workUs;
  held.bytes -= task.bytes;
}

/** A tenant at its own bound gives way to itself: from its lowest class. O(classes). */
function lowestFlowOf(classes: readonly ClassRecord[], tenant: TenantId): Flow | undefined {
  for (let index = classes.length - 1; index >= 0; index--) {
    const flow = classes[index]?.flows.get(tenant);
    if (flow !== undefined && flow.queuedTasks > 0) return flow;
  }
  return undefined;
}

function heaviestOfLowest(classes: readonly ClassRecord[]): Flow | undefined {
  return classes.findLast((record) => record.queued.tasks > 0)?.heaviestFlow();
}

function isHeaviest(arrival: TaskRecord, heaviest: Flow): boolean {
  return arrival.flow === heaviest || arrival.flow.queuedUs + arrival.workUs > heaviest.queuedUs;
}

function isOver(held: Holding, arrival: TaskRecord, bounds: BoundsConfig, share: number): boolean {
  return (
    held.tasks + 1 > bounds.tasksMax * share ||
    held.bytes + arrival.bytes > bounds.bytesMax * share ||
    held.workUs + arrival.workUs > bounds.workMsMax * 1_000 * share
  );
}

export function totalOf(classes: readonly ClassRecord[]): Holding {
  const total: Holding = { tasks: 0, workUs: 0, bytes: 0 };
  for (const { queued } of classes) {
    total.tasks += queued.tasks;
    total.workUs += queued.workUs;
    total.bytes += queued.bytes;
  }
  return total;
}
