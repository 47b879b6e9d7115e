import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { FailureScore } from './failure-score.ts';

const SEEDS = 200;

/** The request at which a node that fails with this chance is found out, or `limit + 1`. */
function foundAfter(seed: number, chance: number, limit: number): number {
  const prng = createPrng(seed);
  const score = new FailureScore();
  for (let request = 1; request <= limit; request++) {
    if (score.record(prng.nextRatio() >= chance, 0)) return request;
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

  test('is over its limit whenever half of 20 requests failed, in whatever order', () => {
    const prng = createPrng(1);
    for (let round = 0; round < 2_000; round++) {
      const outcomes = Array.from({ length: 20 }, (_, i) => i % 2 === 0);
      for (let i = 19; i > 0; i--) {
        const j = prng.nextBelow(i + 1);
        [outcomes[i], outcomes[j]] = [outcomes[j] as boolean, outcomes[i] as boolean];
      }
      const score = new FailureScore();
      expect(outcomes.map((outcome) => score.record(outcome, 0))).toContain(true);
    }
  });

  test('forgets failures that are older than ten minutes when the next outcome comes', () => {
    const score = new FailureScore();
    score.record(false, 0);
    score.record(false, 1);
    expect(score.record(false, 600_000_002)).toBe(false);
    expect(score.successRatio).toBe(0);
    expect([score.record(false, 600_000_003), score.record(false, 600_000_004)]).toEqual([false, true]);
  });

  test('keeps over a restart what it had, and never more than is one failure short of its limit', () => {
    const score = new FailureScore();
    score.record(true, 0);
    for (let i = 0; i < 2; i++) score.record(false, 0);
    const restored = new FailureScore();
    restored.restore(score.memory(0) ?? { score: 0, window: 0, count: 0 }, 0);
    expect(restored.successRatio).toBe(score.successRatio);
    expect(restored.record(false, 0)).toBe(true);
    restored.restore({ score: 99, window: 0, count: 20 }, 0);
    expect(restored.record(true, 0)).toBe(false);
    expect(new FailureScore().memory(0)).toBeUndefined();
  });

  test('shows the share of successes among the last 20, and is clean again after enough of them', () => {
    const score = new FailureScore();
    expect(score.successRatio).toBe(1);
    score.record(false, 0);
    expect(score.isClean).toBe(false);
    for (let i = 0; i < 19; i++) score.record(true, 0);
    expect(score.successRatio).toBe(0.95);
    expect(score.isClean).toBe(true);
    for (let i = 0; i < 20; i++) score.record(true, 0);
    expect(score.successRatio).toBe(1);
  });
});
