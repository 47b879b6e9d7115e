import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ClassConfig } from '../config/types.ts';
import { effectiveWeights, ServedCounter } from './flow.ts';

function classConfig(weight: number, shareMin: number): ClassConfig {
  return { name: 'c', weight, shareMin, firstByteMs: 1, completionMs: 1 };
}

describe('effectiveWeights', () => {
  test('are the weights as shares where no floor binds', () => {
    expect(effectiveWeights([classConfig(8, 0.3), classConfig(2, 0.1), classConfig(1, 0.05)])).toEqual([
      8 / 11,
      2 / 11,
      1 / 11,
    ]);
  });

  test('raise a class to its floor and let the others share the rest by weight', () => {
    const [a, b, c] = effectiveWeights([classConfig(98, 0), classConfig(1, 0), classConfig(1, 0.21)]);
    expect(c).toBeCloseTo(0.21);
    expect((a as number) / (b as number)).toBeCloseTo(98);
  });

  test('sum to one and keep every floor, for any weights and floors that fit', () => {
    const row = fc.record({
      weight: fc.double({ min: 0.01, max: 1_000, noNaN: true }),
      floor: fc.double({ min: 0, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (rows) => {
        const total = rows.reduce((sum, each) => sum + each.floor, 0);
        const scale = total > 0.95 ? 0.95 / total : 1;
        const classes = rows.map((each) => classConfig(each.weight, each.floor * scale));
        const shares = effectiveWeights(classes);
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
        shares.forEach((share, index) =>
          expect(share).toBeGreaterThanOrEqual((classes[index] as ClassConfig).shareMin - 1e-9),
        );
      }),
    );
  });
});

describe('ServedCounter', () => {
  test('never goes back, and pays a refund with the next charges', () => {
    const counter = new ServedCounter();
    counter.charge(100, 2);
    counter.refund(60, 2);
    expect(counter.served).toBe(50);
    counter.charge(40, 2);
    expect(counter.served).toBe(50);
    counter.charge(40, 2);
    expect(counter.served).toBe(60);
  });
});
