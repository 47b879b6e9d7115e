/**
 * How well the fleet remembers prompts: the blocks that its engines had, over those that were asked for, and what one cache
 * as large as all of theirs together would have had, which sees every prompt in the order of its first attempt. No way of
 * placing requests reaches much more than that: spread over nodes, a block that two nodes need is kept twice.
 */
import type { Ratio } from '../../base/units.ts';
import type { Demand, PrefixStats } from '../machines/machine.ts';
import { PrefixCache } from '../machines/prefix-cache.ts';
import type { NodeReport, PrefixReport } from './report.ts';

/** What is looked at of a node. */
export interface PrefixNode {
  readonly spec: { readonly prefixBlocks?: number };
  readonly machine: { readonly prefixStats?: PrefixStats | undefined };
}

export class Prefixes {
  readonly #nodes: readonly PrefixNode[];
  readonly #shared: PrefixCache;

  private constructor(nodes: readonly PrefixNode[], blocksMax: number) {
    this.#nodes = nodes;
    this.#shared = new PrefixCache(blocksMax);
  }

  /** Undefined where no node keeps prompts. */
  static of(nodes: readonly PrefixNode[]): Prefixes | undefined {
    const blocksMax = nodes.reduce((sum, { spec }) => sum + (spec.prefixBlocks ?? 0), 0);
    return blocksMax === 0 ? undefined : new Prefixes(nodes, blocksMax);
  }

  /** A request is sent to a node for the first time. */
  asked(demand: Demand): void {
    if (demand.kind === 'text' && demand.blocks !== undefined) this.#shared.use(demand.blocks);
  }

  report(nodes: readonly NodeReport[]): PrefixReport {
    let blocksAsked = 0;
    let blocksHit = 0;
    for (const { machine } of this.#nodes) {
      blocksAsked += machine.prefixStats?.blocksAsked ?? 0;
      blocksHit += machine.prefixStats?.blocksHit ?? 0;
    }
    const shared = this.#shared.stats;
    const hitRatio = ratioOf(blocksHit, blocksAsked);
    const sharedHitRatio = ratioOf(shared.blocksHit, shared.blocksAsked);
    return {
      blocksAsked,
      hitRatio,
      sharedHitRatio,
      hitOfShared: ratioOf(hitRatio, sharedHitRatio),
      busyMaxOfMean: mostOfMean(nodes.map(({ busyRatio }) => busyRatio)),
      workMaxOfMean: mostOfMean(nodes.map(({ workSeconds }) => workSeconds)),
    };
  }
}

function ratioOf(part: number, whole: number): Ratio {
  return whole === 0 ? 0 : part / whole;
}

/** The greatest over the mean; 0 where all are 0. */
function mostOfMean(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum === 0 ? 0 : (Math.max(...values) * values.length) / sum;
}
