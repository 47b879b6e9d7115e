import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../test/support/depth.ts';
import { ROUGH } from '../../test/support/rough-scenario.ts';
import { policySpec } from '../../test/support/scenarios.ts';
import { runAll } from './parallel/run-all.ts';
import { runScenario } from './run-scenario.ts';

const SEEDS = Array.from({ length: drawsOf(20) }, (_, index) => index + 1);
const run = promisify(execFile);

/** What a run came to, but for the time it took. */
function comparable(seed: number, policy = 'spillway'): unknown {
  const { report, samples } = runScenario(ROUGH, policySpec({ policy }), seed);
  return { ...report, wallSeconds: 0, samples };
}

describe('a scenario', () => {
  test('comes to the same under the same seed, to the last figure, whatever ran before', () => {
    const first = SEEDS.map((seed) => comparable(seed));
    const again = SEEDS.toReversed().map((seed) => comparable(seed));
    expect(again.toReversed()).toEqual(first);
    expect(new Set(first.map((each) => (each as { decisionHash: string }).decisionHash)).size).toBe(
      SEEDS.length,
    );
  });

  test('meets the same users under every policy', () => {
    const offered = (policy: string): unknown =>
      SEEDS.slice(0, 3).map((seed) => {
        const { report } = runScenario(ROUGH, policySpec({ policy }), seed);
        return Object.values(report.bySize).map((group) => group.offered);
      });
    expect(offered('round-robin')).toEqual(offered('spillway'));
  });

  test('comes to the same on threads and in other processes', async () => {
    const seeds = SEEDS.slice(0, drawsOf(6));
    const requests = seeds.map((seed) => ({ scenario: ROUGH, policy: policySpec(), seed }));
    const [threads, processes] = await Promise.all([
      runAll(requests, { workers: 2 }),
      run(process.execPath, ['bench/determinism.ts', '--seeds', String(seeds.length)]),
    ]);
    expect(processes.stdout).toContain('0 differ between processes');
    const here = seeds.map((seed) => runScenario(ROUGH, policySpec(), seed).report.decisionHash);
    expect(threads.map(({ report }) => report.decisionHash)).toEqual(here);
  });
});
