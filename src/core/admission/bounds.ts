/**
 * Hard bounds on what is queued: tasks, bytes and work, in all, per class and per tenant. When full, one in, one
 * out: from the lowest class, from the flow with the most queued work in it, the newest leaves, and an arrival that
 * would itself be that one is refused. A more important task is never evicted for a less important one.
 */
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
  if (isOver(arrival.flow.tenantQueued, arrival, bounds, bounds.tenantShareMax)) return null;
  const own = arrival.flow.classRecord;
  const total = totalOf(classes);
  const isClassOver = isOver(own.queued, arrival, bounds, bounds.classShareMax);
  if (!isClassOver && !isOver(total, arrival, bounds, 1)) return [];
  return collect(arrival, isClassOver ? [own] : classes, isClassOver ? { ...own.queued } : total, {
    bounds,
    share: isClassOver ? bounds.classShareMax : 1,
  });
}

function collect(
  arrival: TaskRecord,
  classes: readonly ClassRecord[],
  held: Holding,
  limit: { readonly bounds: BoundsConfig; readonly share: number },
): readonly TaskRecord[] | null {
  const lowest = classes.findLast((record) => record.queued.tasks > 0);
  if (lowest === undefined || lowest.index < arrival.flow.classRecord.index) return null;
  const flow = lowest.victims.peek() as Flow;
  if (lowest === arrival.flow.classRecord && isHeaviest(arrival, flow)) return null;
  const victims: TaskRecord[] = [];
  for (let task = flow.newest; task !== null && victims.length < VICTIMS_PER_ARRIVAL_MAX; task = task.older) {
    victims.push(task);
    held.tasks -= 1;
    held.workUs -= task.workUs;
    held.bytes -= task.spec.bytes;
    if (!isOver(held, arrival, limit.bounds, limit.share)) return victims;
  }
  return null;
}

function isHeaviest(arrival: TaskRecord, heaviest: Flow): boolean {
  return arrival.flow === heaviest || arrival.flow.queued.workUs + arrival.workUs > heaviest.queued.workUs;
}

function isOver(held: Holding, arrival: TaskRecord, bounds: BoundsConfig, share: number): boolean {
  return (
    held.tasks + 1 > bounds.tasksMax * share ||
    held.bytes + arrival.spec.bytes > bounds.bytesMax * share ||
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
