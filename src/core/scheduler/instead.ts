/** What may stand in for a task that can run no more. */
import {
  type Alternative,
  ALTERNATIVES_MAX,
  type BadEnd,
  isReplaceable,
  needsWork,
} from '../degrade/alternative.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Outcome } from '../request/outcome.ts';
import type { SchedulerState } from './state.ts';

export function alternativesOf(task: TaskRecord): readonly Alternative[] {
  return (task.spec.alternatives ?? []).slice(0, ALTERNATIVES_MAX);
}

/**
 * The outcome of a running task whose deadline passed: nothing can run any more, so only what needs no work may stand in.
 */
export function insteadOfWork(state: SchedulerState, task: TaskRecord, end: BadEnd): Outcome {
  if (task.spec.alternatives === undefined || !isReplaceable(end)) return end;
  const alternatives = alternativesOf(task);
  for (let index = task.alternative + 1; index < alternatives.length; index += 1) {
    const alternative = alternatives[index] as Alternative;
    const isFree = !needsWork(alternative);
    state.out.degraded(task.id, {
      index,
      alternative,
      because: end.reason,
      verdict: isFree ? 'taken' : 'too-slow',
    });
    if (isFree) return { kind: 'degraded', alternative: index };
  }
  return end;
}
