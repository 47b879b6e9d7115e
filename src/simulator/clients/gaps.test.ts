import { describe, expect, test } from 'vitest';
import { drawKey, Draws } from './draws.ts';
import { exponentialGaps, gammaGaps, type GapLaw, weibullGaps } from './gaps.ts';

function moments(law: GapLaw): { readonly mean: number; readonly cv: number } {
  const draws = new Draws();
  const key = drawKey(5, 'gaps');
  const count = 200_000;
  let sum = 0;
  let squares = 0;
  for (let index = 0; index < count; index += 1) {
    draws.begin(key, index);
    const gap = law(draws);
    sum += gap;
    squares += gap * gap;
  }
  const mean = sum / count;
  return { mean, cv: Math.sqrt(squares / count - mean * mean) / mean };
}

describe('gap laws', () => {
  test.each([
    { name: 'exponential', law: exponentialGaps, cv: 1 },
    { name: 'gamma of cv 0.5', law: gammaGaps(0.5), cv: 0.5 },
    { name: 'gamma of cv 1', law: gammaGaps(1), cv: 1 },
    { name: 'gamma of cv 3.5', law: gammaGaps(3.5), cv: 3.5 },
    { name: 'weibull of shape 0.5', law: weibullGaps(0.5), cv: Math.sqrt(5) },
    { name: 'weibull of shape 1', law: weibullGaps(1), cv: 1 },
    { name: 'weibull of shape 2', law: weibullGaps(2), cv: Math.sqrt(4 / Math.PI - 1) },
  ])('$name has mean 1 and its variation', ({ law, cv }) => {
    const found = moments(law);
    expect(Math.abs(found.mean - 1)).toBeLessThan(0.02 * Math.max(1, cv));
    expect(found.cv / cv).toBeGreaterThan(0.96);
    expect(found.cv / cv).toBeLessThan(1.04);
  });
});
