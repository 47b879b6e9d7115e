/**
 * One long run of a scenario under the scheduler, with a look at it on the way: a line for each checkpoint, with what a request
 * costs and what memory the process has, and the report so far. Whether a figure, a price or the memory drifts is seen in one run of
 * a hundred million requests and not in fifty of two million.
 *
 *   node bench/long-run.ts [--scenario examples/scenarios/staircase.yaml] [--set span=16000s] [--seed 1] [--checkpoints 48]
 *                          [--out long-run.json]
 */
import { renameSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readScenario } from '../src/apps/simulate/read-scenario.ts';
import type { PolicyReport } from '../src/simulator/measure/report.ts';
import { createPolicy } from '../src/simulator/policies/registry.ts';
import { runPolicy } from '../src/simulator/run-scenario.ts';
import type { PolicySpec, Scenario } from '../src/simulator/scenario/types.ts';

const { values } = parseArgs({
  options: {
    scenario: { type: 'string', default: 'examples/scenarios/staircase.yaml' },
    set: { type: 'string', multiple: true, default: ['span=16000s'] },
    seed: { type: 'string', default: '1' },
    checkpoints: { type: 'string', default: '48' },
    out: { type: 'string', default: '' },
  },
});

function scenarioOf(): Scenario {
  const { scenario: file, set: sets } = values;
  const read = readScenario({ file, sets, variants: [], policies: ['spillway'], traceFile: '' });
  if (read.kind === 'issues') throw new Error(read.issues.map((issue) => JSON.stringify(issue)).join('\n'));
  return read.plan.variants[0]!.scenario;
}

const startedAt = performance.now();
let cpuBefore = process.cpuUsage();
let requestsBefore = 0;

function look(report: PolicyReport): void {
  const cpu = process.cpuUsage(cpuBefore);
  const requests = report.requests - requestsBefore;
  if (requests === 0) return write(report);
  const price = (cpu.user + cpu.system) / requests;
  const { rss, heapUsed } = process.memoryUsage();
  const attained = Object.entries(report.byClass).map(
    ([name, { attained: share }]) => `${name} ${(100 * share).toFixed(4)} %`,
  );
  const cells = [
    `${Math.round((performance.now() - startedAt) / 1_000)} s`,
    `${(report.requests / 1e6).toFixed(2)} million`,
    `${price.toFixed(2)} us each`,
    `${Math.round(rss / 2 ** 20)} MB resident, ${Math.round(heapUsed / 2 ** 20)} MB heap`,
    ...attained,
  ];
  process.stdout.write(`${cells.join(' · ')}\n`);
  write(report);
  cpuBefore = process.cpuUsage();
  requestsBefore = report.requests;
}

/** Whole or not at all. */
function write(report: PolicyReport): void {
  if (values.out === '') return;
  writeFileSync(`${values.out}.new`, JSON.stringify(report));
  renameSync(`${values.out}.new`, values.out);
}

const scenario = scenarioOf();
const seed = Number(values.seed);
const everyUs = Math.ceil(scenario.spanUs / Number(values.checkpoints));
const { report } = runPolicy(scenario, {
  createPolicy: () => createPolicy(scenario.policies[0] as PolicySpec, seed),
  seed,
  checkpoints: { everyUs, take: look },
});
look(report);
