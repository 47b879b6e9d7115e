/**
 * Use is flat and the slowest requests of a class become slower: a lock, a shared disk, a starved host, an engine that queues inside.
 * Compared is the part of the last minute's requests that took longer for their size than all but 1 % of the five minutes before:
 * 1 % by chance, and a binomial tells how much is more than chance. A percentile alone moves with every burst.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { ClassSample, Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';
import { countAbove, quantile, quantileStep, stepsBetween } from './latency-steps.ts';
import { useOver } from './since.ts';

const RECENT_S = 60;
const BEFORE_S = 240;
const Q = 0.99;
const RATIO_MIN = 1.5;
/** Part of the last minute above the old 99th percentile. */
const ABOVE_MIN = 0.1;
const Z_MIN = 6;
const RECENT_MIN = 100;
const BEFORE_MIN = 500;
const FLAT = 0.1;
const USE_MAX = 0.9;

export const silentOverload: Rule = {
  signal: 'silent-overload',
  thresholds: {
    ratio: { value: RATIO_MIN, unit: 'times the 99th percentile before' },
    above: { value: ABOVE_MIN, unit: 'ratio of requests above the old 99th percentile' },
    z: { value: Z_MIN, unit: 'standard deviations' },
    flat: { value: FLAT, unit: 'of the places' },
    recent: { value: RECENT_S, unit: 's' },
    before: { value: BEFORE_S, unit: 's' },
    recentMin: { value: RECENT_MIN, unit: 'requests' },
    beforeMin: { value: BEFORE_MIN, unit: 'requests' },
  },
  enterSamples: 15,
  leaveSamples: 30,
  remedy:
    'Something that is not counted as use is full: look at the hosts of the slowest nodes (CPU, disk, network, PCIe), at what waits inside engines, and at the loop lag of the gateway.',
  look(past: Past): Look {
    const { now } = past;
    const middle = past.ago(RECENT_S);
    const then = past.ago(RECENT_S + BEFORE_S);
    if (middle === undefined || then === undefined)
      return { kind: 'blind', why: `It needs ${RECENT_S + BEFORE_S} s of samples` };
    const use = useOver(middle, now);
    const useBefore = useOver(then, middle);
    const seen = { use, useBefore };
    if (Math.abs(use - useBefore) > FLAT) return { kind: 'seen', suspicions: [], why: 'Use changes as well' };
    if (use > USE_MAX)
      return { kind: 'seen', suspicions: [], why: 'The overload is to be seen: all places are taken' };
    const waits = middle.classes.some(({ depth }) => depth > 0) && now.classes.some(({ depth }) => depth > 0);
    if (waits) return { kind: 'seen', suspicions: [], why: 'The overload is to be seen: requests wait' };
    return {
      kind: 'seen',
      suspicions: now.classes.flatMap((record) =>
        suspicionOf(record, [then, middle], { ...seen, ...hostsOf(now) }),
      ),
    };
  },
};

function suspicionOf(
  record: ClassSample,
  [then, middle]: readonly [Sample, Sample],
  { use, useBefore, ...hosts }: { readonly use: number; readonly useBefore: number } & HostsEvidence,
): readonly Suspicion[] {
  const first = then.classes.find(({ name }) => name === record.name);
  const second = middle.classes.find(({ name }) => name === record.name);
  if (first === undefined || second === undefined) return [];
  const before = stepsBetween(first.paceSteps, second.paceSteps);
  const recent = stepsBetween(second.paceSteps, record.paceSteps);
  if (before.total < BEFORE_MIN || recent.total < RECENT_MIN) return [];
  const above = countAbove(recent, quantileStep(before, Q));
  const expected = recent.total * (1 - Q);
  const z = (above - expected) / Math.sqrt(expected * Q);
  const ratio = quantile(recent, Q) / quantile(before, Q);
  if (above < ABOVE_MIN * recent.total || z < Z_MIN || ratio < RATIO_MIN) return [];
  return [
    {
      subject: { kind: 'class', id: record.name },
      severity: above > recent.total / 2 ? 'page' : 'warn',
      evidence: {
        p99Ratio: told(ratio),
        above: told(above / recent.total),
        z: told(z),
        requests: recent.total,
        use: told(use),
        useBefore: told(useBefore),
        ...hosts,
      },
      says: `${percent(above / recent.total)} of ${record.name} take longer for their size than the slowest 1 % did before, while ${percent(use)} of the places are taken as before`,
    },
  ];
}

interface HostsEvidence {
  /** Nodes whose hosts lack something by what they tell, and the first of them. */
  readonly lackingHosts?: number;
  readonly host?: string;
}

function hostsOf({ outside }: Sample): HostsEvidence {
  const hosts = outside?.hosts ?? [];
  const [first] = hosts;
  return first === undefined ? {} : { lackingHosts: hosts.length, host: `${first.nodeId}: ${first.says}` };
}
