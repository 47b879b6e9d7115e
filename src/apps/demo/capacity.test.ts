import { describe, expect, it } from 'vitest';
import { IMAGE_MODELS } from '../../emulator/index.ts';
import { capacityWorkMs, fleetRate } from './capacity.ts';
import { createPlan } from './plan.ts';

const plan = createPlan({ quick: false, seed: 1 });

function speed(hardware: 'A100' | 'T4', factor: number): { fixedMs: number; perImageMs: number } {
  const model = IMAGE_MODELS[hardware];
  const scale = plan.speedup * factor;
  return { fixedMs: model.fixedMs / scale, perImageMs: model.perImageMs / scale };
}

describe('fleetRate', () => {
  it('is 1 for the reference accelerator, 2 for one twice as fast', () => {
    expect(fleetRate(plan, [speed('A100', 1)])).toBeCloseTo(1, 9);
    expect(fleetRate(plan, [speed('A100', 2)])).toBeCloseTo(2, 9);
  });

  it('puts a T4 at 0.15, which is what its published service time gives for the mean request', () => {
    expect(fleetRate(plan, [speed('T4', 1)])).toBeCloseTo(0.148, 3);
  });
});

it('capacityWorkMs adds spans of different speed', () => {
  const spans = [
    { durationMs: 100, nodes: [speed('A100', 1)] },
    { durationMs: 50, nodes: [speed('A100', 0.5)] },
  ];
  expect(capacityWorkMs(plan, spans)).toBeCloseTo(125, 6);
});
