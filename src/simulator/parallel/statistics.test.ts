import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { combinedHash, figureOf, studentT, summarize } from './statistics.ts';

describe('studentT', () => {
  // From published tables.
  test.each([
    [1, 12.7062],
    [4, 2.7764],
    [10, 2.2281],
    [11, 2.201],
    [19, 2.093],
    [29, 2.0452],
    [99, 1.9842],
    [999, 1.9623],
  ])('of %i degrees of freedom is %f', (degrees, expected) => {
    expect(studentT(degrees)).toBeCloseTo(expected, 3);
  });
});

describe('figureOf', () => {
  test('gives the mean and its interval', () => {
    const { mean, low, high } = figureOf([1, 2, 3, 4, 5]);
    expect(mean).toBe(3);
    // s = sqrt(2.5), n = 5, t = 2.7764
    expect(high - 3).toBeCloseTo(1.9632, 3);
    expect(3 - low).toBeCloseTo(1.9632, 3);
  });

  test('holds the true mean in 95 of 100 cases', () => {
    const prng = createPrng(4);
    const normal = (): number =>
      Math.sqrt(-2 * Math.log(1 - prng.nextRatio())) * Math.cos(2 * Math.PI * prng.nextRatio());
    let held = 0;
    for (let i = 0; i < 4_000; i++) {
      const { low, high } = figureOf(Array.from({ length: 5 }, () => 10 + normal()));
      if (low <= 10 && high >= 10) held += 1;
    }
    expect(held / 4_000).toBeGreaterThan(0.94);
    expect(held / 4_000).toBeLessThan(0.96);
  });

  test('of one value is that value, and infinite where one is', () => {
    expect(figureOf([7])).toEqual({ mean: 7, low: 7, high: 7 });
    expect(figureOf([7, Number.POSITIVE_INFINITY]).mean).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('summarize', () => {
  test('keeps the shape, and computes what some seeds lack over those that have it', () => {
    const reports: { readonly hash: string; readonly groups: Readonly<Record<string, { n: number }>> }[] = [
      { hash: 'a', groups: { x: { n: 1 } } },
      { hash: 'b', groups: { x: { n: 3 }, y: { n: 5 } } },
    ];
    const summary = summarize(reports);
    expect(summary.hash).toBe('a');
    expect(summary.groups['x']?.n.mean).toBe(2);
    expect(summary.groups['y']?.n).toEqual({ mean: 5, low: 5, high: 5 });
  });
});

describe('combinedHash', () => {
  test('of one is itself, of several depends on each and on their order', () => {
    const [a, b] = ['0123456789abcdef', 'fedcba9876543210'];
    expect(combinedHash([a])).toBe(a);
    expect(combinedHash([a, b])).toMatch(/^[0-9a-f]{16}$/);
    expect(
      new Set([combinedHash([a, b]), combinedHash([b, a]), combinedHash([a, a]), combinedHash([b, b])]).size,
    ).toBe(4);
  });
});
