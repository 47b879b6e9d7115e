/**
 * Two ways in which accelerator memory is gone and nothing says so. Both look at what is used beyond what the engine takes at
 * start: an engine that reserves 92 % by design is empty at 92 %, and where nobody tells the reserve they are blind.
 *
 *   memory-fragmentation   used between 92 and 94 %, and steady: no request fails, and none that is larger fits any more
 *   memory-hoarding        used above 92 % and steady, while less than 35 % of the places are taken: who holds it does not work
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { NodeSample, Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';
import { nodesSince } from './since.ts';

const WINDOW_S = 60;
const FULL = 0.92;
const BAND_END = 0.94;
/** Difference of the most and the least within the window. */
const STEADY = 0.01;
const USE_MAX = 0.35;

interface Steady {
  readonly node: NodeSample;
  readonly memory: number;
  readonly use: number;
}

const NO_MEMORY = 'No node tells its memory and what its engine takes at start (memoryUse, reservedUse)';
const TOO_SHORT = `It needs ${WINDOW_S} s of samples`;

export const memoryFragmentation: Rule = {
  signal: 'memory-fragmentation',
  thresholds: {
    from: { value: FULL, unit: 'ratio of the memory that the engine has for requests' },
    to: { value: BAND_END, unit: 'ratio' },
    steady: { value: STEADY, unit: 'ratio' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'Restart the engine when it is drained, or lower the longest context that it takes: large requests will fail while small ones pass.',
  look: (past) =>
    lookAt(
      past,
      ({ memory, use }) => memory >= FULL && memory <= BAND_END && use > USE_MAX,
      ({ node, memory, use }) => ({
        subject: { kind: 'node', id: node.id },
        severity: 'warn',
        evidence: { memory: told(memory), use: told(use) },
        says: `The memory of ${node.id} stands at ${percent(memory)} without moving: what is free is in pieces`,
      }),
    ),
};

export const memoryHoarding: Rule = {
  signal: 'memory-hoarding',
  thresholds: {
    memory: { value: FULL, unit: 'ratio of the memory that the engine has for requests' },
    useMax: { value: USE_MAX, unit: 'ratio of places' },
    steady: { value: STEADY, unit: 'ratio' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'See who holds the memory of the node: another process on the accelerator, requests that were given up and go on, a cache without a bound.',
  look: (past) =>
    lookAt(
      past,
      ({ memory, use }) => memory >= FULL && use < USE_MAX,
      ({ node, memory, use }) => ({
        subject: { kind: 'node', id: node.id },
        severity: memory > 0.98 ? 'page' : 'warn',
        evidence: { memory: told(memory), use: told(use), inflight: node.inflight },
        says: `The memory of ${node.id} stands at ${percent(memory)} although only ${percent(use)} of its places are taken`,
      }),
    ),
};

function lookAt(past: Past, isBad: (node: Steady) => boolean, tell: (node: Steady) => Suspicion): Look {
  if (past.ago(WINDOW_S) === undefined) return { kind: 'blind', why: TOO_SHORT };
  if (past.now.nodes.every(({ memoryUse }) => memoryUse === undefined))
    return { kind: 'blind', why: NO_MEMORY };
  return { kind: 'seen', suspicions: steadyNodes(past.every10(WINDOW_S)).filter(isBad).map(tell) };
}

/** Nodes whose memory was known and did not move. */
function steadyNodes(samples: readonly Sample[]): readonly Steady[] {
  const [first, last] = [samples[0] as Sample, samples.at(-1) as Sample];
  const uses = samples.map(({ nodes }) => new Map(nodes.map(({ id, memoryUse }) => [id, memoryUse])));
  return nodesSince(first, last).flatMap(({ node, use }) => {
    const values = uses.map((byNode) => byNode.get(node.id));
    const known = values.filter((value) => value !== undefined);
    if (known.length < values.length || Math.max(...known) - Math.min(...known) > STEADY) return [];
    return [{ node, memory: known.at(-1) as number, use }];
  });
}
