import { describe, expect, test } from 'vitest';
import { createPrng } from '../../base/prng.ts';
import { FirstBytes } from './first-bytes.ts';

const S = 1_000_000;
const PRIOR = { rate: 1, span: 8 };
const SOLO_RATE = 1;

/** First bytes of an engine of that rate, whose times are off by up to 30 %. */
function teach(firstBytes: FirstBytes, rate: number, streams: number): void {
  const prng = createPrng(7);
  for (let i = 0; i < streams; i++) {
    const workUs = 0.1 * S + prng.nextBelow(10 * S);
    firstBytes.observe({ workUs, elapsedUs: (workUs / rate) * (0.7 + 0.6 * prng.nextRatio()) }, SOLO_RATE);
  }
}

describe('FirstBytes', () => {
  test('know no rate before the first one', () => {
    expect(new FirstBytes(PRIOR).rate).toBe(0);
  });

  test('count the rate of whole tasks as the one before the first', () => {
    const firstBytes = new FirstBytes(PRIOR);
    firstBytes.observe({ workUs: 3 * S, elapsedUs: S }, SOLO_RATE);
    expect(firstBytes.rate).toBeGreaterThan(1.9);
    expect(firstBytes.rate).toBeLessThan(2.1);
  });

  test('learn the rate within 15 percent from 40 streams, and follow one that falls to a third', () => {
    const firstBytes = new FirstBytes(PRIOR);
    for (const rate of [3, 1]) {
      teach(firstBytes, rate, 40);
      expect(firstBytes.rate / rate).toBeGreaterThan(0.85);
      expect(firstBytes.rate / rate).toBeLessThan(1.15);
    }
  });

  test.each([
    ['no time at all', 0, 8],
    ['an age', 1e15, 1 / 8],
  ])('that took %s leave the rate within the span of the hardware', (_, elapsedUs, rate) => {
    const firstBytes = new FirstBytes(PRIOR);
    for (let i = 0; i < 100; i++) firstBytes.observe({ workUs: S, elapsedUs }, SOLO_RATE);
    expect(firstBytes.rate).toBe(rate);
  });
});
