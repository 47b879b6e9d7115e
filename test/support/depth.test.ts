import { describe, expect, test } from 'vitest';
import { drawsOf } from './depth.ts';

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
