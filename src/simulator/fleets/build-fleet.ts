/**
 * Nodes of a scenario. Chance (the spread of true speeds) comes from the seed and the node's name, so that a node added to
 * one group changes no other.
 */
import { createPrng } from '../../base/prng.ts';
import type { NodeId, Rate } from '../../base/units.ts';
import type { NodeMemory, NodeSpec } from '../../core/scheduler/events.ts';
import { referenceWorkUs } from '../../hardware/reference-work.ts';
import type { Machine } from '../machines/machine.ts';
import type { NodeGroup } from '../scenario/types.ts';
import { SimNode } from '../sim-node.ts';
import { createMachine } from './create-machine.ts';
import type { Mix } from './mix.ts';

/** Evidence behind rates that are told beforehand: as much as a rate curve remembers. */
const OBSERVATIONS_KNOWN = 12;

export interface FleetOptions {
  readonly seed: number;
  /** Over which known rates are taken; a model that nobody asks for has none of its own. */
  readonly mix: Mix;
}

/** In order of groups. Throws RangeError for hardware or an engine that is not simulated. */
export function buildFleet(groups: readonly NodeGroup[], options: FleetOptions): SimNode[] {
  const nodes: SimNode[] = [];
  for (const group of groups)
    for (let at = 1; at <= group.count; at++)
      nodes.push(buildNode(group, at, { ...options, index: nodes.length }));
  return nodes;
}

function buildNode(
  group: NodeGroup,
  at: number,
  options: FleetOptions & { readonly index: number },
): SimNode {
  const id = `${group.name}-${at}`;
  const machine = createMachine(group, group.speed * spreadOf(group.speedSigma, id, options.seed));
  const memory = group.ratesKnown ? knownRates(machine, group, options.mix) : undefined;
  const { rttUs, beatUs } = group;
  return new SimNode({ spec: specOf(group, id), machine, memory, rttUs, beatUs }, options.index);
}

function specOf(group: NodeGroup, id: NodeId): NodeSpec {
  const { engine } = group;
  return {
    id,
    models: group.models.map((model) => ({ model })),
    slots: engine.kind === 'slots' ? engine.slots : engine.kind === 'image-batch' ? engine.batchMax : 0,
    batching: engine.kind === 'text-batch',
    hardware: group.statedHardware,
    labels: group.zone === '' ? {} : { zone: group.zone },
    heartbeats: group.heartbeats,
    canAbort: group.canAbort,
    ...(engine.kind === 'text-batch' ? { prefixBlocks: engine.prefixBlocksMax } : {}),
  };
}

/** Lognormal with median 1. */
function spreadOf(sigma: number, id: NodeId, seed: number): number {
  if (sigma === 0) return 1;
  const prng = createPrng(seedOf(id, seed));
  const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
  return Math.exp(sigma * radius * Math.cos(2 * Math.PI * prng.nextRatio()));
}

/** FNV-1a over the name, begun with the seed. */
function seedOf(name: string, seed: number): number {
  let hash = (seed ^ 0x811c9dc5) >>> 0;
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193) >>> 0;
  return hash;
}

/** Work over time alone, of each model and over all that the node offers. */
function knownRates(machine: Machine, group: NodeGroup, mix: Mix): NodeMemory {
  const parts = mix.filter(({ model, share }) => share > 0 && group.models.includes(model));
  const sums = parts.map(({ model, share, demands }) => {
    const workUs = demands.reduce((sum, demand) => sum + referenceWorkUs(demand), 0);
    const timeUs = demands.reduce((sum, demand) => sum + machine.serviceUs(demand), 0);
    return {
      model,
      rate: workUs / timeUs,
      workUs: (share * workUs) / demands.length,
      timeUs: (share * timeUs) / demands.length,
    };
  });
  const workUs = sums.reduce((sum, part) => sum + part.workUs, 0);
  const timeUs = sums.reduce((sum, part) => sum + part.timeUs, 0);
  const rates: { model: string; rate: Rate; observations: number }[] = [];
  if (timeUs > 0) rates.push({ model: '', rate: workUs / timeUs, observations: OBSERVATIONS_KNOWN });
  for (const { model, rate } of sums) rates.push({ model, rate, observations: OBSERVATIONS_KNOWN });
  return { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates };
}
