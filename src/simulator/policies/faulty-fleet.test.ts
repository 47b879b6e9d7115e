import { expect, test } from 'vitest';
import { policySpec, scenarioSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import { runScenario } from '../run-scenario.ts';
import type { FaultSpec } from '../scenario/types.ts';
import { POLICIES } from './registry.ts';

const ONE = { group: 'node', count: 1 };
const FAULTS: readonly FaultSpec[] = [
  { at: 40 * S, kind: 'dead', nodes: ONE, forUs: 30 * S },
  { at: 100 * S, kind: 'refuse', nodes: ONE, forUs: 20 * S },
  { at: 150 * S, kind: 'gray', nodes: ONE, failShare: 0.5, forUs: 20 * S },
  { at: 200 * S, kind: 'scheduler-crash', downUs: 2 * S },
];
/** Those that never try twice. */
const WITHOUT_RETRIES = new Set(['round-robin', 'model-of-llm-d']);

test.each(Object.keys(POLICIES))(
  '%s brings every user to an end while nodes fail, and most in time',
  (policy) => {
    const scenario = scenarioSpec({ faults: FAULTS });
    const { report } = runScenario(scenario, policySpec({ name: policy, policy }), 1);
    const { offered, served, degraded, refused, failed, gaveUp, attained } = report.all;
    expect(served + degraded + refused + failed + gaveUp).toBe(offered);
    expect(attained).toBeGreaterThan(WITHOUT_RETRIES.has(policy) ? 0.6 : 0.93);
  },
);
