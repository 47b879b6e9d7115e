import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { Sampler } from './sampler.ts';
import { SAMPLES_MAX } from './samples.ts';

const LEVELS = { running: 0, nodes: [], drainUs: undefined };

describe('Sampler', () => {
  test('doubles its period when there are too many rows: sums are kept, levels are the later ones', () => {
    const sampler = new Sampler({ periodUs: S, classes: ['normal'], capacity: 2 });
    let next = S;
    let ends = 0;
    for (let i = 1; i <= 5 * SAMPLES_MAX; i++) {
      const at = i * S;
      sampler.arrived(S);
      sampler.tried();
      sampler.ended(0);
      ends += 1;
      if (at >= next) next = sampler.close(at, { ...LEVELS, queued: [i] });
    }
    const samples = sampler.samples([]);
    expect(samples.periodUs).toBe(8 * S);
    expect(samples.atSeconds.length).toBeLessThan(SAMPLES_MAX);
    expect(samples.atSeconds.slice(0, 3)).toEqual([8, 16, 24]);
    expect(samples.queued['normal']?.slice(0, 3)).toEqual([8, 16, 24]);
    expect(samples.ends['served']?.reduce((sum, count) => sum + count, 0)).toBe(ends);
    expect(samples.offeredRatio.every((ratio) => ratio === 0.5)).toBe(true);
    expect(samples.triesPerSecond.every((count) => count === 1)).toBe(true);
  });
});
