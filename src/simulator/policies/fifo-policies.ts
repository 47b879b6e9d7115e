/**
 * One central queue in order of arrival, and whichever node is free takes its head; of several free nodes the fastest.
 *
 * - fifo: nothing is ever dropped, and the queue has no bound.
 * - fifo-timeout: what is past its deadline when its turn comes is dropped. The queue holds at most `queueMax`.
 *
 * In both a client who hangs up takes its request out of the queue.
 */
import type { Desk } from './frame/discipline.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { lateBinding, type QueueRule } from './frame/late-binding.ts';
import { type NumberOption, numberOption } from './frame/options.ts';
import { keyedQueue } from './frame/task-queues.ts';

function fifo(): QueueRule {
  return { createQueue: () => keyedQueue(({ order }) => order) };
}

function fifoTimeout(desk: Desk, queueMax: number): QueueRule {
  return {
    ...fifo(),
    refuse: (_task, waiting) => (waiting >= queueMax ? 'queue-full' : undefined),
    turn: ({ spec }) => (desk.now > spec.deadlineAt ? 'wait-expired' : 'take'),
  };
}

/** As many as Spillway's own bound on waiting tasks. */
export const QUEUE_MAX: NumberOption = numberOption(
  100_000,
  [1, 10_000_000],
  'most requests that wait; more are refused',
);

export const FIFO_POLICIES: readonly PolicyEntry[] = [
  baseline({
    name: 'fifo',
    about: 'one queue in order of arrival without a bound; the fastest free node takes its head',
    source: 'M/G/k with fastest-server-first',
    discipline: () => lateBinding(fifo),
  }),
  baseline({
    name: 'fifo-timeout',
    about: 'one bounded queue in order of arrival; what is past its deadline when its turn comes is dropped',
    source: 'nginx and HAProxy queue time-outs; Amazon Builders’ Library on backlogs',
    options: { queueMax: QUEUE_MAX },
    discipline: ({ queueMax }) => lateBinding((desk) => fifoTimeout(desk, queueMax)),
  }),
];
