/**
 * Two tenants with equal weights on engines that batch: one asks for much at a time, the other for little, both for more than they can
 * get. What the engines do of each, and what is begun for nobody.
 */
import { expect, test } from 'vitest';
import {
  nodeGroup,
  policySpec,
  scenarioSpec,
  streamSpec,
  TEXT_ENGINE,
} from '../../test/support/scenarios.ts';
import { S } from '../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { runScenario } from './run-scenario.ts';
import type { Scenario, StreamSpec } from './scenario/types.ts';

const textStream = (name: string, promptTokensMean: number, outputTokensMean: number): StreamSpec =>
  streamSpec({
    name,
    tenants: { kind: 'one', id: name },
    arrivals: { kind: 'poisson', rate: { kind: 'load', load: 1 } },
    sizes: { kind: 'text', promptTokensMean, promptSigma: 0, outputTokensMean, outputSigma: 0 },
    classes: [{ name: 'normal', share: 1, deadlineUs: 600 * S }],
    users: { triesMax: 1, patientShare: 1, thinkUs: [S, 2 * S], hangsUp: true, tellsCount: true },
  });

function scenario(): Scenario {
  return scenarioSpec({
    spanUs: 480 * S,
    drainUs: 600 * S,
    window: { from: 60 * S, until: 480 * S },
    config: defaultSchedulerConfig({ admission: { flowWaitMsMax: 120_000 } }),
    fleet: [
      nodeGroup({
        count: 8,
        hardware: 'A100',
        statedHardware: 'A100',
        engine: TEXT_ENGINE,
        ratesKnown: false,
      }),
    ],
    streams: [textStream('large', 9_000, 1_000), textStream('small', 50, 50)],
  });
}

test.each([1, 2, 3])(
  'long and short texts of two tenants get as much of engines that batch, and what is begun is finished, seed %i',
  (seed) => {
    const config = scenario().config;
    const { report } = runScenario(scenario(), policySpec({ config }), seed);
    const { large, small } = report.byTenant;
    expect((large?.servedSeconds ?? 0) / (small?.servedSeconds ?? 0)).toBeGreaterThan(0.92);
    expect((large?.servedSeconds ?? 0) / (small?.servedSeconds ?? 0)).toBeLessThan(1.08);
    for (const tenant of [large, small]) expect(tenant).toMatchObject({ gaveUp: 0, failed: 0 });
    expect(report.goodputRatio).toBeGreaterThan(0.85);
  },
);
