/**
 * No queue is to be seen, and retries climb: the waiting happens outside, in clients that come again and in attempts that are
 * made again. Retries are the gateway's own further attempts, and requests of clients who had asked before, but for as many as
 * were refused lately: who was told to come again and does is no ghost. Their rate is held against the four minutes before as
 * counts of Poisson.
 */
import type { Past } from '../past.ts';
import type { Look, Rule } from '../detector.ts';
import type { Sample } from '../sample.ts';
import { percent, told } from '../statistics.ts';
import { drainS, nodesSince } from './since.ts';

const RECENT_S = 60;
const BEFORE_S = 240;
const RETRIES_MIN = 20;
const RATIO_MIN = 3;
const SHARE_MIN = 0.05;
const Z_MIN = 4;
const DRAIN_S = 1;

export const ghostQueue: Rule = {
  signal: 'ghost-queue',
  thresholds: {
    retriesMin: { value: RETRIES_MIN, unit: 'retries' },
    ratio: { value: RATIO_MIN, unit: 'times the rate before' },
    share: { value: SHARE_MIN, unit: 'ratio of arrivals' },
    z: { value: Z_MIN, unit: 'standard deviations of Poisson' },
    drainMax: { value: DRAIN_S, unit: 's' },
    recent: { value: RECENT_S, unit: 's' },
    before: { value: BEFORE_S, unit: 's' },
  },
  // A burst that is refused comes back once, within a quarter of a minute: that is no queue.
  enterSamples: 20,
  leaveSamples: 30,
  remedy:
    'Look at what fails: the node that is named, or what clients are refused for. The work is done twice and nobody sees it wait.',
  look,
};

function look(past: Past): Look {
  const { now } = past;
  const middle = past.ago(RECENT_S);
  const then = past.ago(RECENT_S + BEFORE_S) ?? past.every10(RECENT_S + BEFORE_S)[0];
  if (middle === undefined || then === undefined || past.ageOf(then.at) < 2 * RECENT_S)
    return { kind: 'blind', why: `It needs ${2 * RECENT_S} s of samples` };
  const recent = retriesBetween(middle, now, past.ago(2 * RECENT_S) ?? middle);
  const arrived = now.accounts.arrived - middle.accounts.arrived;
  const arrivedBefore = middle.accounts.arrived - then.accounts.arrived;
  const quiet = (why: string): Look => ({ kind: 'seen', suspicions: [], why });
  if (past.every10(RECENT_S).some((sample) => drainS(sample) > DRAIN_S))
    return quiet('What waits is to be seen');
  if (recent < RETRIES_MIN || recent < SHARE_MIN * arrived) return quiet('There are few retries');
  // As many per arrival as before.
  const before = retriesBetween(then, middle, then);
  const expected = arrivedBefore === 0 ? 0 : (before * arrived) / arrivedBefore;
  const z = (recent - expected) / Math.sqrt(expected + 1);
  if (recent < RATIO_MIN * expected || z < Z_MIN) return quiet('There are as many retries as before');
  const culprit = worstOf(middle, now);
  const cause = causeOf(middle, now);
  return {
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'gateway', id: '' },
        severity: recent > arrived / 2 ? 'page' : 'warn',
        evidence: {
          retries: recent,
          expected: told(expected),
          ofThemAttempts: now.retries - middle.retries,
          ofThemClients: now.comebacks - middle.comebacks,
          arrived,
          z: told(z),
          ...culprit,
          ...cause,
        },
        says: `No queue, but ${recent} retries on ${arrived} requests in ${past.lasting(RECENT_S)} s (${told(expected)} before)${'node' in culprit ? `; ${percent(culprit.ofFailures)} of the failures are on ${culprit.node}` : ''}${'cause' in cause ? `; ${percent(cause.ofCause)} are "${cause.cause}"` : ''}`,
      },
    ],
  };
}

/** Of clients those whom no refusal since `refusedFrom` can have sent back. */
function retriesBetween(from: Sample, to: Sample, refusedFrom: Sample): number {
  const refused = to.accounts.rejected - refusedFrom.accounts.rejected;
  return to.retries - from.retries + Math.max(0, to.comebacks - from.comebacks - refused);
}

/** The node of most failures, and its part of them. */
function worstOf(
  then: Sample,
  now: Sample,
): { readonly node: string; readonly ofFailures: number } | Record<string, never> {
  const rows = nodesSince(then, now).map(({ node, failed, refused }) => ({
    id: node.id,
    bad: failed + refused,
  }));
  const all = rows.reduce((sum, { bad }) => sum + bad, 0);
  const [worst] = rows.toSorted((a, b) => b.bad - a.bad);
  return worst === undefined || all === 0 ? {} : { node: worst.id, ofFailures: told(worst.bad / all) };
}

/** The most frequent cause of failures in between, and its part of them. */
function causeOf(
  then: Sample,
  now: Sample,
): { readonly cause: string; readonly ofCause: number } | Record<string, never> {
  const before = new Map((then.outside?.failures ?? []).map(({ id, count }) => [id, count]));
  const rows = (now.outside?.failures ?? []).map(({ id, cause, count }) => ({
    cause,
    bad: count - (before.get(id) ?? 0),
  }));
  const all = rows.reduce((sum, { bad }) => sum + bad, 0);
  const [worst] = rows.toSorted((a, b) => b.bad - a.bad);
  return worst === undefined || all === 0 ? {} : { cause: worst.cause, ofCause: told(worst.bad / all) };
}
