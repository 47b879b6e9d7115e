/** A draw in proportion to weights. O(n). */
import type { Prng } from '../../../base/prng.ts';
import type { BaselineNode } from './baseline-node.ts';

/** One of `items`, which is not empty; the last one with a weight if rounding leaves nobody, the first if none has any. */
export function weightedPick<T>(items: readonly T[], weightOf: (item: T) => number, prng: Prng): T {
  let sum = 0;
  for (const item of items) sum += weightOf(item);
  let rest = prng.nextRatio() * sum;
  let picked = items[0] as T;
  for (const item of items) {
    const weight = weightOf(item);
    if (weight <= 0) continue;
    picked = item;
    rest -= weight;
    if (rest < 0) break;
  }
  return picked;
}

/** What an operator would write: slots times the speed that was known at registration. */
export function statedWeight(node: BaselineNode, model: string): number {
  return node.slots * node.pace.givenRate(model);
}
