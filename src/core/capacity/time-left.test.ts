import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { type TimeLeftLaw, timeLeftLaw, timeLeftUs } from './time-left.ts';

const DRAWS = 400_000;
const PREDICTED_US = 10_000_000;

/** Lognormal with mean 1, in rising order. */
function drawn(sigma: number): Float64Array {
  const prng = createPrng(5);
  return Float64Array.from({ length: DRAWS }, () => {
    const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
    return Math.exp(sigma * radius * Math.cos(2 * Math.PI * prng.nextRatio()) - sigma ** 2 / 2);
  }).sort();
}

function meanLeft(ratios: Float64Array, passed: number): number {
  const longer = ratios.filter((ratio) => ratio > passed);
  return longer.reduce((sum, ratio) => sum + ratio, 0) / longer.length - passed;
}

describe('timeLeftLaw', () => {
  test.each([0.2, 0.4, 0.58, 0.8])(
    'tells what tasks still take whose errors have a spread of %s',
    (sigma) => {
      const ratios = drawn(sigma);
      const law = timeLeftLaw(ratios[Math.floor(0.9 * DRAWS)] as number) as TimeLeftLaw;
      for (const passed of [0.1, 0.5, 0.8, 0.95]) {
        const leftUs = timeLeftUs(law, passed * PREDICTED_US, PREDICTED_US);
        expect(Math.abs(leftUs / PREDICTED_US - meanLeft(ratios, passed))).toBeLessThan(0.04);
      }
    },
  );

  test('never tells less than the prediction leaves, but for the width of a step', () => {
    for (const ratio of [1.05, 1.25, 1.5, 2, 3, 50]) {
      const law = timeLeftLaw(ratio) as TimeLeftLaw;
      for (let passed = 0; passed < 1; passed += 0.001)
        expect(timeLeftUs(law, passed * PREDICTED_US, PREDICTED_US)).toBeGreaterThan(
          (1 - passed - 0.008) * PREDICTED_US,
        );
    }
  });

  test('is none where predictions hold', () => {
    for (const ratio of [0, 0.9, 1, 1.02]) expect(timeLeftLaw(ratio)).toBe(null);
  });
});
