/**
 * Priority labels mean less and less: everybody becomes important. The shares of arrivals by class are held against the five minutes
 * before by the population stability index, sum (p - q) ln(p / q), of which more than 0.25 is commonly taken for another population.
 */
import type { Past } from '../past.ts';
import type { Look, Rule, Suspicion } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';

const RECENT_S = 240;
const BEFORE_S = 300;
const PSI_WARN = 0.25;
const PSI_PAGE = 0.5;
const ARRIVALS_MIN = 300;

export const labelDrift: Rule = {
  signal: 'label-drift',
  thresholds: {
    warn: { value: PSI_WARN, unit: 'population stability index' },
    page: { value: PSI_PAGE, unit: 'population stability index' },
    arrivalsMin: { value: ARRIVALS_MIN, unit: 'requests' },
    recent: { value: RECENT_S, unit: 's' },
    before: { value: BEFORE_S, unit: 's' },
  },
  enterSamples: 15,
  leaveSamples: 60,
  remedy:
    'See which tenants ask for more (`GET /spillway/v1/limits`, the tenants of the higher classes) and bound their class or their rate.',
  look(past: Past): Look {
    const middle = past.ago(RECENT_S);
    const then = past.ago(RECENT_S + BEFORE_S);
    if (middle === undefined || then === undefined)
      return { kind: 'blind', why: `It needs ${RECENT_S + BEFORE_S} s of samples` };
    return { kind: 'seen', suspicions: mixChange(then, middle, past.now) };
  },
};

function mixChange(then: Sample, middle: Sample, now: Sample): readonly Suspicion[] {
  const before = arrivalsOf(then, middle);
  const recent = arrivalsOf(middle, now);
  const [all, allBefore] = [sum(recent), sum(before)];
  if (all < ARRIVALS_MIN || allBefore < ARRIVALS_MIN) return [];
  // Half an arrival more of each: a class that nobody asked for is rare, not impossible.
  const shares = now.classes.map(({ name }, at) => {
    const p = ((recent[at] ?? 0) + 0.5) / (all + 0.5 * recent.length);
    const q = ((before[at] ?? 0) + 0.5) / (allBefore + 0.5 * before.length);
    return { name, p, q, index: (p - q) * Math.log(p / q) };
  });
  const index = shares.reduce((total, share) => total + share.index, 0);
  if (index < PSI_WARN) return [];
  const [most] = shares.toSorted((a, b) => b.p - b.q - (a.p - a.q)) as [(typeof shares)[number]];
  return [
    {
      subject: { kind: 'class', id: most.name },
      severity: index >= PSI_PAGE ? 'page' : 'warn',
      evidence: { index: told(index), share: told(most.p), shareBefore: told(most.q), arrivals: all },
      says: `${most.name} is asked for by ${percent(most.p)} of the requests, before by ${percent(most.q)}`,
    },
  ];
}

function arrivalsOf(from: Sample, to: Sample): readonly number[] {
  return to.classes.map(({ name, arrived }) => {
    return arrived - (from.classes.find((record) => record.name === name)?.arrived ?? 0);
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
