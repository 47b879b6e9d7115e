/**
 * How long each user's request takes on the fleet, known beforehand, as an oracle knows it.
 *
 * A request's effort is its time on the fastest node that offers its model, noise included. A node's rate is effort per
 * time of one of its slots: where hardware differs in speed only, that is the same for all requests; elsewhere it is the
 * largest over the requests seen, so that no node is thought slower than it is. Swaps, faults and the network are left out:
 * they make everything later. The machines asked are twins of the fleet's, which no fault reaches.
 */
import type { DurationUs, Rate } from '../../base/units.ts';
import type { User } from '../clients/user.ts';
import type { Demand } from '../machines/machine.ts';
import type { NodeGroup, StreamSpec } from '../scenario/types.ts';
import type { SimNode } from '../sim-node.ts';

/** Slots of one rate, which is at most 1: effort per time. */
export interface Supply {
  readonly rate: Rate;
  readonly slots: number;
}

export interface Effort {
  /** Until the whole answer. */
  effortUs: DurationUs;
  /** Until what counts for the deadline: the first token of a streamed text, the whole answer otherwise. */
  neededUs: DurationUs;
}

interface Kind {
  readonly fastest: SimNode;
  readonly models: ReadonlySet<string>;
  /** Of each node, relative to the fastest of its group. */
  readonly supplies: readonly Supply[];
  rate: Rate;
  timeUs: DurationUs;
}

export class FleetTimes {
  readonly #kinds: readonly Kind[];
  readonly #streams: readonly StreamSpec[];
  readonly #effort: Effort = { effortUs: 0, neededUs: 0 };

  /** `twins` in order of groups; `probe` is any demand that they can do. */
  constructor(
    twins: readonly SimNode[],
    {
      groups,
      streams,
      probe,
    }: { groups: readonly NodeGroup[]; streams: readonly StreamSpec[]; probe: Demand | undefined },
  ) {
    this.#streams = streams;
    let from = 0;
    this.#kinds = groups.flatMap(({ count }) => {
      const nodes = twins.slice(from, from + count);
      from += count;
      return nodes.length === 0 || probe === undefined ? [] : [kindOf(nodes, probe)];
    });
  }

  /** Of a user; to be read before the next one is asked for. Infinite where nobody offers the model. */
  of({ demand, model, noise, stream }: User): Effort {
    const effort = this.#effort;
    effort.effortUs = this.#bestUs(demand, model) * noise;
    const isStreamed = demand.kind === 'text' && this.#streams[stream]?.isStream === true;
    effort.neededUs = isStreamed
      ? this.#bestUs({ ...demand, outputTokens: 1 }, model) * noise
      : effort.effortUs;
    return effort;
  }

  supplies(): readonly Supply[] {
    return this.#kinds
      .flatMap((kind) => kind.supplies.map(({ rate, slots }) => ({ rate: rate * kind.rate, slots })))
      .filter(({ rate }) => rate > 0);
  }

  #bestUs(demand: Demand, model: string): DurationUs {
    let bestUs = Number.POSITIVE_INFINITY;
    for (const kind of this.#kinds) {
      if (!kind.models.has(model)) continue;
      kind.timeUs = kind.fastest.machine.serviceUs(demand);
      bestUs = Math.min(bestUs, kind.timeUs);
    }
    for (const kind of this.#kinds)
      if (kind.models.has(model)) kind.rate = Math.max(kind.rate, bestUs / kind.timeUs);
    return bestUs;
  }
}

function kindOf(nodes: readonly SimNode[], probe: Demand): Kind {
  const times = nodes.map(({ machine }) => machine.serviceUs(probe));
  const leastUs = Math.min(...times);
  const fastest = nodes[times.indexOf(leastUs)] as SimNode;
  return {
    fastest,
    models: new Set(fastest.spec.models.map(({ model }) => model)),
    supplies: nodes.map(({ spec }, at) => ({ rate: leastUs / (times[at] as number), slots: spec.slots })),
    rate: 0,
    timeUs: 0,
  };
}
