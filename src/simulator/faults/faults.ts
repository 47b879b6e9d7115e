/**
 * Faults of a scenario on a simulation's script. Several of a kind may overlap on a node: it is well again when the last
 * of them is over, and factors on its speed multiply.
 *
 * What each is: `dead` and `restart` lose what ran, and the latter joins anew when it is back. `hang` stops all work and
 * goes on with it afterwards; connections and health page look well. `partition` hides a living node; its answers come
 * when it is over. `clock-skew` moves a node's own clock, which shows as one heartbeat that comes early (forward) or late
 * (back), and the other way round at its end: all other times are the gateway's. `cpu-spike` makes everything that the
 * host computes slower, refusals and heartbeats included.
 */
import { assertNever } from '../../base/assert.ts';
import type { DurationUs } from '../../base/units.ts';
import type { FaultSpec, NodeGroup, NodesRef } from '../scenario/types.ts';
import type { NodeFaults, SimNode } from '../sim-node.ts';
import type { Simulation } from '../simulation.ts';

/** Speed of a node that hangs: a second of work takes eleven days. */
const HANGING_SPEED = 1e-6;

type Flag = { [Key in keyof NodeFaults]: NodeFaults[Key] extends boolean ? Key : never }[keyof NodeFaults];

export function scheduleFaults(
  simulation: Simulation,
  faults: readonly FaultSpec[],
  groups: readonly NodeGroup[],
): void {
  const script = new FaultScript(simulation);
  for (const fault of faults) {
    const nodes = 'nodes' in fault ? nodesOf(fault.nodes, simulation, groups) : [];
    simulation.at(fault.at, () => script.begin(fault, nodes));
  }
}

/** The first ones of the group, which are next to each other in the fleet. Throws RangeError where there is no such group. */
export function nodesOf(
  { group, count }: NodesRef,
  { nodes }: Pick<Simulation, 'nodes'>,
  groups: readonly NodeGroup[],
): readonly SimNode[] {
  const all = [...nodes.values()];
  const first = (list: readonly SimNode[]): readonly SimNode[] => (count === 0 ? list : list.slice(0, count));
  if (group === '') return first(all);
  const at = groups.findIndex(({ name }) => name === group);
  const of = groups[at];
  if (of === undefined)
    throw new RangeError(`Could not find the nodes of a fault: no group is named ${group}`);
  const from = groups.slice(0, at).reduce((sum, before) => sum + before.count, 0);
  return first(all.slice(from, from + of.count));
}

class FaultScript {
  readonly #simulation: Simulation;
  readonly #active: Map<SimNode, Map<string, number[]>> = new Map();

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  begin(fault: FaultSpec, nodes: readonly SimNode[]): void {
    switch (fault.kind) {
      case 'scheduler-crash':
        return this.#simulation.crash(fault.downUs);
      case 'mass-reconnect':
        return this.#reconnectAll(nodes);
      case 'clock-skew':
        return this.#during(fault.forUs, nodes, (node, sign) => {
          this.#simulation.shiftBeat(node, -sign * fault.skewUs);
        });
      case 'slow':
        return this.#during(fault.forUs, nodes, (node, sign) => this.#slow(node, sign, 1 / fault.times));
      case 'hang':
        return this.#during(fault.forUs, nodes, (node, sign) => this.#slow(node, sign, HANGING_SPEED));
      case 'cpu-spike':
        return this.#during(fault.forUs, nodes, (node, sign) => this.#load(node, sign, fault.load));
      case 'gray':
        return this.#during(fault.forUs, nodes, (node, sign) => this.#gray(node, sign, fault.failShare));
      case 'refuse':
        return this.#flag(fault.forUs, nodes, 'refuses');
      case 'stale-readings':
        return this.#flag(fault.forUs, nodes, 'staleReadings');
      case 'partition':
        return this.#flag(fault.forUs, nodes, 'partitioned', (node) => this.#simulation.reconnect(node));
      case 'dead':
        return this.#die(fault.forUs, nodes, () => {});
      case 'restart':
        return this.#die(fault.forUs, nodes, (node) => this.#simulation.register(node));
      default:
        return assertNever(fault);
    }
  }

  /** Does it to each node now, and undoes it after its time. */
  #during(forUs: DurationUs, nodes: readonly SimNode[], change: (node: SimNode, sign: 1 | -1) => void): void {
    for (const node of nodes) change(node, 1);
    this.#simulation.at(this.#simulation.now + forUs, () => {
      for (const node of nodes) change(node, -1);
    });
  }

  #flag(
    forUs: DurationUs,
    nodes: readonly SimNode[],
    flag: Flag,
    ended: (node: SimNode) => void = () => {},
  ): void {
    this.#during(forUs, nodes, (node, sign) => {
      const was = node.faults[flag];
      const wasReachable = node.isReachable;
      node.faults[flag] = this.#listed(node, flag, sign, 1).length > 0;
      if (wasReachable && !node.isReachable) node.unreachableSince = this.#simulation.now;
      if (was && !node.faults[flag]) ended(node);
    });
  }

  #die(forUs: DurationUs, nodes: readonly SimNode[], back: (node: SimNode) => void): void {
    this.#flag(forUs, nodes, 'dead', back);
    for (const node of nodes) this.#simulation.die(node);
  }

  /** What faults of the kind are on the node, with this one or without it. */
  #listed(node: SimNode, what: string, sign: 1 | -1, value: number): readonly number[] {
    const own = this.#active.get(node) ?? new Map<string, number[]>();
    this.#active.set(node, own);
    const list = own.get(what) ?? [];
    own.set(what, list);
    if (sign > 0) list.push(value);
    else list.splice(list.indexOf(value), 1);
    return list;
  }

  #slow(node: SimNode, sign: 1 | -1, factor: number): void {
    const { now } = this.#simulation;
    if (sign > 0) node.addSpeed(factor, now);
    else node.removeSpeed(factor, now);
    this.#simulation.touch(node);
  }

  #load(node: SimNode, sign: 1 | -1, load: number): void {
    const times = Math.max(1, load);
    node.faults.hostLoad = product(this.#listed(node, 'load', sign, times));
    this.#slow(node, sign, 1 / times);
  }

  /** Independent causes: what passes one may fail by another. */
  #gray(node: SimNode, sign: 1 | -1, failShare: number): void {
    node.faults.failShare = 1 - product(this.#listed(node, 'passes', sign, 1 - failShare));
  }

  #reconnectAll(nodes: readonly SimNode[]): void {
    for (const node of nodes) this.#simulation.disconnect(node);
    for (const node of nodes) this.#simulation.register(node);
  }
}

function product(factors: readonly number[]): number {
  return factors.reduce((sum, factor) => sum * factor, 1);
}
