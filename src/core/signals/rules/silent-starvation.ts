/**
 * The machines look busy and do less and less: use is flat while completed work per second decays. Work is counted in
 * reference time, so larger requests do not look like a decay, and use is the part of the places that is taken.
 *
 * The last minute is held against the three before it, in steps of ten seconds: the fall must be large, and larger than
 * the steps differ by chance (Welch's t). With use below a half nothing is starved: less work is then less demand.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { useOver } from './since.ts';
import { deviation, mean, percent, told } from '../statistics.ts';

const RECENT_S = 60;
const BEFORE_S = 180;
const FALL_RATIO = 0.25;
const USE_MIN = 0.5;
/** Change of the use that still counts as flat. */
const FLAT_RATIO = 0.1;
const T_MIN = 4;

export const silentStarvation: Rule = {
  signal: 'silent-starvation',
  thresholds: {
    fall: { value: FALL_RATIO, unit: 'ratio of work per second' },
    recent: { value: RECENT_S, unit: 's' },
    before: { value: BEFORE_S, unit: 's' },
    useMin: { value: USE_MIN, unit: 'ratio of places' },
    flat: { value: FLAT_RATIO, unit: 'ratio' },
    t: { value: T_MIN, unit: 'standard errors' },
  },
  enterSamples: 10,
  leaveSamples: 30,
  remedy:
    'Look for nodes whose work per second fell (node-variance, GET /nodes), for heat, for a changed model or engine version, and for other work on the hosts.',
  look,
};

interface Step {
  readonly workPerS: number;
  readonly use: number;
}

function look(past: Past): Look {
  if (past.ago(RECENT_S + BEFORE_S) === undefined)
    return { kind: 'blind', why: `It needs ${RECENT_S + BEFORE_S} s of samples` };
  const steps = stepsOf(past.every10(RECENT_S + BEFORE_S));
  const split = steps.length - RECENT_S / 10;
  const [before, recent] = [steps.slice(0, split), steps.slice(split)];
  const useBefore = mean(before.map(({ use }) => use));
  const useNow = mean(recent.map(({ use }) => use));
  const quiet = (why: string): Look => ({ kind: 'seen', suspicions: [], why });
  if (useBefore < USE_MIN) return quiet('The nodes are not busy');
  if (Math.abs(useNow - useBefore) > FLAT_RATIO * useBefore) return quiet('Use changes with the work');
  const fall = fallOf(
    before.map(({ workPerS }) => workPerS),
    recent.map(({ workPerS }) => workPerS),
  );
  if (fall.ratio < FALL_RATIO || fall.t < T_MIN) return quiet('Busy nodes complete what they did before');
  return {
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'gateway', id: '' },
        severity: fall.ratio > 2 * FALL_RATIO ? 'page' : 'warn',
        evidence: {
          useBefore: told(useBefore),
          useNow: told(useNow),
          workPerSecondBefore: told(fall.before),
          workPerSecondNow: told(fall.now),
          fall: told(fall.ratio),
          t: told(fall.t),
        },
        says: `${percent(useNow)} of the places are taken, as before, but completed work per second fell by ${percent(fall.ratio)}`,
      },
    ],
  };
}

function stepsOf(samples: readonly Sample[]): readonly Step[] {
  return samples.slice(1).map((sample, index) => {
    const last = samples[index] as Sample;
    const spanUs = sample.at - last.at;
    return {
      workPerS: (sample.servedWorkUs - last.servedWorkUs) / spanUs,
      use: useOver(last, sample),
    };
  });
}

function fallOf(
  before: readonly number[],
  recent: readonly number[],
): { readonly before: number; readonly now: number; readonly ratio: number; readonly t: number } {
  const [was, is] = [mean(before), mean(recent)];
  const error = Math.sqrt(
    deviation(before) ** 2 / before.length + deviation(recent) ** 2 / Math.max(1, recent.length),
  );
  return {
    before: was,
    now: is,
    ratio: was === 0 ? 0 : 1 - is / was,
    t: error === 0 ? 0 : (was - is) / error,
  };
}
