/**
 * Balancers that do not look at load: nodes take turns, or are drawn. Tasks are bound when they arrive.
 *
 * - weighted-round-robin: smooth weighted turns, as nginx has them: each turn everybody's credit grows by its weight, the
 *   one with most credit is taken and pays the sum of all weights. Over any stretch of turns a node gets its share, and
 *   heavy nodes are spread out between the others.
 * - random: drawn evenly. weighted-random: drawn in proportion to weight.
 *
 * A weight is what an operator writes into a configuration: the node's slots times its speed as known when it was registered
 * (its remembered rate, else the class of its hardware). It does not follow what is measured.
 */
import type { BaselineNode } from './frame/baseline-node.ts';
import { type ChoiceRule, earlyBinding } from './frame/early-binding.ts';
import { baseline, type PolicyEntry } from './frame/entry.ts';
import { statedWeight, weightedPick } from './frame/weighted-pick.ts';

function smoothTurns(): ChoiceRule {
  /** By model, credit of each node; nodes that are gone go with their keys. */
  const credits: Map<string, WeakMap<BaselineNode, number>> = new Map();
  return {
    choose(task, nodes) {
      const { model } = task.spec;
      const credit = credits.get(model) ?? new WeakMap<BaselineNode, number>();
      credits.set(model, credit);
      let sum = 0;
      let best = nodes[0] as BaselineNode;
      for (const node of nodes) {
        const weight = statedWeight(node, model);
        sum += weight;
        credit.set(node, (credit.get(node) ?? 0) + weight);
        if ((credit.get(node) as number) > (credit.get(best) as number)) best = node;
      }
      credit.set(best, (credit.get(best) as number) - sum);
      return best;
    },
  };
}

export const TURNING_POLICIES: readonly PolicyEntry[] = [
  baseline({
    name: 'weighted-round-robin',
    about: 'smooth turns in proportion to slots and stated speed; a queue without a bound behind each node',
    source: 'nginx smooth weighted round robin',
    discipline: () => earlyBinding(smoothTurns),
  }),
  baseline({
    name: 'random',
    about: 'a node drawn evenly; queues without a bound',
    source: 'HAProxy random(1), Envoy RANDOM',
    discipline: () =>
      earlyBinding(() => ({
        choose: (_task, nodes, { prng }) => nodes[prng.nextBelow(nodes.length)] as BaselineNode,
      })),
  }),
  baseline({
    name: 'weighted-random',
    about: 'a node drawn in proportion to slots and stated speed; queues without a bound',
    source: 'Envoy RANDOM with weights',
    discipline: () =>
      earlyBinding(() => ({
        choose: ({ spec }, nodes, { prng }) =>
          weightedPick(nodes, (node) => statedWeight(node, spec.model), prng),
      })),
  }),
];
