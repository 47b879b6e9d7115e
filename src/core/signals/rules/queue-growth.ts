/**
 * What waits grows and grows, and nobody adds capacity. Each third of the last minute has at least 1.2 times as much work waiting as
 * the one before, the course is a trend and not a burst (Mann 1945, Kendall 1975), and open capacity is what it was.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { told } from '../statistics.ts';
import { drainS } from './since.ts';

const WINDOW_S = 60;
const GROWTH = 1.2;
const DRAIN_S = 2;
const DEPTH_MIN = 20;
const CAPACITY_GROWTH = 1.05;
/** Pairs in order less pairs out of order, of the 21 of seven samples: by chance once in a hundred. */
const KENDALL_MIN = 15;

export const queueGrowth: Rule = {
  signal: 'queue-growth',
  thresholds: {
    growth: { value: GROWTH, unit: 'times, from each 20 s to the next' },
    drainMin: { value: DRAIN_S, unit: 's' },
    depthMin: { value: DEPTH_MIN, unit: 'tasks' },
    capacityGrowth: { value: CAPACITY_GROWTH, unit: 'times' },
    kendall: { value: KENDALL_MIN, unit: 'of 21 pairs' },
  },
  enterSamples: 5,
  leaveSamples: 30,
  remedy:
    'Add nodes, or see why the autoscaler does not: it should follow the drain time. Until then let the gates refuse (flow-wait, ladder).',
  look,
};

function look(past: Past): Look {
  const samples = past.every10(WINDOW_S);
  if (past.ago(WINDOW_S) === undefined || samples.length < 7)
    return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
  const works = samples.slice(-7).map(({ classes }) => classes.reduce((sum, { workUs }) => sum + workUs, 0));
  const [a, b, c] = [pair(works, 1), pair(works, 3), pair(works, 5)];
  const first = samples.at(-7) as Sample;
  const { now } = past;
  const quiet = (why: string): Look => ({ kind: 'seen', suspicions: [], why });
  const drain = drainS(now);
  const depth = now.accounts.queued;
  if (drain < DRAIN_S || depth < DEPTH_MIN) return quiet('Little waits');
  if (b < GROWTH * a || c < GROWTH * b || kendall(works) < KENDALL_MIN)
    return quiet('What waits does not go on growing');
  if (now.capacity > first.capacity * CAPACITY_GROWTH) return quiet('Capacity grows as well');
  return {
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'gateway', id: '' },
        severity: c > 2 * a ? 'page' : 'warn',
        evidence: {
          waiting: depth,
          drainS: told(drain),
          drainBeforeS: told(drainS(first)),
          capacityBefore: told(first.capacity),
          capacityNow: told(now.capacity),
          openNodes: now.openNodes,
        },
        says: `What waits takes ${told(drain)} s, ${past.lasting(WINDOW_S)} s ago ${told(drainS(first))} s, and goes on growing with no more capacity than before`,
      },
    ],
  };
}

function pair(values: readonly number[], at: number): number {
  return ((values[at] as number) + (values[at + 1] as number)) / 2;
}

function kendall(values: readonly number[]): number {
  let sum = 0;
  for (const [at, value] of values.entries())
    for (const later of values.slice(at + 1)) sum += Math.sign(later - value);
  return sum;
}
