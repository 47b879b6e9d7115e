/** What is remembered for a few seconds of a lane that turns somebody away. */
import type { MonoUs } from '../../base/units.ts';
import type { Lane } from '../queue/lane.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { SchedulerState } from './state.ts';

/** A task was refused for queueing: such a lane leaves no node idle for the sake of a faster one, least of all for that flow. */
export function noteSaturated(state: SchedulerState, lane: Lane, task: TaskRecord): void {
  lane.saturatedUntil = memoryEndsAt(state);
  task.flow.refusedUntil = lane.saturatedUntil;
  noteCrowded(state, lane);
}

/** A task is not served for those before it: whoever is served now costs another one its answer, and urgency alone decides. */
export function noteCrowded(state: SchedulerState, lane: Lane): void {
  lane.crowdedUntil = memoryEndsAt(state);
}

function memoryEndsAt({ now, config }: SchedulerState): MonoUs {
  return now + config.admission.flowWaitMsMax * 1_000;
}
