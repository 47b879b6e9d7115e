import { expect, test } from 'vitest';
import { nodeGroup, policySpec, scenarioSpec, streamSpec } from '../../test/support/scenarios.ts';
import { S } from '../../test/support/specs.ts';
import { runScenario } from './run-scenario.ts';

const MS = S / 1_000;

test('who is passed again and again on fast nodes waits little longer for one than an idle slow node would cost', () => {
  // All of one size: 20 ms on the fast nodes, 40 ms on the slow ones, of which most idle. The fast ones are just too few.
  const scenario = scenarioSpec({
    name: 'passed',
    spanUs: 2 * S,
    drainUs: S,
    fleet: [
      nodeGroup({ name: 'fast', count: 27, speed: 2, engine: { kind: 'slots', slots: 4 } }),
      nodeGroup({ name: 'slow', count: 54, speed: 1, engine: { kind: 'slots', slots: 4 } }),
    ],
    streams: [
      streamSpec({
        arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 6_000 } },
        classes: [
          { name: 'critical', share: 0.3, deadlineUs: S },
          { name: 'low', share: 0.7, deadlineUs: 10 * S },
        ],
        sizes: { kind: 'work', meanUs: 40 * MS, sigma: 0 },
      }),
    ],
  });
  const { byClass } = runScenario(scenario, policySpec(), 1).report;
  // A loss of 20 ms, and 10 ms until somebody looks again.
  expect(byClass['low']?.waitMs.p95).toBeLessThan(30);
  expect(byClass['low']?.waitMs.max).toBeLessThan(45);
  expect(byClass['critical']?.waitMs.p95).toBeLessThan(15);
});
