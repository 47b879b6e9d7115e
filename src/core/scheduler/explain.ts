/** Why a task waits, or runs where it runs: gates, per-node reasons, position, estimate, and what would unblock it. */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import { laneCapacity } from '../admission/feasibility.ts';
import { ineligibleReasons } from '../placement/eligibility.ts';
import type { NodeGroup } from '../placement/bulkhead.ts';
import type { Lane } from '../queue/lane.ts';
import { isMoreUrgent, type TaskRecord } from '../queue/task-record.ts';
import { hasRoom } from './dispatch.ts';
import { GAVE_WAY } from './settle.ts';
import type { SchedulerState } from './state.ts';
import type { GateView, IneligibleReason, TaskView } from './views.ts';

type NodeRow = TaskView['nodes'][number];

export function explainTask(state: SchedulerState, task: TaskRecord, now: MonoUs): TaskView {
  const nodes = [...state.fleet.nodes.values()].map((node): NodeRow => {
    const reasons = ineligibleReasons(node, task, now, state.config);
    return { id: node.spec.id, eligible: reasons.length === 0, reasons };
  });
  const { lane } = task;
  const ahead = lane === null ? { tasks: 0, workUs: 0 } : aheadInFlow(task);
  const share = lane === null ? 1 : lane.shareOf(task.flow);
  return {
    id: task.spec.id,
    state: task.isRunning ? 'running' : 'queued',
    nodeId: task.node?.spec.id ?? '',
    attempts: task.attempts,
    position: lane === null ? 0 : Math.min(lane.tasks - 1, Math.floor(ahead.tasks / share)),
    etaMs: Math.round(etaUs(state, task, ahead.workUs, now) / 1_000),
    etaError: state.ledgers.eta.errorOf(
      task.flow.classRecord.config.name,
      task.isRunning ? 'dispatch' : 'admission',
    ),
    gates: lane === null ? [] : [...gatesOf(state, lane, task, now), ...wayOf(task, now)],
    nodes,
    unblock: lane === null ? 'It runs.' : unblockOf(lane, nodes),
  };
}

/** Expected time until the task is done: the flow's earlier work at its share, then its own service. */
function etaUs(state: SchedulerState, task: TaskRecord, aheadUs: number, now: MonoUs): DurationUs {
  if (task.node !== null) return Math.max(0, task.decidedAt + task.predictedUs - now);
  const lane = task.lane;
  if (lane === null) return 0;
  const rate = laneCapacity(lane) * lane.shareOf(task.flow);
  const fastest = lane.pools.map((pool) => pool.fastest()).find((node) => node !== undefined);
  const serviceUs = fastest === undefined ? 0 : task.workUs / fastest.rateOf(task.spec.model, 1);
  return rate === 0 ? Math.max(0, state.relayAt - now) : aheadUs / rate + serviceUs;
}

/** Tasks of the same flow and lane with an earlier deadline. O(queued of the flow). */
function aheadInFlow(task: TaskRecord): { readonly tasks: number; readonly workUs: number } {
  let tasks = 0;
  let workUs = 0;
  for (let other = task.flow.oldest; other !== null; other = other.newer) {
    if (other.lane !== task.lane || !isMoreUrgent(other, task)) continue;
    tasks += 1;
    workUs += other.workUs;
  }
  return { tasks, workUs };
}

function wayOf(task: TaskRecord, now: MonoUs): readonly GateView[] {
  if (!task.gaveWay) return [];
  return [
    { gate: 'preemption', sinceMs: Math.round((now - task.decidedAt) / 1_000), detail: `First ${GAVE_WAY}` },
  ];
}

function gatesOf(state: SchedulerState, lane: Lane, task: TaskRecord, now: MonoUs): readonly GateView[] {
  const sinceMs = Math.round((now - task.submittedAt) / 1_000);
  if (lane.pools.every((pool) => pool.openSeats === 0)) {
    return [{ gate: 'no-open-node', sinceMs, detail: 'Every node that could serve it is closed by a mark' }];
  }
  const closed = closedGroups(lane, task);
  if (closed.size > 0 && lane.pools.every(({ group, roomySeats }) => roomySeats === 0 || closed.has(group)))
    return [...closed.values()].map((detail) => ({ gate: 'bulkhead', sinceMs, detail }));
  if (!hasRoom(lane)) {
    const share = (lane.shareOf(task.flow) * 100).toFixed(1);
    return [
      {
        gate: 'no-room',
        sinceMs,
        detail: `All nodes are busy; its flow gets ${share} % of what becomes free`,
      },
    ];
  }
  const recheckMs = Math.max(0, Math.round((state.heldRecheckAt - now) / 1_000));
  return [
    {
      gate: 'held-for-faster-node',
      sinceMs,
      detail: `A node is idle, but a busy one is expected to finish it sooner; decided anew within ${recheckMs} ms`,
    },
  ];
}

/** The node groups of the lane that are closed to the task, each with its reason. */
function closedGroups(lane: Lane, task: TaskRecord): ReadonlyMap<NodeGroup | null, string> {
  const closed = new Map<NodeGroup | null, string>();
  for (const { group } of lane.pools) {
    const reason = group?.explain(task) ?? null;
    if (reason !== null) closed.set(group, reason);
  }
  return closed;
}

function unblockOf(lane: Lane, nodes: readonly NodeRow[]): string {
  if (hasRoom(lane))
    return 'A faster node becoming free, or more waiting work, which makes the idle node worth its time.';
  const counts = new Map<IneligibleReason, number>();
  for (const row of nodes)
    for (const reason of row.reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [most] = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return most === undefined
    ? 'The next dispatch.'
    : `One of ${most[1]} node(s) losing the reason ${most[0]}.`;
}
