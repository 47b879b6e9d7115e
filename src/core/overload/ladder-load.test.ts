/** The ladder against none, in virtual time: what a spike costs with it, and whether it stays where it is. */
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { type LoadResult, offer, type Phase } from '../../../test/support/offered-load.ts';
import type { GateMode } from '../config/types.ts';

const SPIKE: readonly Phase[] = [
  { load: 0.8, seconds: 60 },
  { load: 12, seconds: 60 },
  { load: 0.8, seconds: 120 },
];

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

const SEEDS = [1, 2, 3, 4, 5];
/** Where each seed is judged by itself, and no mean is taken. */
const DRAWN = SEEDS.slice(0, drawsOf(SEEDS.length));

describe('twelve times the capacity for a minute', () => {
  const on = SEEDS.map((seed) => offer(seed, SPIKE, 'on'));
  const off = SEEDS.map((seed) => offer(seed, SPIKE, 'off'));

  test('costs no goodput and no critical request that it would not cost without the ladder', () => {
    expect(mean(on.map(({ goodput }) => goodput))).toBeGreaterThan(0.96);
    const lost = mean(off.map(({ goodput }) => goodput)) - mean(on.map(({ goodput }) => goodput));
    expect(lost).toBeLessThan(0.015);
    const critical = (results: readonly LoadResult[]): number =>
      mean(results.map(({ attained }) => attained['critical'] ?? 0));
    expect(critical(on)).toBeGreaterThan(critical(off) - 0.01);
  });

  // One period of calm more or less is chance: the mean tells.
  test('is one climb and one descent, over within 100 s of its end and within 80 s in the mean', () => {
    for (const { changes } of on) expect(changes.map(([, stage]) => stage)).toEqual([1, 2, 1, 0]);
    const ends = on.map(({ changes }) => changes.at(-1)?.[0] ?? Number.POSITIVE_INFINITY);
    expect(Math.max(...ends)).toBeLessThan(120 + 100);
    expect(mean(ends)).toBeLessThan(120 + 80);
    expect(off.map(({ changes }) => changes.length)).toEqual(SEEDS.map(() => 0));
  });
});

describe('a load near the capacity', () => {
  const STEADY = (times: number): readonly Phase[] => [
    { load: 0.5, seconds: 20 },
    { load: times, seconds: 1_200 },
  ];

  test.each([1, 1.05, 1.1])('of %d times for twenty minutes does not make it swing', (times) => {
    for (const seed of DRAWN) {
      const { changes } = offer(seed, STEADY(times), 'on');
      expect(changes.length, `seed ${seed}: up and down is four changes`).toBeLessThanOrEqual(28);
    }
  });

  test('loses no more than a hundredth of the goodput by it', () => {
    const goodput = (mode: GateMode): number =>
      mean(SEEDS.map((seed) => offer(seed, STEADY(1.1), mode).goodput));
    expect(goodput('on')).toBeGreaterThan(goodput('off') - 0.01);
  });

  test('of 0.8 times leaves it at the bottom', () => {
    for (const seed of DRAWN) expect(offer(seed, STEADY(0.8), 'on').changes).toEqual([]);
  });
});
