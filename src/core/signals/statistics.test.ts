import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chanceOfAtLeast } from './statistics.ts';

/** The same by adding one trial after the other: probabilities of each number of hits. */
function tailByTrials(hits: number, count: number, share: number): number {
  let chances = [1];
  for (let trial = 0; trial < count; trial++)
    chances = [...chances, 0].map(
      (chance, at) => chance * (1 - share) + (at === 0 ? 0 : (chances[at - 1] as number) * share),
    );
  return chances.slice(hits).reduce((sum, chance) => sum + chance, 0);
}

describe('the chance of at least so many hits', () => {
  test('is that of trials one after the other, above what is expected', () => {
    const trials = fc.record({
      count: fc.integer({ min: 1, max: 80 }),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
      share: fc.double({ min: 0.001, max: 0.95, noNaN: true }),
    });
    fc.assert(
      fc.property(trials, ({ count, part, share }) => {
        const hits = Math.round(part * count);
        const told = chanceOfAtLeast(hits, count, share);
        if (hits <= count * share) expect(told).toBe(1);
        else expect(told / tailByTrials(hits, count, share)).toBeCloseTo(1, 6);
      }),
    );
  });

  test('is exact for many trials', () => {
    // A fair coin, 100,000 times: 3 and 6 deviations above the mean, by the normal law and its continuity correction.
    expect(chanceOfAtLeast(50_475, 100_000, 0.5)).toBeCloseTo(0.001_35, 4);
    expect(chanceOfAtLeast(50_949, 100_000, 0.5) / 1e-9).toBeCloseTo(0.99, 1);
  });

  test('is nothing where nobody hits, and certain where all do', () => {
    expect(chanceOfAtLeast(1, 10, 0)).toBe(0);
    expect(chanceOfAtLeast(10, 10, 1)).toBe(1);
  });
});
