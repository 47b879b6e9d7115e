/**
 * Balancers that count work, not requests: each node has a ledger of the time that what is bound to it will take, by
 * estimated sizes and learned speeds, corrected when something ends. Tasks are bound when they arrive.
 *
 * - lwl: least work left, argmin W; ties by chance. It does not ask how long the task itself takes on the node.
 * - ect: earliest completion time, argmin W + s / mu; ties to the fastest. Where size is known this is the best known simple
 *   rule for unequal servers; see the table in `docs/reference/policies.md`.
 *
 * W of a node with several slots is the sum of what is left over its slots, and 0 for ect while a slot is free.
 */
import { anyOf, earlyBinding, fastestOf, leastOf } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';

export const WORK_POLICIES: readonly PolicyEntry[] = [
  baseline({
    name: 'lwl',
    about: 'the node whose bound work takes least time, by estimates; queues without a bound',
    source: 'least work left, Harchol-Balter 1999',
    discipline: () =>
      earlyBinding(() => ({
        choose: (_task, nodes, desk) => leastOf(nodes, (node) => node.workLeftUs(desk.now), anyOf(desk)),
      })),
  }),
  baseline({
    name: 'ect',
    about: 'the node on which the request would end first, by estimates; queues without a bound',
    source: 'minimum completion time, Ibarra and Kim 1977',
    discipline: () =>
      earlyBinding(() => ({
        choose: (task, nodes, desk) =>
          leastOf(
            nodes,
            (node) => node.startsInUs(desk.now) + node.serviceUs(task),
            fastestOf(task.spec.model),
          ),
      })),
  }),
];
