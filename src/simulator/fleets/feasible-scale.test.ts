import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { feasibleScale, type Supply } from './feasible-scale.ts';

/** By looking at every set of models. */
function bruteForce(demand: ReadonlyMap<string, number>, supplies: readonly Supply[]): number {
  const models = [...demand.keys()];
  let least = Number.POSITIVE_INFINITY;
  for (let mask = 1; mask < 1 << models.length; mask++) {
    const set = models.filter((_, at) => (mask & (1 << at)) !== 0);
    const total = set.reduce((sum, model) => sum + (demand.get(model) as number), 0);
    const rate = supplies
      .filter((supply) => supply.models.some((model) => set.includes(model)))
      .reduce((sum, supply) => sum + supply.rate, 0);
    least = Math.min(least, rate / total);
  }
  return least;
}

describe('feasibleScale', () => {
  test('is the supply over the demand where everybody serves everything', () => {
    const demand = new Map([
      ['a', 1],
      ['b', 3],
    ]);
    expect(feasibleScale(demand, [{ models: ['a', 'b'], rate: 6 }])).toBeCloseTo(1.5);
  });

  test('is bound by the models that few serve', () => {
    const demand = new Map([
      ['a', 1],
      ['b', 1],
    ]);
    const supplies = [
      { models: ['a'], rate: 10 },
      { models: ['b'], rate: 0.5 },
    ];
    expect(feasibleScale(demand, supplies)).toBeCloseTo(0.5);
  });

  test('is 0 for a model that nobody serves, and for no demand', () => {
    expect(feasibleScale(new Map([['a', 1]]), [{ models: ['b'], rate: 1 }])).toBe(0);
    expect(feasibleScale(new Map(), [{ models: ['b'], rate: 1 }])).toBe(0);
  });

  test('finds the tightest of all sets of models', () => {
    const model = fc.constantFrom('a', 'b', 'c', 'd', 'e');
    const demands = fc.uniqueArray(fc.tuple(model, fc.double({ min: 0.1, max: 10, noNaN: true })), {
      minLength: 1,
      selector: ([name]) => name,
    });
    const supply = fc.record({
      models: fc.uniqueArray(model, { minLength: 1 }),
      rate: fc.double({ min: 0.1, max: 10, noNaN: true }),
    });
    fc.assert(
      fc.property(demands, fc.array(supply, { minLength: 1, maxLength: 6 }), (entries, supplies) => {
        const demand = new Map(entries);
        const expected = bruteForce(demand, supplies);
        expect(feasibleScale(demand, supplies)).toBeCloseTo(expected, 6);
      }),
    );
  });
});
