import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { AcceleratorMemory } from './accelerator-memory.ts';

describe('AcceleratorMemory.useAt', () => {
  test('is unknown until somebody tells', () => {
    expect(new AcceleratorMemory().useAt(0)).toBeUndefined();
  });

  test('is the cache use where the engine tells it, whatever the device says', () => {
    const memory = new AcceleratorMemory();
    memory.tellDevice({ memoryUse: 0.99, reservedUse: 0.1 }, false, 0);
    memory.tellCache(0.2, 0);
    expect(memory.useAt(S)).toBe(0.2);
    memory.tellCache(undefined, 2 * S);
    expect(memory.useAt(2 * S), 'the engine tells none any more').toBeCloseTo(0.989);
  });

  test('is the use of the device beyond a stated reserve, over what the reserve leaves', () => {
    const memory = new AcceleratorMemory();
    memory.tellDevice({ memoryUse: 0.9, reservedUse: 0.9 }, false, 0);
    expect(memory.useAt(0), 'an engine that takes 90 % at its start is empty at 90 %').toBe(0);
    memory.tellDevice({ memoryUse: 0.95 }, false, S);
    expect(memory.useAt(S)).toBeCloseTo(0.5);
    memory.tellDevice({ memoryUse: 0.5 }, false, 2 * S);
    expect(memory.useAt(2 * S), 'below the reserve it is empty').toBe(0);
  });

  test('takes for the reserve what the device used while nothing of ours ran there', () => {
    const memory = new AcceleratorMemory();
    memory.tellDevice({ memoryUse: 0.93 }, false, 0);
    expect(memory.useAt(0), 'never seen at rest').toBeUndefined();
    memory.tellDevice({ memoryUse: 0.2 }, true, S);
    expect(memory.useAt(S)).toBe(0);
    memory.tellDevice({ memoryUse: 0.92 }, false, 2 * S);
    expect(memory.useAt(2 * S)).toBeCloseTo(0.9);
    memory.tellDevice({ memoryUse: 0.92 }, true, 3 * S);
    expect(memory.useAt(3 * S), 'an engine that came back with more').toBe(0);
  });

  test('becomes unknown when an account is not told again for a minute', () => {
    const memory = new AcceleratorMemory();
    memory.tellCache(0.9, 0);
    memory.tellDevice({ memoryUse: 0.8, reservedUse: 0 }, false, 30 * S);
    expect(memory.useAt(60 * S - 1)).toBe(0.9);
    expect(memory.useAt(60 * S)).toBe(0.8);
    expect(memory.useAt(90 * S)).toBeUndefined();
  });

  test('believes no number outside 0 to 1', () => {
    for (const wrong of [Number.NaN, -0.1, 1.1, Number.POSITIVE_INFINITY]) {
      const memory = new AcceleratorMemory();
      memory.tellDevice({ memoryUse: wrong, reservedUse: 0 }, true, 0);
      memory.tellCache(wrong, 0);
      expect(memory.useAt(0), String(wrong)).toBeUndefined();
      memory.tellDevice({ memoryUse: 0.5, reservedUse: wrong }, false, 0);
      expect(memory.useAt(0), String(wrong)).toBeUndefined();
    }
  });
});
