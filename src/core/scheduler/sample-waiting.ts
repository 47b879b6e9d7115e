/**
 * Who waits although somebody could have served it, and who holds the places that it waits for. Of each class and model
 * the oldest task is looked at; the search is bounded, and is not made for tasks that have only just come.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { NodeRecord } from '../health/node-record.ts';
import { ineligibleReasons } from '../placement/eligibility.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { WAITING_ROWS_MAX, type WaitingRow } from '../signals/index.ts';
import { UNFIT } from './hold/candidates.ts';
import type { SchedulerState } from './state.ts';

/** Who has waited less is no case yet. */
const WAITED_US_MIN: DurationUs = 1_000_000;
/** Nodes with a free place, and running tasks, that are looked at for one row. */
const IDLE_NODES_MAX = 64;
const HOLDERS_MAX = 512;
const HELD_FOR_FASTER = 'held-for-faster-node';
/** What says that the node is none for the task, whether it is idle or not. */
const NOT_FOR_IT: ReadonlySet<string> = new Set<string>([
  ...UNFIT,
  'cordoned',
  'draining',
  'bulkhead',
  'tried-before',
  'no-room',
  // Closed for what it did: not known to be able.
  'ejected',
  'suspect',
  'breaker-open',
  'half-open-busy',
]);

export function waitingRows(state: SchedulerState, now: MonoUs): readonly WaitingRow[] {
  const oldest: TaskRecord[] = [];
  for (const { models } of state.classes)
    for (const queue of models.values()) if (queue.oldest !== null) oldest.push(queue.oldest);
  oldest.sort((a, b) => a.submittedAt - b.submittedAt || a.id - b.id);
  const rows = oldest.slice(0, WAITING_ROWS_MAX);
  const isLong = rows.some((task) => now - task.submittedAt >= WAITED_US_MIN);
  const idle = isLong ? idleNodes(state, now) : [];
  return rows.map((task) => rowOf(state, task, { now, idle }));
}

function idleNodes(state: SchedulerState, now: MonoUs): readonly NodeRecord[] {
  const idle: NodeRecord[] = [];
  for (const node of state.fleet.nodes.values()) {
    if (node.running.length > 0 || now - node.lastDoneAt < WAITED_US_MIN) continue;
    idle.push(node);
    if (idle.length === IDLE_NODES_MAX) break;
  }
  return idle;
}

interface Around {
  readonly now: MonoUs;
  readonly idle: readonly NodeRecord[];
}

function rowOf(state: SchedulerState, task: TaskRecord, { now, idle }: Around): WaitingRow {
  const oldestWaitUs = now - task.submittedAt;
  const row = {
    className: task.flow.classRecord.config.name,
    model: task.model,
    depth: task.modelQueue?.tasks ?? 1,
    oldestWaitUs,
    allowedUs: task.deadlineAt - task.submittedAt,
  };
  if (oldestWaitUs < WAITED_US_MIN) return row;
  const free = idleFor(state, task, { now, idle });
  const held = heldBy(task, now);
  return { ...row, ...(free === undefined ? {} : { idle: free }), ...(held === undefined ? {} : { held }) };
}

/** The idle node that would have had the task done longest ago, had it got it when both were free. */
function idleFor(
  state: SchedulerState,
  task: TaskRecord,
  { now, idle }: Around,
): WaitingRow['idle'] | undefined {
  let best: NonNullable<WaitingRow['idle']> | undefined;
  let nodes = 0;
  for (const node of idle) {
    const offer = node.offers.has(task.model);
    if (!offer || node.cordoned || node.draining) continue;
    const serviceUs = task.deadlineWorkUs / node.deadlineRateOf(task.spec, 1);
    const idleUs = now - Math.max(node.lastDoneAt, task.submittedAt);
    if (serviceUs > idleUs) continue;
    const reasons = ineligibleReasons(node, task, now, state.config);
    if (reasons.some((reason) => NOT_FOR_IT.has(reason))) continue;
    nodes += 1;
    if (best !== undefined && best.idleUs - best.serviceUs >= idleUs - serviceUs) continue;
    const why = reasons.length === 0 ? [HELD_FOR_FASTER] : reasons;
    best = { nodeId: node.spec.id, reasons: why, serviceUs, idleUs, nodes };
  }
  return best === undefined ? undefined : { ...best, nodes };
}

/** Of the tasks that run where this one could: those of lower classes that had begun before it came. */
function heldBy(task: TaskRecord, now: MonoUs): WaitingRow['held'] | undefined {
  const { index } = task.flow.classRecord;
  let places = 0;
  let byLower = 0;
  let longest: TaskRecord | undefined;
  for (const other of runningFor(task)) {
    if (++places > HOLDERS_MAX) break;
    if (other.flow.classRecord.index <= index || other.decidedAt > task.submittedAt) continue;
    byLower += 1;
    if (longest === undefined || other.decidedAt < longest.decidedAt) longest = other;
  }
  if (longest === undefined) return undefined;
  return {
    places: Math.min(places, HOLDERS_MAX),
    byLower,
    className: longest.flow.classRecord.config.name,
    tenant: longest.flow.tenant,
    nodeId: longest.node?.spec.id ?? '',
    runningUs: now - longest.decidedAt,
  };
}

/** What runs on the nodes that the task could run on. */
function* runningFor(task: TaskRecord): IterableIterator<TaskRecord> {
  for (const { seats } of task.lane?.pools ?? []) for (const { node } of seats) yield* node.running;
}
