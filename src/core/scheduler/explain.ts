/** Why a task waits, or runs where it runs: gates, per-node reasons, position, estimate, and what would unblock it. */
import type { DurationUs, MonoUs, RefUs } from '../../base/units.ts';
import { laneCapacity } from '../admission/feasibility.ts';
import { ineligibleReasons } from '../placement/eligibility.ts';
import { isMoreUrgent, type TaskRecord } from '../queue/task-record.ts';
import { cureText } from './hold/cure-text.ts';
import { type Hold, holdOf } from './hold/hold.ts';
import { GAVE_WAY } from './settle.ts';
import type { SchedulerState } from './state.ts';
import type { GateView, TaskView } from './views.ts';

type NodeRow = TaskView['nodes'][number];

export function explainTask(state: SchedulerState, task: TaskRecord, now: MonoUs): TaskView {
  const nodes = [...state.fleet.nodes.values()].map((node): NodeRow => {
    const reasons = ineligibleReasons(node, task, now, state.config);
    return { id: node.spec.id, eligible: reasons.length === 0, reasons };
  });
  const { lane } = task;
  const ahead = lane === null ? { tasks: 0, workUs: 0 } : aheadInFlow(task);
  const share = lane === null ? 1 : lane.shareOf(task.flow);
  const hold = lane === null ? null : holdOf(state, lane, task, now);
  const eta = etaUs(task, { aheadUs: ahead.workUs, hold }, now);
  return {
    id: task.id,
    state: task.isRunning ? 'running' : 'queued',
    nodeId: task.node?.spec.id ?? '',
    attempts: task.attempts,
    position: lane === null ? 0 : Math.min(lane.tasks - 1, Math.floor(ahead.tasks / share)),
    etaMs: eta === null ? null : Math.round(eta / 1_000),
    etaError: state.ledgers.eta.errorOf(
      task.flow.classRecord.config.name,
      task.isRunning ? 'dispatch' : 'admission',
    ),
    gates: hold === null ? [] : [...hold.gates, ...wayOf(task, now)],
    nodes,
    unblock: hold === null ? 'It runs.' : cureText(hold.cure),
    cure: hold?.cure ?? null,
  };
}

/**
 * Expected time until the task is done: the flow's earlier work at its share, then its own service. While no node is open,
 * from when the first one is expected to be; null where nothing tells that.
 */
function etaUs(
  task: TaskRecord,
  { aheadUs, hold }: { readonly aheadUs: RefUs; readonly hold: Hold | null },
  now: MonoUs,
): DurationUs | null {
  if (task.node !== null) return Math.max(0, task.decidedAt + task.predictedUs - now);
  const { lane } = task;
  if (lane === null || hold === null) return 0;
  const rate = laneCapacity(lane) * lane.shareOf(task.flow);
  const fastest = lane.pools.map((pool) => pool.fastest()).find((node) => node !== undefined);
  if (rate > 0 && fastest !== undefined) return aheadUs / rate + task.workUs / fastest.rateOf(task.model, 1);
  const { cure } = hold;
  return 'inMs' in cure && cure.inMs !== undefined ? cure.inMs * 1_000 + task.workUs : null;
}

/** Tasks of the same flow and lane with an earlier deadline. O(queued of the flow). */
function aheadInFlow(task: TaskRecord): { readonly tasks: number; readonly workUs: number } {
  let tasks = 0;
  let workUs = 0;
  const { flow } = task;
  for (let other = flow.oldest; other !== null; other = flow.newerThan(other)) {
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
