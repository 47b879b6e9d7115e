/** Where a task is bound to a node: its charge, its predictions and its bounds, and the permit that `NodeRecord.release` gives back. */
import type { NodeRecord } from '../health/node-record.ts';
import { awaitedUs, deadlineServiceUs, savedUs, serviceUs, swapUs } from '../placement/choose.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import { expectDoneAt } from './book.ts';
import { noteProbe } from './breakers.ts';
import { limitStarting } from './concurrency.ts';
import { setNodeTimer } from './node-timer.ts';
import { setLimits } from './patience.ts';
import { dequeue } from './settle.ts';
import type { SchedulerState } from './state.ts';
import { tallyAssigned } from './tallies.ts';

/** Binds a queued task to a node. */
export function assign(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): void {
  if (state.watch !== null) tellPlaced(state, lane, task, node);
  lane.charge(task);
  dequeue(state, task);
  task.predictedUs = serviceUs(node, task, state.context);
  // Taken at once: what was predicted without a node is known better now.
  if (task.submittedAt === state.now)
    expectDoneAt(task, state.now + deadlineServiceUs(node, task, state.context));
  task.swapUs = swapUs(node, task, state.config);
  task.savedUs = task.prefix === null ? 0 : savedUs(node, task, state.context);
  task.awaitedUs = awaitedUs(task);
  setLimits(state, lane, task, node);
  if (node.concurrency !== null) limitStarting(state, node);
  task.isRunning = true;
  task.node = node;
  task.attempts += 1;
  task.decidedAt = state.now;
  task.sentAt = 0;
  task.hasFirstByte = false;
  task.isAnswering = false;
  task.flow.running += 1;
  task.flow.classRecord.tally.running += 1;
  state.counts.running += 1;
  tallyAssigned(state, task);
  if (node.breakers !== null) noteProbe(state, node, task);
  node.start(task, state.now);
  if (task.prefix !== null && node.prefixes !== null)
    state.context.prefixes.use(node.prefixes, task.prefix.blocks);
  task.startInflight = node.running.length;
  for (let seat = node.firstSeat; seat !== null; seat = seat.next) seat.pool.noteWork(task.workUs);
  state.fleet.place(node, state.now, state.config);
  if (node.drainLongUntil > state.now || node.breakers !== null) setNodeTimer(state, node);
  state.out.assign(task.id, node.id, task.attempts);
}

/** As the decision sees it: before the node has the task. */
function tellPlaced(state: SchedulerState, lane: Lane, task: TaskRecord, node: NodeRecord): void {
  const { ranking, context, fleet } = state;
  ranking.rank(lane.pools, task, context, node);
  ranking.count(lane.pools, task, fleet.nodes.size);
  state.watch?.placed(task.id, node.spec.id, ranking);
}
