import { describe, expect, test } from 'vitest';
import type { Demand } from '../machines/machine.ts';
import type { NodeGroup } from '../scenario/types.ts';
import { buildFleet } from './build-fleet.ts';
import { fleetCapacity } from './capacity.ts';
import type { Mix } from './mix.ts';

const WORK: Demand = { kind: 'work', workUs: 1_000_000 };
const MIX: Mix = [{ model: 'm', share: 1, demands: [WORK, { kind: 'work', workUs: 3_000_000 }] }];

function group(change: Partial<NodeGroup> = {}): NodeGroup {
  return {
    name: 'g',
    count: 1,
    hardware: 'reference',
    statedHardware: 'reference',
    speed: 1,
    speedSigma: 0,
    engine: { kind: 'slots', slots: 1 },
    models: ['m'],
    residentMax: 0,
    swapUs: 0,
    zone: '',
    rttUs: 0,
    beatUs: 0,
    heartbeats: false,
    canAbort: true,
    ratesKnown: false,
    ...change,
  };
}

describe('buildFleet', () => {
  test('names the nodes of a group from 1 on and tells what they say of themselves', () => {
    const nodes = buildFleet(
      [
        group({ name: 'a', count: 2, zone: 'west', statedHardware: 'H100', canAbort: false }),
        group({ name: 'b', engine: { kind: 'slots', slots: 3 }, beatUs: 5, rttUs: 7, heartbeats: true }),
      ],
      { seed: 1, mix: MIX },
    );
    expect(nodes.map(({ spec, index }) => [spec.id, index])).toEqual([
      ['a-1', 0],
      ['a-2', 1],
      ['b-1', 2],
    ]);
    expect(nodes[0]?.spec).toMatchObject({
      slots: 1,
      hardware: 'H100',
      labels: { zone: 'west' },
      canAbort: false,
    });
    expect(nodes[2]).toMatchObject({ beatUs: 5, rttUs: 7, spec: { slots: 3, labels: {}, heartbeats: true } });
  });

  test('makes service time the work over the speed on reference hardware, and the published one elsewhere', () => {
    const [slow, card] = buildFleet(
      [group({ speed: 0.25 }), group({ name: 'h', hardware: 'V100', speed: 0.5 })],
      {
        seed: 1,
        mix: MIX,
      },
    );
    expect(slow?.machine.serviceUs(WORK)).toBe(4_000_000);
    expect(card?.machine.serviceUs({ kind: 'image', units: 1 })).toBe(2 * (580 + 1_258) * 1_000);
  });

  test('spreads speeds by seed and name, whatever other groups there are', () => {
    const spread = group({ count: 400, speedSigma: 0.3 });
    const timesOf = (groups: readonly NodeGroup[], seed: number): number[] =>
      buildFleet(groups, { seed, mix: MIX })
        .filter(({ spec }) => spec.id.startsWith('g-'))
        .map(({ machine }) => machine.serviceUs(WORK));
    const times = timesOf([spread], 7);
    expect(timesOf([group({ name: 'first' }), spread], 7)).toEqual(times);
    expect(timesOf([spread], 8)).not.toEqual(times);
    const logs = times.map((timeUs) => Math.log(timeUs / 1_000_000));
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    const sigma = Math.sqrt(logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length);
    expect(Math.abs(mean)).toBeLessThan(0.05);
    expect(Math.abs(sigma - 0.3)).toBeLessThan(0.04);
  });

  test('tells true rates by model and over all, where they are known', () => {
    const [known, unknown] = buildFleet(
      [
        group({ hardware: 'V100', models: ['images', 'other', 'unasked'], ratesKnown: true }),
        group({ name: 'u', hardware: 'V100' }),
      ],
      {
        seed: 1,
        mix: [
          { model: 'images', share: 3, demands: [{ kind: 'image', units: 1 }] },
          { model: 'other', share: 1, demands: [{ kind: 'image', units: 4 }] },
        ],
      },
    );
    const [one, four] = [(620 + 526) / (580 + 1_258), (620 + 4 * 526) / (580 + 4 * 1_258)];
    const all = (3 * (620 + 526) + (620 + 4 * 526)) / (3 * (580 + 1_258) + (580 + 4 * 1_258));
    const rates = known?.memory?.rates ?? [];
    expect(rates.map(({ model }) => model)).toEqual(['', 'images', 'other']);
    for (const [at, rate] of [all, one, four].entries()) expect(rates[at]?.rate).toBeCloseTo(rate);
    expect(unknown?.memory).toBeUndefined();
  });

  test('throws for hardware that the catalogue does not have', () => {
    expect(() => buildFleet([group({ hardware: 'Abacus' })], { seed: 1, mix: MIX })).toThrow(RangeError);
  });
});

describe('fleetCapacity', () => {
  test('adds up what nodes do of the mix', () => {
    const nodes = buildFleet([group({ count: 8, speed: 0.3 }), group({ name: 'f', count: 2, speed: 1.6 })], {
      seed: 1,
      mix: MIX,
    });
    const { requestsPerSecond, workUsPerUs } = fleetCapacity(nodes, MIX);
    expect(workUsPerUs).toBeCloseTo(5.6);
    expect(requestsPerSecond).toBeCloseTo(5.6 / 2);
  });

  test('counts slots, and what a slow-down leaves', () => {
    const nodes = buildFleet([group({ engine: { kind: 'slots', slots: 4 } })], { seed: 1, mix: MIX });
    expect(fleetCapacity(nodes, MIX).workUsPerUs).toBeCloseTo(4);
    nodes[0]?.machine.setSpeed(0.5, 0);
    expect(fleetCapacity(nodes, MIX).workUsPerUs).toBeCloseTo(2);
  });

  test('is bound by the model that few nodes offer', () => {
    const nodes = buildFleet(
      [group({ count: 9, models: ['m'] }), group({ name: 'b', models: ['m', 'rare'] })],
      { seed: 1, mix: [] },
    );
    const mix: Mix = [
      { model: 'm', share: 0.5, demands: [WORK] },
      { model: 'rare', share: 0.5, demands: [WORK] },
    ];
    expect(fleetCapacity(nodes, mix).requestsPerSecond).toBeCloseTo(2);
    expect(fleetCapacity(nodes, [...mix, { model: 'nowhere', share: 0.1, demands: [WORK] }])).toEqual({
      requestsPerSecond: 0,
      workUsPerUs: 0,
    });
  });
});
