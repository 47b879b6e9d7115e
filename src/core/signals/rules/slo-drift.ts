/**
 * Latency for the same size has shifted, and since when: a cumulative sum (Page 1954) over steps of ten seconds,
 * S = max(0, S + (x - mu) / sigma - k), alarm above h. x is the mean logarithm of latency over work, so a factor is a shift and larger
 * requests are none. The reference is the older half of ten minutes by median and median absolute deviation, and the change began
 * where S last left 0.
 *
 * Alone a cumulative sum with k = 0.5, h = 5 alarms once in 465 steps for nothing: every 78 minutes. So the shift must also be
 * large, and eat a part of the time to the deadline. What moved is told by parts: the waiting, or the node or model that adds most to
 * the shift. A correlation with sixty readings of thirty nodes always finds somebody.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import { type ClassSample, hostLack, type Sample } from '../sample.ts';
import { mean, median, percent, told } from '../statistics.ts';
import { logMean, nodesSince } from './since.ts';

const WINDOW_S = 590;
const K = 0.5;
const H = 5;
const Z_MIN = 2.3;
const RATIO_MIN = 1.5;
const SPREAD_MIN = 0.05;
const STEP_REQUESTS_MIN = 5;
/** Of the time to the deadline, on average after the change. */
const USED_MIN = 0.25;
/** Steps after the change, at least. */
const AFTER_MIN = 3;

export const sloDrift: Rule = {
  signal: 'slo-drift',
  thresholds: {
    k: { value: K, unit: 'standard deviations' },
    h: { value: H, unit: 'standard deviations' },
    z: { value: Z_MIN, unit: 'standard errors of the shift' },
    ratio: { value: RATIO_MIN, unit: 'times the latency before' },
    deadlineUsed: { value: USED_MIN, unit: 'ratio of the time to the deadline' },
    window: { value: WINDOW_S, unit: 's' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Look at what the finding blames: the queue, a node or a model; and at what was changed at the instant that it names.',
  look(past: Past): Look {
    if (past.ago(WINDOW_S) === undefined) return { kind: 'blind', why: `It needs ${WINDOW_S} s of samples` };
    const samples = past.every10(WINDOW_S);
    return { kind: 'seen', suspicions: past.now.classes.flatMap(({ name }) => driftOf(name, samples)) };
  },
};

interface Step {
  readonly x: number;
  readonly until: Sample;
}

function driftOf(name: string, samples: readonly Sample[]): readonly Suspicion[] {
  const steps = stepsOf(name, samples);
  const half = steps.length >> 1;
  if (half < 10) return [];
  const reference = steps.slice(0, half).map(({ x }) => x);
  const middle = median(reference);
  const spread = Math.max(SPREAD_MIN, median(reference.map((x) => Math.abs(x - middle))) / 0.6745);
  const change = changeOf(steps.slice(half), middle, spread);
  if (change === undefined || change.after.length < AFTER_MIN) return [];
  const shift = mean(change.after) - middle;
  const z = shift / (spread * Math.sqrt(1 / change.after.length + 1 / reference.length));
  if (z < Z_MIN || shift < Math.log(RATIO_MIN)) return [];
  const [first, last] = [samples[0] as Sample, samples.at(-1) as Sample];
  const used = usedBetween(name, change.from, last);
  if (used < USED_MIN) return [];
  const blame = blameOf(name, [first, change.from, last]);
  const beganS = (last.at - change.from.at) / 1e6;
  return [
    {
      subject: { kind: 'class', id: name },
      severity: used > 2 * USED_MIN ? 'page' : 'warn',
      evidence: {
        ratio: told(Math.exp(shift)),
        z: told(z),
        beganSecondsAgo: told(beganS),
        deadlineUsed: told(used),
        ...blame,
      },
      says: `${name} takes ${told(Math.exp(shift))} times as long for the same size since ${told(beganS)} s, ${percent(used)} of the time to its deadline; most of it by ${blame.by}`,
    },
  ];
}

function classIn(sample: Sample, name: string): ClassSample | undefined {
  return sample.classes.find((record) => record.name === name);
}

function stepsOf(name: string, samples: readonly Sample[]): readonly Step[] {
  return samples.slice(1).flatMap((until, at) => {
    const from = classIn(samples[at] as Sample, name);
    const to = classIn(until, name);
    if (from === undefined || to === undefined) return [];
    const { count, mean: x } = logMean(from.pace, to.pace);
    return count < STEP_REQUESTS_MIN ? [] : [{ x, until }];
  });
}

/** Runs the sum; undefined while it is not above h at the end. */
function changeOf(
  steps: readonly Step[],
  middle: number,
  spread: number,
): { readonly from: Sample; readonly after: readonly number[] } | undefined {
  let sum = 0;
  let began = 0;
  for (const [at, { x }] of steps.entries()) {
    if (sum === 0) began = at;
    sum = Math.max(0, sum + (x - middle) / spread - K);
  }
  const first = steps[Math.max(0, began - 1)];
  if (sum <= H || first === undefined) return undefined;
  return { from: first.until, after: steps.slice(began).map(({ x }) => x) };
}

function usedBetween(name: string, from: Sample, to: Sample): number {
  const [a, b] = [classIn(from, name), classIn(to, name)];
  if (a === undefined || b === undefined || b.served === a.served) return 0;
  return (b.deadlineUsed - a.deadlineUsed) / (b.served - a.served);
}

type Blame = { readonly by: string; readonly part: number; readonly host?: string };

/** Which part of the shift is the waiting, and which node adds most to the rest. */
function blameOf(name: string, [first, changed, last]: readonly [Sample, Sample, Sample]): Blame {
  const waited = waitBetween(name, changed, last) - waitBetween(name, first, changed);
  const before = new Map(nodesSince(first, changed).map(({ node, paces }) => [node.id, totalOf(paces)]));
  const after = nodesSince(changed, last).map(({ node, paces }) => ({ id: node.id, ...totalOf(paces) }));
  const all = after.reduce((sum, { count }) => sum + count, 0);
  const parts = after.map(({ id, count, sum }) => {
    const old = before.get(id);
    const usual = old === undefined || old.count === 0 ? 0 : old.sum / old.count;
    const now = count === 0 ? usual : sum / count;
    return { id, part: (count / Math.max(1, all)) * Math.max(0, now - usual) };
  });
  const slower = parts.reduce((sum, { part }) => sum + part, 0);
  const [worst] = parts.toSorted((a, b) => b.part - a.part);
  if (waited > 1 && slower < Math.log(RATIO_MIN) / 2) return { by: 'waiting in the queue', part: 1 };
  if (worst === undefined || slower <= 0) return { by: 'nothing that is measured', part: 0 };
  const part = worst.part / slower;
  if (part <= 0.5) return { by: 'slower service on most nodes', part: 1 };
  const host = hostLack(last, worst.id);
  return { by: `the node ${worst.id}`, part: told(part), ...(host === undefined ? {} : { host }) };
}

function waitBetween(name: string, from: Sample, to: Sample): number {
  const [a, b] = [classIn(from, name), classIn(to, name)];
  if (a === undefined || b === undefined || b.dispatched === a.dispatched) return 0;
  return (b.waitS - a.waitS) / (b.dispatched - a.dispatched);
}

function totalOf(paces: readonly { readonly count: number; readonly mean: number }[]): {
  readonly count: number;
  readonly sum: number;
} {
  let count = 0;
  let sum = 0;
  for (const pace of paces) {
    count += pace.count;
    sum += pace.count * pace.mean;
  }
  return { count, sum };
}
