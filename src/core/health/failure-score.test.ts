import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { FailureScore } from './failure-score.ts';

const SEEDS = 200;

/** The request at which a node that fails with this chance is found out, or `limit + 1`. */
function foundAfter(seed: number, chance: number, limit: number): number {
  const prng = createPrng(seed);
  const score = new FailureScore();
  for (let request = 1; request <= limit; request++) {
    if (score.record(prng.nextRatio() >= chance)) return request;
  }
  return limit + 1;
}

function counts(chance: number, limit: number): number[] {
  return Array.from({ length: SEEDS }, (_, seed) => foundAfter(seed, chance, limit));
}

describe('FailureScore', () => {
  test('finds a node that refuses everything within ten requests', () => {
    expect(Math.max(...counts(1, 100))).toBeLessThanOrEqual(10);
  });

  test('finds a node that fails 40 % within 50 requests, successes in between or not', () => {
    expect(Math.max(...counts(0.4, 200))).toBeLessThanOrEqual(50);
  });

  test('lets a node that fails 5 % go on for 200 requests, nearly always', () => {
    const found = counts(0.05, 200).filter((request) => request <= 200).length;
    expect(found / SEEDS).toBeLessThanOrEqual(0.1);
  });

  test('never finds a node that fails one request in a hundred', () => {
    expect(counts(0.01, 1_000).filter((request) => request <= 1_000).length).toBeLessThanOrEqual(2);
  });

  test('shows the share of successes among the last 20, and is clean again after enough of them', () => {
    const score = new FailureScore();
    expect(score.successRatio).toBe(1);
    score.record(false);
    expect(score.isClean).toBe(false);
    for (let i = 0; i < 19; i++) score.record(true);
    expect(score.successRatio).toBe(0.95);
    expect(score.isClean).toBe(true);
    for (let i = 0; i < 20; i++) score.record(true);
    expect(score.successRatio).toBe(1);
  });
});
