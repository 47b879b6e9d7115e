import { expect, test } from 'vitest';
import { sampleAt } from '../../../../test/support/samples.ts';
import { createPrng } from '../../../base/prng.ts';
import { Detector } from '../detector.ts';
import { Past } from '../past.ts';
import { StageTally } from '../stage-tally.ts';
import { contentionHeat } from './contention-heat.ts';

const FAULT_S = 120;

interface Stage {
  readonly name: string;
  readonly parent?: string;
  /** Mean wait before and after the fault, in seconds; each runs for about one. */
  readonly waits: readonly [number, number];
}

/** Five minutes with noise, and each second a look; the second of the first finding after the fault began. */
function watched(stages: readonly Stage[]): {
  readonly detector: Detector;
  readonly after: number | undefined;
} {
  const prng = createPrng(7);
  const noise = (mean: number): number => Math.round(-mean * 1e6 * Math.log(1 - prng.nextRatio()));
  const [tally, past, detector] = [new StageTally(), new Past(), new Detector(contentionHeat)];
  let after: number | undefined;
  for (let second = 0; second < 300; second++) {
    for (const { name, parent = '', waits } of stages)
      tally.ended({
        name,
        parent,
        waitUs: noise(waits[second < FAULT_S ? 0 : 1]),
        execUs: 1_000_000,
        at: second * 1e6,
      });
    const sampled = tally.sample();
    past.add(sampleAt(second, sampled === undefined ? {} : { stages: sampled }));
    detector.observe(past);
    if (detector.findings().length > 0) after ??= second - FAULT_S;
  }
  return { detector, after };
}

test('contention-heat finds one stage that waits, and says that those after it inherit its heat', () => {
  const { detector, after } = watched([
    { name: 'plan', waits: [0.2, 0.2] },
    { name: 'draw', parent: 'plan', waits: [0.2, 9] },
    { name: 'check', parent: 'draw', waits: [0.2, 0.2] },
    { name: 'tell', parent: 'plan', waits: [0.2, 0.2] },
  ]);
  expect(after).toBeGreaterThanOrEqual(0);
  expect(after).toBeLessThanOrEqual(70);
  const [found] = detector.findings();
  expect(found).toMatchObject({ severity: 'warn', evidence: { hottest: 'draw', stages: 4 } });
  expect(found?.evidence['top']).toMatch(/^draw, check, /);
  expect(found?.says).toContain('a bottleneck');
});

test('contention-heat is a page where all stages wait', () => {
  const names = ['a', 'b', 'c', 'd', 'e'];
  const { detector, after } = watched(names.map((name) => ({ name, waits: [0.2, 5] })));
  expect(after).toBeLessThanOrEqual(70);
  expect(detector.findings()).toMatchObject([{ severity: 'page' }]);
});

test('contention-heat stays finite where stages ask for each other', () => {
  const { detector } = watched([
    { name: 'a', parent: 'b', waits: [0.2, 5] },
    { name: 'b', parent: 'a', waits: [0.2, 5] },
  ]);
  // Each is 5 by itself, and half of the other's: 5 / (1 − 0.5).
  expect(detector.findings()[0]?.evidence['heat']).toBeGreaterThan(7);
  expect(detector.findings()[0]?.evidence['heat']).toBeLessThan(13);
});

test.each([
  ['waits that are a part of the time', 0.6],
  ['hardly any wait', 0.05],
])('contention-heat is silent over %s', (_what, wait) => {
  const waits = [wait, wait] as const;
  const { detector, after } = watched(['a', 'b', 'c', 'd'].map((name) => ({ name, waits })));
  expect(after).toBeUndefined();
  expect(detector.view().state).toBe('quiet');
});

test('contention-heat is blind where no request tells its stage', () => {
  expect(watched([]).detector.view()).toMatchObject({
    state: 'blind',
    why: expect.stringContaining('x-spillway-stage'),
  });
});
