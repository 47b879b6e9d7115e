import { expect, test } from 'vitest';
import { nodeGroup, policySpec, scenarioSpec, streamSpec } from '../../test/support/scenarios.ts';
import { S } from '../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { runScenario } from './run-scenario.ts';

test('nearly every stream on servers that batch begins in time, from the first one on, however long its prompt is', () => {
  // Two thirds of capacity. Taken for as slow as whole streams are beside each other, long prompts were refused; with no regard
  // to the prompts before it, a node that was seen with one stream alone was given all that came, and they began too late.
  const config = defaultSchedulerConfig({
    gates: { 'flow-wait': 'off', ladder: 'off', preemption: 'off', timeouts: 'off' },
  });
  const engine = { kind: 'text-batch', sequencesMax: 64, cacheTokensMax: 1_000_000 } as const;
  const scenario = scenarioSpec({
    spanUs: 600 * S,
    drainUs: 200 * S,
    fleet: [
      nodeGroup({
        count: 4,
        hardware: 'H100',
        engine: { ...engine, prefixBlocksMax: 0, tokensPerBlock: 512 },
      }),
    ],
    streams: [
      streamSpec({
        isStream: true,
        arrivals: { kind: 'gamma', cv: 2, rate: { kind: 'per-second', perSecond: 1.6 } },
        classes: [{ name: 'normal', share: 1, deadlineUs: 30 * S }],
        sizes: {
          kind: 'text',
          promptTokensMean: 12_000,
          promptSigma: 1.2,
          outputTokensMean: 350,
          outputSigma: 0.7,
        },
        estimateSigma: 0.3,
        serviceSigma: 0.2,
      }),
    ],
  });
  const runs = [1, 2, 3].map((seed) => runScenario(scenario, policySpec({ config }), seed).report.all);
  for (const { attained, failed } of runs) {
    expect(attained).toBeGreaterThan(0.99);
    expect(failed).toBeLessThan(5);
  }
});
