import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { Distribution, ExactBudget } from './distribution.ts';
import { bucketOf, RELATIVE_ERROR, TimedValue, valueOf } from './log-histogram.ts';

/** Lognormal over five decades. */
function values(count: number, seed: number): readonly number[] {
  const prng = createPrng(seed);
  return Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
    return Math.round(Math.exp(12 + 2 * radius * Math.cos(2 * Math.PI * prng.nextRatio())));
  });
}

function timed(valueUs: number): TimedValue {
  const value = new TimedValue();
  value.set(valueUs);
  return value;
}

function distributionOf(list: readonly number[], exactMax?: number): Distribution {
  const distribution = new Distribution(exactMax === undefined ? {} : { exactMax });
  for (const value of list) distribution.add(timed(value));
  return distribution;
}

/** Nearest rank, computed another way. */
function rankMs(list: readonly number[], q: number): number {
  const sorted = [...list].sort((a, b) => a - b);
  return (sorted.find((_, index) => (index + 1) / sorted.length >= q) as number) / 1_000;
}

describe('Distribution', () => {
  test('gives exact quantiles while it keeps all values', () => {
    const list = values(5_001, 1);
    const { p50, p95, p99, max } = distributionOf(list).quantilesMs();
    expect([p50, p95, p99, max]).toEqual([
      rankMs(list, 0.5),
      rankMs(list, 0.95),
      rankMs(list, 0.99),
      Math.max(...list) / 1_000,
    ]);
  });

  test('is off by at most the relative error once it holds more than it keeps, mean and maximum exact', () => {
    for (let seed = 1; seed <= 5; seed++) {
      const list = values(20_000, seed);
      const exact = distributionOf(list).quantilesMs();
      const blurred = distributionOf(list, 1_000).quantilesMs();
      expect(blurred.mean).toBeCloseTo(exact.mean, 6);
      expect(blurred.max).toBe(exact.max);
      for (const key of ['p50', 'p95', 'p99'] as const) {
        expect(Math.abs(blurred[key] / exact[key] - 1), key).toBeLessThanOrEqual(RELATIVE_ERROR + 1e-9);
        expect(blurred[key], 'a histogram cannot give the very value').not.toBe(exact[key]);
      }
    }
  });

  test('merges what was kept and what was blurred as if it had all been added to one', () => {
    const [first, second] = [values(3_000, 7), values(3_000, 8)];
    const whole = distributionOf([...first, ...second]).quantilesMs();
    for (const [a, b] of [
      [10_000, 100],
      [100, 10_000],
      [100, 100],
    ]) {
      const merged = distributionOf(first, a);
      merged.merge(distributionOf(second, b));
      expect(merged.count).toBe(6_000);
      expect(merged.quantilesMs().mean).toBeCloseTo(whole.mean, 6);
      expect(Math.abs(merged.quantilesMs().p95 / whole.p95 - 1)).toBeLessThanOrEqual(RELATIVE_ERROR + 1e-9);
    }
  });

  test('keeps no more values than the budget that it shares allows', () => {
    const budget = new ExactBudget(1_000);
    const [one, other] = [new Distribution({ budget }), new Distribution({ budget })];
    const list = values(2_000, 3);
    for (const value of list.slice(0, 500)) one.add(timed(value));
    expect(budget.left).toBeGreaterThanOrEqual(0);
    expect(one.quantilesMs().p95).toBe(rankMs(list.slice(0, 500), 0.95));
    for (const value of list) other.add(timed(value));
    expect(budget.left).toBeGreaterThanOrEqual(0);
    const exactMs = rankMs(list, 0.95);
    expect(other.quantilesMs().p95).not.toBe(exactMs);
    expect(Math.abs(other.quantilesMs().p95 / exactMs - 1)).toBeLessThanOrEqual(RELATIVE_ERROR + 1e-9);
  });

  test('of nothing is 0 throughout', () => {
    expect(new Distribution().quantilesMs()).toEqual({ mean: 0, p50: 0, p95: 0, p99: 0, max: 0 });
  });
});

describe('bucketOf', () => {
  test('puts every value next to the value of its bucket, and what is below 1 at 0', () => {
    for (let value = 1; value < 1e15; value = Math.ceil(value * 1.37))
      expect(Math.abs(valueOf(bucketOf(value)) / value - 1)).toBeLessThanOrEqual(RELATIVE_ERROR + 1e-9);
    expect(valueOf(bucketOf(0))).toBe(0);
    expect(valueOf(bucketOf(0.4))).toBe(0);
  });
});
