import { describe, expect, test } from 'vitest';
import { createPrng, type Prng } from '../../base/prng.ts';
import { PaceScore } from './pace-score.ts';

const S = 1_000_000;
const HALF = 0.5;

function noise(prng: Prng, sigma: number): number {
  const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
  return Math.exp(sigma * radius * Math.cos(2 * Math.PI * prng.nextRatio()));
}

/** The task at which a node is found out that becomes `slower` times slower after 200 tasks, or `limit + 1`. */
function foundAfter(seed: number, sigma: number, slower: number, limit: number): number {
  const prng = createPrng(seed);
  const score = new PaceScore();
  for (let i = 0; i < 200; i++) if (score.record(S, S * noise(prng, sigma), 1, HALF)) return 0;
  for (let i = 1; i <= limit; i++) if (score.record(S, S * slower * noise(prng, sigma), 1, HALF)) return i;
  return limit + 1;
}

describe('PaceScore', () => {
  test.each([
    [0.1, 5],
    [0.3, 20],
    [0.5, 50],
  ])('finds a node that is three times slower, spread %f, within %i tasks', (sigma, most) => {
    const found = Array.from({ length: 100 }, (_, seed) => foundAfter(seed, sigma, 3, 200));
    expect(Math.min(...found)).toBeGreaterThanOrEqual(3);
    expect(Math.max(...found)).toBeLessThanOrEqual(most);
  });

  test('takes tasks that share the steps of an engine for one teller: a prompt that stops all of them accuses nobody', () => {
    const accusedBy = (sharesSteps: boolean): number => {
      const prng = createPrng(5);
      const score = new PaceScore(sharesSteps);
      let accused = 0;
      for (let task = 0; task < 2_000; task++) {
        const isStopped = task > 200 && task % 160 < 16;
        const timeUs = S * (isStopped ? 4 : 1) * noise(prng, 0.1);
        if (score.record(S, timeUs, 16, HALF)) accused += 1;
      }
      return accused;
    };
    expect(accusedBy(true)).toBe(0);
    expect(accusedBy(false)).toBeGreaterThan(0);
  });

  test('finds an engine that is three times slower within five times as many tasks as run beside each other', () => {
    for (let seed = 0; seed < 50; seed++) {
      const prng = createPrng(seed);
      const score = new PaceScore(true);
      for (let i = 0; i < 200; i++)
        expect(score.record(S, S * noise(prng, 0.1), 16, HALF), `seed ${seed}`).toBe(false);
      let tasks = 1;
      while (tasks < 1_000 && !score.record(S, 3 * S * noise(prng, 0.1), 16, HALF)) tasks += 1;
      expect(tasks, `seed ${seed}`).toBeLessThanOrEqual(5 * 16);
    }
  });

  test.each([0.05, 0.3, 0.6, 1])('accuses nobody for a spread of %f over 100,000 tasks', (sigma) => {
    const prng = createPrng(7);
    const score = new PaceScore();
    let accused = 0;
    for (let i = 0; i < 100_000; i++) if (score.record(S, S * noise(prng, sigma), 1, HALF)) accused += 1;
    expect(accused).toBe(0);
  });

  test('accuses nobody for one task that takes for ever, nor for two', () => {
    const score = new PaceScore();
    for (let i = 0; i < 100; i++) score.record(S, S, 1, HALF);
    expect([score.record(S, 1_000 * S, 1, HALF), score.record(S, 1_000 * S, 1, HALF)]).toEqual([
      false,
      false,
    ]);
  });

  test('knows that tasks beside each other take longer', () => {
    const prng = createPrng(3);
    const score = new PaceScore();
    let accused = 0;
    for (let i = 0; i < 400; i++) score.record(S, S * noise(prng, 0.1), 1, HALF);
    for (let i = 0; i < 50; i++) if (score.record(S, 8 * S * noise(prng, 0.1), 8, HALF)) accused += 1;
    for (let i = 0; i < 4_000; i++) {
      const inflight = 1 + prng.nextBelow(16);
      if (score.record(S, S * inflight * noise(prng, 0.2), inflight, HALF)) accused += 1;
    }
    expect(accused).toBe(0);
  });

  test('follows a node that becomes slower little by little', () => {
    const score = new PaceScore();
    let accused = 0;
    for (let i = 0; i < 4_000; i++) if (score.record(S, S * (1 + i / 1_000), 1, HALF)) accused += 1;
    expect(accused).toBe(0);
  });

  test('takes no note of tasks below 50 ms', () => {
    const score = new PaceScore();
    for (let i = 0; i < 100; i++) score.record(10_000, 10_000, 1, HALF);
    expect(Array.from({ length: 50 }, () => score.record(10_000, 49_000, 1, HALF))).not.toContain(true);
  });

  test('is suspected from one strong step on, and no more after a usual task', () => {
    const score = new PaceScore();
    for (let i = 0; i < 100; i++) score.record(S, S, 1, HALF);
    expect(score.isSuspected).toBe(false);
    score.record(S, 4 * S, 1, HALF);
    expect(score.isSuspected).toBe(true);
    score.record(S, S, 1, HALF);
    expect(score.isSuspected).toBe(false);
  });

  test.each([1, 8])('is established after twenty tasks, with %i beside each other', (inflight) => {
    const score = new PaceScore();
    for (let i = 0; i < 19; i++) score.record(S, S, inflight, HALF);
    expect(score.isEstablished).toBe(false);
    score.record(S, S, inflight, HALF);
    expect(score.isEstablished).toBe(true);
  });
});
