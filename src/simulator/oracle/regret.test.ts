import { describe, expect, test } from 'vitest';
import { nodeGroup, policySpec, scenarioSpec, streamSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import { runScenario } from '../run-scenario.ts';
import type { NodeGroup, Scenario } from '../scenario/types.ts';
import { type Regret, regretOf } from './regret.ts';

const FLEET: readonly NodeGroup[] = [
  nodeGroup({ name: 'fast', count: 2, speedSigma: 0.1 }),
  nodeGroup({ name: 'slow', count: 4, speed: 0.3, engine: { kind: 'slots', slots: 2 } }),
];

function loaded(load: number, change: Partial<Scenario> = {}): Scenario {
  return scenarioSpec({
    spanUs: 60 * S,
    fleet: FLEET,
    streams: [
      streamSpec({
        arrivals: { kind: 'poisson', rate: { kind: 'load', load } },
        classes: [
          { name: 'critical', share: 0.5, deadlineUs: 8 * S },
          { name: 'low', share: 0.5, deadlineUs: 40 * S },
        ],
        sizes: { kind: 'work', meanUs: S, sigma: 1 },
        serviceSigma: 0.3,
      }),
    ],
    ...change,
  });
}

function regrets(scenario: Scenario, policies: readonly string[], seed = 1): ReturnType<typeof regretOf> {
  const named = policies.map((policy) => {
    const { users } = runScenario(scenario, policySpec({ policy }), seed, { usersMax: 100_000 });
    if (users === undefined) throw new Error('users are kept');
    return { name: policy, rows: users };
  });
  return regretOf(scenario, named);
}

function bounded(report: ReturnType<typeof regretOf>): Readonly<Record<string, Regret>> {
  if (report.kind === 'unknown') throw new Error(report.reason);
  return report.byPolicy;
}

describe('regretOf', () => {
  test.each([0.5, 0.9, 2, 4])('is below 0 for no policy, at load %f', (load) => {
    for (const seed of [1, 2]) {
      const byPolicy = bounded(
        regrets(loaded(load), ['spillway', 'sed', 'round-robin', 'fifo-timeout'], seed),
      );
      for (const regret of Object.values(byPolicy)) {
        const shares = [regret.attained, regret.attainedWork, ...Object.values(regret.byClass)];
        for (const { found, bound, regret: by } of shares) {
          expect(by).toBeCloseTo(bound - found, 8);
          expect(by).toBeGreaterThanOrEqual(0);
        }
        expect(regret.response.users).toBeGreaterThan(0);
        expect(regret.response.boundMs).toBeLessThanOrEqual(regret.response.meanMs);
      }
    }
  });

  test('is bounded by capacity under overload: the work in time is at most what the fleet does', () => {
    const { attainedWork, attained } = bounded(regrets(loaded(4, { spanUs: 240 * S }), ['sed']))[
      'sed'
    ] as Regret;
    // A quarter, what is still in time after the last arrival, and the choice of those with little noise.
    expect(attainedWork.bound).toBeGreaterThan(0.2);
    expect(attainedWork.bound).toBeLessThan(0.5);
    // Small ones first: more users than work.
    expect(attained.bound).toBeGreaterThan(attainedWork.bound);
  });

  test('is nothing where nobody could do better: one slot, equal sizes, in order', () => {
    const scenario = scenarioSpec({ fleet: [nodeGroup({ count: 1 })] });
    const { attained, response } = bounded(regrets(scenario, ['sed']))['sed'] as Regret;
    expect(attained).toEqual({ found: 1, bound: 1, regret: 0 });
    expect(response.meanMs).toBeGreaterThan(1_050);
    expect(response.regretMs).toBeCloseTo(0, 6);
  });

  test('claims nothing of nodes that work on several requests together', () => {
    const fleet = [nodeGroup({ engine: { kind: 'image-batch', batchMax: 4 } })];
    const streams = [streamSpec({ sizes: { kind: 'images', units: 1 } })];
    expect(regrets(loaded(0.5, { fleet, streams, spanUs: 10 * S }), ['sed'])).toMatchObject({
      kind: 'unknown',
    });
  });
});
