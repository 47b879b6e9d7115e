/** What happened between two samples, by node and by class: differences of sums that only grow. */
import type { DurationUs, Ratio, RefUs } from '../../../base/units.ts';
import type { ClassSample, LogSumsSample, NodeSample, Sample } from '../sample.ts';

export interface LogMean {
  readonly count: number;
  readonly mean: number;
  /** Of one value. */
  readonly deviation: number;
}

export interface PaceSince extends LogMean {
  readonly model: string;
  /** Mean number of tasks beside each other. */
  readonly inflight: number;
}

export interface NodeSince {
  readonly node: NodeSample;
  readonly started: number;
  readonly startedWorkUs: RefUs;
  readonly served: number;
  readonly failed: number;
  readonly refused: number;
  readonly flips: number;
  /** Part of its places that was taken. */
  readonly use: number;
  readonly predictions: LogMean;
  readonly paces: readonly PaceSince[];
}

/** Nodes that were there then and are now. */
export function nodesSince(then: Sample, now: Sample): readonly NodeSince[] {
  const before = new Map(then.nodes.map((node): [string, NodeSample] => [node.id, node]));
  const spanUs = now.at - then.at;
  return now.nodes.flatMap((node) => {
    const old = before.get(node.id);
    // A node that came back under its name starts from 0.
    return old === undefined || old.started > node.started ? [] : [nodeSince(old, node, spanUs)];
  });
}

function nodeSince(old: NodeSample, node: NodeSample, spanUs: number): NodeSince {
  return {
    node,
    started: node.started - old.started,
    startedWorkUs: node.startedWorkUs - old.startedWorkUs,
    served: node.served - old.served,
    failed: node.failed - old.failed,
    refused: node.refused - old.refused,
    flips: node.flips - old.flips,
    use: useOf(node.inflightUs - old.inflightUs, spanUs, node.slots),
    predictions: logMean(old.predictions, node.predictions),
    paces: node.paces.map((pace) => {
      const earlier = old.paces.find(({ model }) => model === pace.model) ?? NOTHING;
      const mean = logMean(earlier, pace);
      return {
        model: pace.model,
        ...mean,
        inflight: mean.count === 0 ? 0 : (pace.inflight - earlier.inflight) / mean.count,
      };
    }),
  };
}

const NOTHING = { count: 0, sum: 0, squares: 0, inflight: 0 };

export function logMean(old: LogSumsSample, sums: LogSumsSample): LogMean {
  const count = sums.count - old.count;
  if (count <= 0) return { count: 0, mean: 0, deviation: 0 };
  const mean = (sums.sum - old.sum) / count;
  const variance = Math.max(0, (sums.squares - old.squares) / count - mean * mean);
  return { count, mean, deviation: Math.sqrt(variance) };
}

/** A class now and then, where it was there then. */
export function classPairs(then: Sample, now: Sample): readonly (readonly [ClassSample, ClassSample])[] {
  return now.classes.flatMap((record) => {
    const old = then.classes.find(({ name }) => name === record.name);
    return old === undefined ? [] : [[old, record] as const];
  });
}

/** How long everything that waits would take all open nodes, in seconds. */
export function drainS({ classes, capacity }: Sample): number {
  const workUs = classes.reduce((sum, record) => sum + record.workUs, 0);
  if (workUs === 0) return 0;
  return capacity === 0 ? Number.POSITIVE_INFINITY : workUs / capacity / 1_000_000;
}

/** Part of the places that was taken between the two. */
export function useOver(then: Sample, now: Sample): number {
  return useOf(now.inflightUs - then.inflightUs, now.at - then.at, now.slots);
}

/**
 * At most 1: what runs on a node that is closed counts among the tasks, and its places among none; one on trial has a single
 * place and may still do what it had before. Who is closed with work is busy.
 */
function useOf(inflightUs: number, spanUs: DurationUs, slots: number): Ratio {
  return Math.min(1, inflightUs / spanUs / Math.max(1, slots));
}
