/**
 * What a fleet can do of a mix of requests, kept full and without swaps.
 *
 * Where all nodes offer all models of the mix it is the sum over nodes of what each does of the mix. Elsewhere a set of
 * models may be the bottleneck: for every set M, `requests of M * work <= rate of the nodes that offer any of M`. The
 * tightest such set is found by maximum flow from models to nodes, repeated at the rate that the last minimum cut allows
 * (Dinkelbach's method): a few rounds, and exact where nodes differ in speed but not in what they are good at.
 */
import type { ModelId, Rate } from '../../base/units.ts';
import { referenceWorkUs } from '../../hardware/reference-work.ts';
import type { Demand } from '../machines/machine.ts';
import type { SimNode } from '../sim-node.ts';
import { feasibleScale, type Supply } from './feasible-scale.ts';
import type { Mix, MixPart } from './mix.ts';

export interface FleetCapacity {
  readonly requestsPerSecond: number;
  /** Work per time: how many reference accelerators it amounts to. */
  readonly workUsPerUs: Rate;
}

/** 0 where a model of the mix is offered by nobody, or the mix is empty. */
export function fleetCapacity(nodes: readonly SimNode[], mix: Mix): FleetCapacity {
  const parts = mix.filter(({ share }) => share > 0);
  const shareSum = parts.reduce((sum, { share }) => sum + share, 0);
  const work = new Map(parts.map((part) => [part.model, (part.share / shareSum) * meanWorkUs(part)]));
  const workPerRequestUs = [...work.values()].reduce((sum, workUs) => sum + workUs, 0);
  const workUsPerUs = workPerRequestUs * feasibleScale(work, suppliesOf(nodes, parts));
  return {
    requestsPerSecond: workPerRequestUs === 0 ? 0 : (workUsPerUs * 1_000_000) / workPerRequestUs,
    workUsPerUs,
  };
}

function meanWorkUs({ demands }: MixPart): number {
  return demands.reduce((sum, demand) => sum + referenceWorkUs(demand), 0) / demands.length;
}

/** Nodes that offer the same models count as one. */
function suppliesOf(nodes: readonly SimNode[], parts: readonly MixPart[]): readonly Supply[] {
  const supplies = new Map<string, { readonly models: readonly ModelId[]; rate: Rate }>();
  for (const node of nodes) {
    const offered = new Set(node.spec.models.map(({ model }) => model));
    const own = parts.filter(({ model }) => offered.has(model));
    const models = own.map(({ model }) => model);
    const key = models.join('\n');
    const supply = supplies.get(key) ?? { models, rate: 0 };
    supply.rate += workRate(node, own);
    supplies.set(key, supply);
  }
  return [...supplies.values()];
}

/** Work per time of a node that is kept full with its part of the mix. */
function workRate({ machine }: SimNode, parts: readonly MixPart[]): Rate {
  const perSecondOf = new Map<readonly Demand[], number>();
  let workUs = 0;
  let busySeconds = 0;
  for (const part of parts) {
    const perSecond = perSecondOf.get(part.demands) ?? machine.perSecond(part.demands);
    perSecondOf.set(part.demands, perSecond);
    workUs += part.share * meanWorkUs(part);
    busySeconds += part.share / perSecond;
  }
  return busySeconds === 0 ? 0 : workUs / (busySeconds * 1_000_000);
}
