/**
 * Balancers that count: requests under way at each node, by themselves or against its speed. Tasks are bound when they
 * arrive. `n` is what is bound to a node, running or waiting; `mu` its speed over all of its slots.
 *
 * - least-connections: argmin n, ties in turn (HAProxy `leastconn`, nginx `least_conn`).
 * - jsq: join the shortest queue, argmin n; ties by chance, or to the fastest.
 * - sed: shortest expected delay, argmin (n + 1) / mu; near-optimal for unequal servers (arXiv 1509.03535).
 * - power-of-two: two nodes drawn evenly, the one with less (Mitzenmacher 2001).
 * - weighted-power-of-two: two drawn in proportion to mu, the one with the lesser (n + 1) / mu; drawn evenly, the rule is not
 *   stable on unequal nodes at every load below 1 (arXiv 2004.00538).
 *
 * Counts of nodes with several slots are taken per slot.
 */
import type { Rate } from '../../base/units.ts';
import type { BaselineNode } from './frame/baseline-node.ts';
import type { BaselineTask } from './frame/baseline-task.ts';
import type { Desk } from './frame/discipline.ts';
import { anyOf, type ChoiceRule, earlyBinding, fastestOf, leastOf } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { wordOption } from './frame/options.ts';
import { weightedPick } from './frame/weighted-pick.ts';

function countOf(node: BaselineNode): number {
  return node.bound / node.slots;
}

function speedOf(node: BaselineNode, model: string): Rate {
  return node.pace.rate(model) * node.slots;
}

/** Time until one more task would be done, were all of mean size 1: no less than one service. */
function expectedDelay(node: BaselineNode, task: BaselineTask): number {
  return Math.max(1, (node.bound + 1) / node.slots) / node.pace.rate(task.spec.model);
}

function leastConnections(): ChoiceRule {
  /** Of the node chosen last, by model. */
  const last: Map<string, number> = new Map();
  return {
    choose(task, nodes) {
      const after = last.get(task.spec.model) ?? -1;
      const node = leastOf(
        nodes,
        countOf,
        (equal) => equal.find(({ order }) => order > after) ?? (equal[0] as BaselineNode),
      );
      last.set(task.spec.model, node.order);
      return node;
    },
  };
}

function twoOf(nodes: readonly BaselineNode[], desk: Desk): readonly BaselineNode[] {
  if (nodes.length === 1) return nodes;
  const first = desk.prng.nextBelow(nodes.length);
  const second = desk.prng.nextBelow(nodes.length - 1);
  return [nodes[first] as BaselineNode, nodes[second < first ? second : second + 1] as BaselineNode];
}

function twoWeighted(
  task: BaselineTask,
  nodes: readonly BaselineNode[],
  desk: Desk,
): readonly BaselineNode[] {
  if (nodes.length === 1) return nodes;
  const weight = (node: BaselineNode): number => speedOf(node, task.spec.model);
  const first = weightedPick(nodes, weight, desk.prng);
  return [first, weightedPick(nodes, (node) => (node === first ? 0 : weight(node)), desk.prng)];
}

const first = (equal: readonly BaselineNode[]): BaselineNode => equal[0] as BaselineNode;

export const COUNTING_POLICIES: readonly PolicyEntry[] = [
  baseline({
    name: 'least-connections',
    about: 'the node with fewest requests per slot, ties in turn; a queue without a bound behind each node',
    source: 'HAProxy leastconn, nginx least_conn',
    discipline: () => earlyBinding(leastConnections),
  }),
  baseline({
    name: 'jsq',
    about: 'join the shortest queue, by count; ties by chance or to the fastest; queues without a bound',
    source: 'Winston 1977',
    options: { ties: wordOption('random', ['random', 'fastest'], 'who gets a request among equals') },
    discipline: ({ ties }) =>
      earlyBinding(() => ({
        choose: (task, nodes, desk) =>
          leastOf(nodes, countOf, ties === 'random' ? anyOf(desk) : fastestOf(task.spec.model)),
      })),
  }),
  baseline({
    name: 'sed',
    about: 'shortest expected delay: least (n + 1) / speed, speeds learned; queues without a bound',
    source: 'arXiv 1509.03535; Linux IPVS sed',
    discipline: () =>
      earlyBinding(() => ({
        choose: (task, nodes) =>
          leastOf(nodes, (node) => expectedDelay(node, task), fastestOf(task.spec.model)),
      })),
  }),
  baseline({
    name: 'power-of-two',
    about: 'the emptier of two nodes drawn evenly; queues without a bound',
    source: 'Mitzenmacher 2001; Envoy LEAST_REQUEST',
    discipline: () =>
      earlyBinding(() => ({ choose: (_task, nodes, desk) => leastOf(twoOf(nodes, desk), countOf, first) })),
  }),
  baseline({
    name: 'weighted-power-of-two',
    about: 'two nodes drawn by speed, the one with the lesser (n + 1) / speed; queues without a bound',
    source: 'arXiv 2004.00538',
    discipline: () =>
      earlyBinding(() => ({
        choose: (task, nodes, desk) =>
          leastOf(twoWeighted(task, nodes, desk), (node) => expectedDelay(node, task), first),
      })),
  }),
];
