/**
 * Central queues that decide what to drop when there is too much. A node that has a free slot takes the next one; of several
 * free nodes the fastest. All queues hold at most `queueMax`.
 *
 * - codel: order of arrival, drops as folly's CoDel does. The defaults of 5 ms and 100 ms are for services of milliseconds;
 *   with services of seconds to minutes 5 s and 30 s stand in.
 * - adaptive-lifo: oldest first, and newest first once the queue has not been empty for an interval (Facebook, "Fail at
 *   Scale", 2015). What is past its deadline is dropped when its turn comes, instead of the article's one time limit for
 *   all: deadlines of classes differ by 20 times.
 * - edf: earliest deadline first; what is past its deadline is dropped when its turn comes. Optimal while everything can be
 *   done in time; in overload whatever runs was about to be late, and is.
 * - edf-feasibility: what could not end in time on the fastest node is dropped; what could not on the node at hand is
 *   left to others.
 * - strict-priority: classes in their order, by arrival or deadline within; `drops: infeasible` drops as
 *   edf-feasibility does. A class that is busy starves those below.
 */
import { msToUs } from '../../base/units.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import { Codel } from './frame/codel.ts';
import type { Desk } from './frame/discipline.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { lateBinding, type QueueRule, type Turn } from './frame/late-binding.ts';
import {
  numberOption,
  type OptionsOf,
  type OptionTable,
  type WordOption,
  wordOption,
} from './frame/options.ts';
import { keyedQueue, twoEndedQueue } from './frame/task-queues.ts';
import { QUEUE_MAX } from './fifo-policies.ts';

/** Above any deadline and any number of arrivals, so that a rank outweighs both: keys stay below 2^53 up to 64 ranks. */
const RANK = 2 ** 47;
const DAY_MS = 86_400_000;

const CODEL_OPTIONS = {
  targetMs: numberOption(
    5_000,
    [1, DAY_MS],
    'least wait over an interval above which the queue is overloaded',
  ),
  intervalMs: numberOption(
    30_000,
    [1, DAY_MS],
    'over which the least wait is taken, or within which a queue must have been empty',
  ),
  queueMax: QUEUE_MAX,
} as const satisfies OptionTable;

function bounded(queueMax: number): NonNullable<QueueRule['refuse']> {
  return (_task, waiting) => (waiting >= queueMax ? 'queue-full' : undefined);
}

function codelRule(desk: Desk, options: OptionsOf<typeof CODEL_OPTIONS>): QueueRule {
  const codel = new Codel({ targetUs: msToUs(options.targetMs), intervalUs: msToUs(options.intervalMs) });
  return {
    createQueue: () => keyedQueue(({ order }) => order),
    refuse: bounded(options.queueMax),
    turn: ({ arrivedAt }) => (codel.note(desk.now - arrivedAt, desk.now) ? 'wait-expired' : 'take'),
  };
}

interface LifoOptions {
  readonly intervalMs: number;
  readonly queueMax: number;
}

/** Whether the queue was empty lately is seen when somebody comes: who finds nobody waiting begins a new interval. */
function adaptiveLifoRule(desk: Desk, { intervalMs, queueMax }: LifoOptions): QueueRule {
  const intervalUs = msToUs(intervalMs);
  let emptyAt = 0;
  return {
    createQueue: () => twoEndedQueue(() => desk.now - emptyAt > intervalUs),
    refuse(_task, waiting) {
      if (waiting === 0) emptyAt = desk.now;
      return waiting >= queueMax ? 'queue-full' : undefined;
    },
    turn: ({ spec }) => (desk.now > spec.deadlineAt ? 'wait-expired' : 'take'),
  };
}

/** Whether the task can end in time here, or else anywhere. */
function feasibleTurn(desk: Desk, task: BaselineTask, node: BaselineNode): Turn {
  const { model, deadlineAt } = task.spec;
  const leftUs = deadlineAt - desk.now;
  if (task.deadlineWorkUs <= leftUs * node.pace.rate(model)) return 'take';
  for (const other of desk.candidates(task))
    if (task.deadlineWorkUs <= leftUs * other.pace.rate(model)) return 'skip';
  return 'wait-expired';
}

function deadlineKey({ spec }: BaselineTask): number {
  return Math.max(0, spec.deadlineAt);
}

interface OrderOptions {
  readonly keyOf: (task: BaselineTask) => number;
  readonly queueMax: number;
  /** One of DROPS. */
  readonly drops: string;
}

const DROPS = ['nothing', 'expired', 'infeasible'] as const;

function orderedRule(desk: Desk, { keyOf, queueMax, drops }: OrderOptions): QueueRule {
  const rule: QueueRule = { createQueue: () => keyedQueue(keyOf), refuse: bounded(queueMax) };
  if (drops === 'nothing') return rule;
  if (drops === 'infeasible') return { ...rule, turn: (task, node) => feasibleTurn(desk, task, node) };
  return { ...rule, turn: ({ spec }) => (desk.now > spec.deadlineAt ? 'wait-expired' : 'take') };
}

function dropsOption(value: (typeof DROPS)[number]): WordOption {
  return wordOption(value, DROPS, 'what is dropped when its turn comes: what is late, or what would be');
}

export const OVERLOAD_POLICIES: readonly PolicyEntry[] = [
  baseline({
    name: 'codel',
    about:
      'one queue by arrival; while even the least wait is too long, drops whoever waited twice the target',
    source: 'folly/executors/Codel.cpp',
    options: CODEL_OPTIONS,
    discipline: (options) => lateBinding((desk) => codelRule(desk, options)),
  }),
  baseline({
    name: 'adaptive-lifo',
    about:
      'one queue, oldest first, and newest first while it is overloaded; drops what is past its deadline',
    source: 'Maurer, "Fail at Scale", ACM Queue 2015',
    options: { intervalMs: CODEL_OPTIONS.intervalMs, queueMax: QUEUE_MAX },
    discipline: (options) => lateBinding((desk) => adaptiveLifoRule(desk, options)),
  }),
  baseline({
    name: 'edf',
    about: 'one queue, earliest deadline first; drops what is past its deadline, which is too late to help',
    source: 'Liu and Layland 1973',
    options: { drops: dropsOption('expired'), queueMax: QUEUE_MAX },
    discipline: (options) => lateBinding((desk) => orderedRule(desk, { ...options, keyOf: deadlineKey })),
  }),
  baseline({
    name: 'edf-feasibility',
    about: 'earliest deadline first, and what can no longer end in time is dropped before it runs',
    source: 'SLO-aware serving, such as Niyama (arXiv 2503.22562)',
    options: { queueMax: QUEUE_MAX },
    discipline: ({ queueMax }) =>
      lateBinding((desk) => orderedRule(desk, { keyOf: deadlineKey, queueMax, drops: 'infeasible' })),
  }),
  baseline({
    name: 'strict-priority',
    about: 'one queue by class, then by deadline or arrival; a busy class starves those below',
    source: 'priority queueing; llm-d priority bands',
    options: {
      within: wordOption('arrival', ['arrival', 'deadline'], 'order within a class'),
      drops: dropsOption('expired'),
      queueMax: QUEUE_MAX,
    },
    discipline: ({ within, drops, queueMax }) => {
      const inner = within === 'deadline' ? deadlineKey : ({ order }: BaselineTask): number => order;
      const keyOf = (task: BaselineTask): number => task.rank * RANK + inner(task);
      return lateBinding((desk) => orderedRule(desk, { keyOf, queueMax, drops }));
    },
  }),
];
