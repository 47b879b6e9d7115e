import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { Fleet, NUMBERED_MODELS_MAX } from '../placement/fleet.ts';
import { NodeRecord } from './node-record.ts';

describe('NodeRecord.nextRateOf', () => {
  const models = [{ model: 'a' }, { model: 'b' }];

  test('is the same by the number of a model as by its name, and follows what is learned and doubted', () => {
    const node = new NodeRecord(nodeSpec('n', { models }), 0);
    const rates = (): readonly number[] =>
      ['a', 'b'].flatMap((model, number) => [node.nextRateOf(model, number), node.nextRateOf(model, -1)]);
    expect(new Set(rates()).size).toBe(1);
    for (let i = 0; i < 20; i++) {
      node.learn('a', S, S / 4, 1);
      node.learn('b', S, S * 4, 1);
    }
    const [a, againA, b, againB] = rates();
    expect([a, b]).toEqual([againA, againB]);
    expect(a).toBeGreaterThan(3);
    expect(b).toBeLessThan(0.4);
    node.doubtRates();
    expect(new Set(rates()).size).toBe(1);
  });
});

describe('Fleet.modelNumber', () => {
  test('gives each name one number, and none beyond its bound', () => {
    const fleet = new Fleet([]);
    const names = Array.from({ length: NUMBERED_MODELS_MAX }, (_, i) => `m${i}`);
    expect(new Set(names.map((name) => fleet.modelNumber(name))).size).toBe(NUMBERED_MODELS_MAX);
    expect([fleet.modelNumber('one more'), fleet.modelNumber('m7'), fleet.modelNumber('m7')]).toEqual([
      -1, 7, 7,
    ]);
  });
});
