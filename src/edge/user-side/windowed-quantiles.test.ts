import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WINDOW_US, WindowedQuantiles } from './windowed-quantiles.ts';

const windows = (count: number): number => count * WINDOW_US;

describe('WindowedQuantiles', () => {
  test('are never too small, and at most 5 % too large', () => {
    const times = fc.array(fc.integer({ min: 100, max: 3_600_000_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(times, (all) => {
        const quantiles = new WindowedQuantiles();
        for (const us of all) quantiles.add(us, 0);
        const sorted = all.toSorted((a, b) => a - b);
        const { count, p50Ms = 0, p95Ms = 0, p99Ms = 0 } = quantiles.read(0);
        expect(count).toBe(all.length);
        for (const [q, told] of [
          [0.5, p50Ms],
          [0.95, p95Ms],
          [0.99, p99Ms],
        ] as const) {
          const trueMs = (sorted[Math.ceil(q * all.length) - 1] as number) / 1_000;
          expect(told).toBeGreaterThanOrEqual(trueMs * 0.999);
          expect(told).toBeLessThanOrEqual(trueMs * 1.051);
        }
      }),
    );
  });

  test('forget what is older than two windows', () => {
    const quantiles = new WindowedQuantiles();
    quantiles.add(1_000, 0);
    expect(quantiles.read(windows(1)).count).toBe(1);
    quantiles.add(1_000, windows(1));
    expect(quantiles.read(windows(2)).count).toBe(1);
    expect(quantiles.read(windows(9))).toEqual({ count: 0 });
  });

  test('count what lies outside of their range at its ends, and nothing that is no time', () => {
    const quantiles = new WindowedQuantiles();
    for (const us of [0, 1, 1e15, Number.NaN, -1]) quantiles.add(us, 0);
    expect(quantiles.read(0).count).toBe(3);
  });
});
