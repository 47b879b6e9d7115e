import { describe, expect, test } from 'vitest';
import { drawsOf, seedsOf } from './depth.ts';

describe('drawsOf', () => {
  test('is at least a third of the draws in a usual run, and never none', () => {
    for (const deep of [1, 2, 3, 20, 60, 200]) {
      expect(drawsOf(deep, {})).toBeGreaterThanOrEqual(deep / 3);
      expect(drawsOf(deep, {})).toBeLessThanOrEqual(deep);
    }
  });

  test('is all of them in a deep one', () => {
    expect(drawsOf(60, { TEST_DEPTH: 'deep' })).toBe(60);
  });

  test('refuses another word', () => {
    expect(() => drawsOf(60, { TEST_DEPTH: 'deeper' })).toThrow('TEST_DEPTH must be deep');
  });
});

describe('seedsOf', () => {
  test('is the own seed, or those that a deep run names', () => {
    expect(seedsOf(7, {})).toEqual([7]);
    expect(seedsOf(7, { TEST_DEPTH: 'deep' })).toEqual([7]);
    expect(seedsOf(7, { TEST_DEPTH: 'deep', TEST_SEEDS: '3' })).toEqual([3]);
    expect(seedsOf(7, { TEST_DEPTH: 'deep', TEST_SEEDS: '3-5' })).toEqual([3, 4, 5]);
  });

  test('refuses what names none, and seeds of a usual run', () => {
    for (const seeds of ['5-3', 'all', '1,2'])
      expect(() => seedsOf(7, { TEST_DEPTH: 'deep', TEST_SEEDS: seeds })).toThrow('TEST_SEEDS must be');
    expect(() => seedsOf(7, { TEST_SEEDS: '1-5' })).toThrow('TEST_DEPTH=deep');
  });
});
