import { describe, expect, test } from 'vitest';
import type { Demand } from './demand.ts';
import { referenceWorkUs } from './reference-work.ts';
import { hardwareTimes, type TimeOf } from './hardware-times.ts';

function soloTimeOf(hardware: string): TimeOf {
  return hardwareTimes(hardware, 'large').soloUs;
}

const DEMANDS: readonly Demand[] = [
  { kind: 'work', workUs: 1_234_567 },
  { kind: 'image', units: 2.5 },
  { kind: 'text', promptTokens: 700, outputTokens: 90 },
  { kind: 'embedding', tokens: 400 },
];

describe('hardwareTimes().soloUs', () => {
  test.each(DEMANDS)('of the reference accelerator is the work of $kind', (demand) => {
    expect(Math.abs(soloTimeOf('A100')(demand) - referenceWorkUs(demand))).toBeLessThan(1);
    expect(soloTimeOf('reference')(demand)).toBe(referenceWorkUs(demand));
  });

  test('of a picture is the published fit', () => {
    expect(soloTimeOf('T4')({ kind: 'image', units: 2 })).toBeCloseTo((1_330 + 2 * 4_011) * 1_000);
  });

  test('takes unspecified work to go as fast as a picture', () => {
    const picture: Demand = { kind: 'image', units: 1 };
    const workUs = referenceWorkUs(picture);
    expect(soloTimeOf('T4')({ kind: 'work', workUs })).toBeCloseTo(soloTimeOf('T4')(picture));
  });

  test('counts the context of each decoding step', () => {
    const soloUs = soloTimeOf('A100');
    const text = (promptTokens: number, outputTokens: number): number =>
      soloUs({ kind: 'text', promptTokens, outputTokens }) / 1_000;
    expect(text(1_000, 1)).toBeCloseTo(332 + 43.4 + 0.215 + 0.4);
    expect(text(1_000, 3) - text(1_000, 1)).toBeCloseTo(2 * 43.615 + 0.4004 + 0.4008);
  });

  test('throws for hardware that it does not know, and for work that it has no number for', () => {
    expect(() => soloTimeOf('Abacus')).toThrow(/must be one of reference, T4/);
    expect(() => soloTimeOf('M2-Ultra')({ kind: 'image', units: 1 })).toThrow('no images for M2-Ultra');
  });

  test('computes a prompt in the place of the reading of weights, not on top of it, where it was measured', () => {
    const soloUs = soloTimeOf('A100-80');
    const first = (promptTokens: number): number =>
      soloUs({ kind: 'text', promptTokens, outputTokens: 1 }) / 1_000;
    expect(first(100)).toBeCloseTo(66.6 + 0.215 + 0.04);
    expect(first(1_000)).toBeCloseTo(23.7 + 205.5 + 0.215 + 0.4);
    expect(first(4_096)).toBeCloseTo(23.7 + 0.2055 * 4_096 + 0.1247 * 2_048 + 0.215 + 0.0004 * 4_096);
  });

  test('tells small language models from large ones', () => {
    const text: Demand = { kind: 'text', promptTokens: 0, outputTokens: 1 };
    expect(hardwareTimes('H100', 'small').soloUs(text)).toBeCloseTo(6_512);
    expect(() => hardwareTimes('RTX-4090', 'large').soloUs(text)).toThrow('no textLarge for RTX-4090');
  });
});
