/** Every scenario of the library is read and run, shortened, so that none rots. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { issueText } from '../../adapters/config-file/index.ts';
import { judgeBars } from '../../simulator/report/judge.ts';
import { readScenario, type ScenarioPlan } from './read-scenario.ts';
import { runPlan } from './run-plan.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const EXAMPLES = globSync('examples/scenarios/*.yaml', { cwd: ROOT });
const SHORT = ['drain=5s', 'window=null', 'seeds=1'];
/** Long enough for every figure that a bar asks for, and no longer than that where many come at once. */
const SPANS: Readonly<Record<string, string>> = {
  'chaos-cpu': '12m',
  'chaos-partition': '10m',
  fairness: '20s',
  starvation: '1m',
  staircase: '1s',
};

function planOf(example: string, sets: readonly string[]): ScenarioPlan {
  const file = join(ROOT, example);
  const read = readScenario({ file, sets, variants: [], policies: [], traceFile: '' });
  if (read.kind === 'issues') throw new Error(read.issues.map(issueText).join('\n'));
  return read.plan;
}

test('there are scenarios', () => {
  expect(EXAMPLES.length).toBeGreaterThanOrEqual(15);
});

test.each(EXAMPLES)(
  '%s says what it shows, runs, and its bars name figures that exist',
  async (example) => {
    expect(readFileSync(join(ROOT, example), 'utf8')).toMatch(/^# /);
    const plan = planOf(example, [...SHORT, `span=${SPANS[basename(example, '.yaml')] ?? '20s'}`]);
    expect(plan.name).toBe(basename(example, '.yaml'));
    expect(plan.about).not.toBe('');
    const results = await runPlan(plan, { workers: 1, onProgress: () => {} });
    for (const { name, policies } of results.variants)
      for (const { reports } of policies) expect(reports[0]?.all.offered, name).toBeGreaterThan(0);
    // What follows a trace that is not there is not run, and its bars are not judged.
    if (results.variants.length < plan.variants.length) return;
    const verdicts = judgeBars(plan.bars, results);
    expect(verdicts.filter(({ kind, value }) => kind === 'not-run' || Number.isNaN(value))).toEqual([]);
  },
  120_000,
);

test.each(EXAMPLES)('%s has no issues at its full length', (example) => {
  expect(planOf(example, []).variants.length).toBeGreaterThan(0);
});
