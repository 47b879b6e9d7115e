import { describe, expect, test } from 'vitest';
import { drawKey, Draws } from './draws.ts';
import { FITTED_MODEL_SWITCH, fittedModels } from './fitted.ts';
import { ModelChain } from './model-chain.ts';

function walk(chain: ModelChain): { readonly switches: number; readonly firstShare: number } {
  const draws = new Draws();
  const key = drawKey(11, 'models');
  const count = 100_000;
  let before = -1;
  let switches = 0;
  let first = 0;
  for (let index = 0; index < count; index += 1) {
    draws.begin(key, index);
    const next = chain.next(before, draws);
    if (before >= 0 && next !== before) switches += 1;
    if (next === 0) first += 1;
    before = next;
  }
  return { switches: switches / count, firstShare: first / count };
}

describe('ModelChain', () => {
  test('changes the model as often as the trace did, and keeps its shares', () => {
    const models = fittedModels('m');
    const { switches, firstShare } = walk(new ModelChain({ models, modelSwitch: FITTED_MODEL_SWITCH }));
    expect(switches).toBeCloseTo(0.744, 2);
    expect(firstShare).toBeCloseTo(0.312, 2);
  });

  test('draws each model anew without a switch rate, or with one that no chain reaches', () => {
    const models = [
      { id: 'a', share: 3 },
      { id: 'b', share: 1 },
    ];
    for (const modelSwitch of [undefined, 0.9]) {
      const { switches, firstShare } = walk(new ModelChain({ models, modelSwitch }));
      expect(switches).toBeCloseTo(0.375, 2);
      expect(firstShare).toBeCloseTo(0.75, 2);
    }
  });
});
