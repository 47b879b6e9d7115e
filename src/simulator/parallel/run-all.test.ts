import { describe, expect, test } from 'vitest';
import { policySpec, scenarioSpec } from '../../../test/support/scenarios.ts';
import { S } from '../../../test/support/specs.ts';
import type { RunResult } from '../run-scenario.ts';
import { runAll, RunError, type RunRequest } from './run-all.ts';

const SCENARIO = scenarioSpec({ spanUs: 30 * S, drainUs: 30 * S });
const POLICIES = [policySpec(), policySpec({ name: 'turns', policy: 'round-robin' })];

function requests(seeds: number): RunRequest[] {
  return POLICIES.flatMap((policy) =>
    Array.from({ length: seeds }, (_, i) => ({ scenario: SCENARIO, policy, seed: i + 1 })),
  );
}

const hashes = (results: readonly RunResult[]): string[] => results.map(({ report }) => report.decisionHash);

describe('runAll', () => {
  test('gives the same on threads as on one, in order of requests, and tells its progress', async () => {
    const list = requests(5);
    const seen: number[] = [];
    const spread = await runAll(list, { workers: 2, progress: ({ done, of }) => void seen.push(done / of) });
    const alone = await runAll(list, { workers: 1 });
    expect(hashes(spread)).toEqual(hashes(alone));
    expect(new Set(hashes(alone)).size).toBe(10);
    expect(seen).toEqual([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]);
  });

  test.each([1, 2])('tells which policy and seed failed, %i at once', async (workers) => {
    const broken = { scenario: SCENARIO, policy: policySpec({ name: 'mine', policy: 'no-such' }), seed: 7 };
    const failure = runAll([...requests(1), broken], { workers });
    await expect(failure).rejects.toBeInstanceOf(RunError);
    await expect(failure).rejects.toMatchObject({ policy: 'mine', seed: 7 });
    await expect(failure).rejects.toThrow(/under mine with seed 7: .*no-such/s);
  });

  test('of nothing is nothing', async () => {
    expect(await runAll([])).toEqual([]);
  });
});
