import { expect, it } from 'vitest';
import { lognormalFactor, seededUniform, seedFor } from './noise.ts';

it('seededUniform repeats itself for one seed and differs for another', () => {
  const draw = (seed: number) => Array.from({ length: 5 }, seededUniform(seed));
  expect(draw(7)).toEqual(draw(7));
  expect(draw(7)).not.toEqual(draw(8));
});

it('lognormalFactor has mean 1 and the stated sigma', () => {
  const uniform = seededUniform(seedFor(1, 'node'));
  const draws = Array.from({ length: 40_000 }, () => lognormalFactor(uniform, 0.2));
  const mean = draws.reduce((sum, one) => sum + one, 0) / draws.length;
  const logs = draws.map(Math.log);
  const logMean = logs.reduce((sum, one) => sum + one, 0) / logs.length;
  const sigma = Math.sqrt(logs.reduce((sum, one) => sum + (one - logMean) ** 2, 0) / logs.length);
  expect(mean).toBeCloseTo(1, 2);
  expect(sigma).toBeCloseTo(0.2, 2);
});
