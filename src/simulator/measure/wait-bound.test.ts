import { describe, expect, test } from 'vitest';
import { S, taskSpec } from '../../../test/support/specs.ts';
import type { Job } from '../machines/machine.ts';
import { type Expectation, WaitBounds } from './wait-bound.ts';

function job(id: number, tenant: string, noise = 1): Job {
  return {
    task: taskSpec(id, { tenant }),
    demand: { kind: 'work', workUs: S },
    noise,
    attempts: 0,
    sentAt: -1,
    firstSentAt: -1,
  };
}

/** A class with a quarter of a fleet that does 4 s of work each second, on nodes of 2. */
const bounds = (): WaitBounds => new WaitBounds({ shares: new Map([['normal', 0.25]]), fastestRate: 2 });

function expected(workUs: number, change: Partial<Expectation> = {}): Expectation {
  return { workUs, capacity: 4, counts: true, ...change };
}

describe('WaitBounds', () => {
  test('allow the largest request at the share of the class, and one on the fastest node', () => {
    const watched = bounds();
    const one = job(1, 'a');
    watched.waits(one, expected(2 * S));
    watched.starts(one, 3 * S);
    expect(watched.report()).toEqual({ checked: 1, violations: 0, ratioMax: 1 });
    const two = job(2, 'a');
    watched.waits(two, expected(S));
    watched.starts(two, 3 * S + 1);
    expect(watched.report()).toMatchObject({ checked: 2, violations: 1 });
  });

  test('allow for what the own flow was served meanwhile, and share with the flows that wait at the arrival', () => {
    const watched = bounds();
    const [first, second, other] = [job(1, 'a'), job(2, 'a'), job(3, 'b')];
    watched.waits(first, expected(S));
    watched.waits(second, expected(S));
    watched.waits(other, expected(S));
    watched.starts(first, 0);
    // One second of its own flow before it, and one for the largest: 2 s at a rate of 1, and half a second.
    watched.starts(second, 2.5 * S);
    expect(watched.report()).toMatchObject({ violations: 0, ratioMax: 1 });
    // Two flows waited: 1 s at a rate of a half, and half a second.
    watched.starts(other, 2.5 * S);
    expect(watched.report()).toMatchObject({ violations: 0, ratioMax: 1 });
    const alone = job(4, 'a');
    watched.waits(alone, expected(S));
    watched.starts(alone, 1.6 * S);
    expect(watched.report()).toMatchObject({ checked: 4, violations: 1 });
  });

  test('allow nothing for those of the own flow that were never sent', () => {
    const watched = bounds();
    const [dropped, next] = [job(1, 'a'), job(2, 'a')];
    watched.waits(dropped, expected(S));
    watched.waits(next, expected(S));
    watched.ends(dropped, S);
    watched.starts(next, 2 * S);
    expect(watched.report()).toMatchObject({ checked: 2, violations: 1 });
  });

  test('allow for an estimate that was too high', () => {
    const watched = bounds();
    const overrated = { ...job(1, 'a'), task: taskSpec(1, { tenant: 'a', workUs: 2 * S }) };
    watched.waits(overrated, expected(S));
    watched.starts(overrated, 3 * S);
    expect(watched.report()).toMatchObject({ violations: 0, ratioMax: 1 });
  });

  test('count the noise of the service, and each wait once', () => {
    const watched = bounds();
    const noisy = job(1, 'a', 2);
    watched.waits(noisy, expected(S));
    watched.starts(noisy, 3 * S);
    watched.starts(noisy, 30 * S);
    expect(watched.report()).toEqual({ checked: 1, violations: 0, ratioMax: 1 });
    expect(bounds().report()).toBeUndefined();
  });

  test('judge those who count alone, and see the others ahead of them', () => {
    const watched = bounds();
    const [before, other, counted] = [job(1, 'a'), job(2, 'b'), job(3, 'a')];
    watched.waits(before, expected(S, { counts: false }));
    watched.waits(other, expected(S, { counts: false }));
    watched.waits(counted, expected(S));
    watched.starts(before, 60 * S);
    // One second of its own flow and one for the largest at a rate of a half, since two flows wait; and half a second.
    watched.starts(counted, 4.5 * S);
    expect(watched.report()).toEqual({ checked: 1, violations: 0, ratioMax: 1 });
  });
});
