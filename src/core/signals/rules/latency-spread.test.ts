import { expect, test } from 'vitest';
import { sampleAt } from '../../../../test/support/samples.ts';
import { ClassTally, type ClassSample } from '../index.ts';
import { Past } from '../past.ts';
import { latencySpread } from './latency-spread.ts';

const WORK_US = 1_000_000;

interface Answers {
  readonly tenant: string;
  readonly count: number;
  /** Time over work of every one. */
  readonly pace: number;
  readonly weight?: number;
}

function classOf(answers: readonly Answers[]): ClassSample {
  const tally = new ClassTally();
  for (const { tenant, count, pace, weight = 1 } of answers)
    for (let nth = 0; nth < count; nth++) {
      tally.noteDispatched(0, WORK_US);
      tally.noteServed(
        { flow: { tenant, weight }, workUs: WORK_US, submittedAt: 0, deadlineAt: 100 * WORK_US },
        pace * WORK_US,
      );
    }
  return {
    name: 'normal',
    share: 1,
    depth: 0,
    workUs: 0,
    oldestWaitUs: 0,
    running: 0,
    arrived: tally.dispatched,
    dispatched: tally.dispatched,
    waitS: 0,
    waitSquares: 0,
    dispatchedWorkUs: tally.dispatchedWorkUs,
    served: tally.served,
    missed: 0,
    failed: 0,
    cancelled: 0,
    overtaken: 0,
    pace: tally.pace,
    paceSteps: tally.paceSteps,
    tenantPaces: tally.tenantPaces.sample(),
    deadlineUsed: 0,
  };
}

function pastOf(answers: readonly Answers[], spanS = 300): Past {
  const past = new Past();
  for (let second = 0; second < spanS; second++) past.add(sampleAt(second, { classes: [classOf([])] }));
  past.add(sampleAt(spanS, { classes: [classOf(answers)] }));
  return past;
}

const OTHERS: readonly Answers[] = [
  { tenant: 'a', count: 400, pace: 1 },
  { tenant: 'b', count: 200, pace: 1.2 },
];

test('latency-spread names the class and the tenants at both ends', () => {
  const look = latencySpread.look(pastOf([...OTHERS, { tenant: 'slow', count: 60, pace: 4 }]));
  expect(look).toMatchObject({
    kind: 'seen',
    suspicions: [
      {
        subject: { kind: 'class', id: 'normal' },
        evidence: { slowest: 'slow', quickest: 'a', answers: 60, above: 1 },
      },
    ],
  });
});

test.each([
  ['too few answers', { tenant: 'slow', count: 49, pace: 4 }],
  ['less than half as long again', { tenant: 'slow', count: 60, pace: 1.5 }],
  ['more work than its weight', { tenant: 'slow', count: 400, pace: 4 }],
])('latency-spread accuses nobody of %s', (_what, slow) => {
  expect(latencySpread.look(pastOf([...OTHERS, slow]))).toMatchObject({ kind: 'seen', suspicions: [] });
});

test('latency-spread takes more work than the others for right only up to the weight', () => {
  const heavy = { tenant: 'slow', count: 400, pace: 4, weight: 8 };
  expect(latencySpread.look(pastOf([...OTHERS, heavy]))).toMatchObject({
    suspicions: [{ evidence: { slowest: 'slow' } }],
  });
});

test('latency-spread sees nothing without its window, and says what it lacks', () => {
  expect(latencySpread.look(pastOf(OTHERS, 200))).toEqual({
    kind: 'blind',
    why: 'It needs 300 s of samples',
  });
  expect(latencySpread.look(pastOf([{ tenant: 'a', count: 400, pace: 1 }]))).toMatchObject({
    kind: 'seen',
    suspicions: [],
    why: 'No class has two tenants with 50 answers',
  });
});
