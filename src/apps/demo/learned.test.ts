import { describe, expect, it } from 'vitest';
import type { NodeTruth } from '../../emulator/index.ts';
import { compareRates } from './learned.ts';

function truth(id: string, recentRate: number, recentTasks = 50): NodeTruth {
  return {
    id,
    model: 'm',
    recentRate,
    recentTasks,
    statedHardware: 'T4',
    trueSpeed: 1,
    slowFactor: 1,
  } as NodeTruth;
}

function reading(id: string, rate: number, observations = 50) {
  return {
    id,
    state: 'active',
    hardware: 'T4',
    inflight: 0,
    drainMs: 0,
    rates: [{ model: 'm', rate, observations }],
  };
}

describe('compareRates', () => {
  it('counts nodes within 15 % and names the worst', () => {
    const rates = compareRates([reading('a', 1.1), reading('b', 0.5)], [truth('a', 1), truth('b', 1)]);
    expect([rates.within, rates.worst?.id]).toEqual([1, 'b']);
    expect(rates.worst?.error).toBeCloseTo(-0.5, 9);
  });

  it('does not judge a node with little evidence on either side', () => {
    const rates = compareRates([reading('a', 9, 19), reading('b', 9)], [truth('a', 1), truth('b', 1, 19)]);
    expect([rates.rows.length, rates.unjudged]).toEqual([0, 2]);
  });
});
