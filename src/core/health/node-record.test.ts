import { describe, expect, test } from 'vitest';
import { nodeSpec, S } from '../../../test/support/specs.ts';
import { NO_NEEDS } from '../request/needs.ts';
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
    for (const number of [-1, 0]) expect(node.soloRateOf('a', number)).toBe(node.rateOf('a', 1));
    for (const number of [-1, 1]) expect(node.soloRateOf('b', number)).toBe(node.rateOf('b', 1));
    node.doubtRates();
    expect(new Set(rates()).size).toBe(1);
    for (const number of [-1, 0]) expect(node.soloRateOf('a', number)).toBe(node.rateOf('a', 1));
  });

  test('forgets the pace of a model that is offered no more, and keeps the rate that was measured', () => {
    const node = new NodeRecord(nodeSpec('n', { models }), 0);
    node.learn('a', S, S / 4, 1);
    const [a, b] = [node.paceOf('a'), node.paceOf('b')];
    expect([node.paceOf('a'), node.paceOf('b')]).toEqual([a, b]);
    node.restate(nodeSpec('n', { models: [...models.slice(1), { model: 'c' }] }));
    expect(node.paceOf('b')).toBe(b);
    node.restate(nodeSpec('n', { models }));
    expect(node.paceOf('a')).not.toBe(a);
    expect(node.rates().map(({ model }) => model)).toEqual(['', 'a']);
  });
});

describe('Fleet.modelNumber', () => {
  test('is the same before and after the lane of a model was asked for', () => {
    const fleet = new Fleet([]);
    const names = ['a', 'b'];
    for (const model of names) fleet.seat(new NodeRecord(nodeSpec(`n-${model}`, { models: [{ model }] }), 0));
    const numbers = names.map((model) => fleet.modelNumber(model));
    const after = names.map((model) => {
      fleet.laneFor(model, NO_NEEDS, 't');
      return fleet.modelNumber(model);
    });
    expect(after).toEqual(numbers);
    expect(new Set(numbers).size).toBe(2);
  });

  test('gives each name one number, and none beyond its bound', () => {
    const fleet = new Fleet([]);
    const names = Array.from({ length: NUMBERED_MODELS_MAX }, (_, i) => `m${i}`);
    expect(new Set(names.map((name) => fleet.modelNumber(name))).size).toBe(NUMBERED_MODELS_MAX);
    expect([fleet.modelNumber('one more'), fleet.modelNumber('m7'), fleet.modelNumber('m7')]).toEqual([
      -1, 7, 7,
    ]);
  });
});
