/**
 * `npm test`: unit tests, then tests over real sockets. Says what was left out and why, and ends with one line
 * `N passed, N failed`. Arguments go to the runner: `npm test -- src/core`.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LLAMA_INSTALL_COMMAND, llamaEngineMissing } from '../engines/llama/installation.ts';
import {
  nodeExporterPath,
  prometheusPath,
  PROMTOOL_INSTALL_COMMAND,
  promtoolPath,
} from '../test/support/promtool.ts';
import { BROWSER_INSTALL_COMMAND, browserPath } from '../test/support/browser.ts';
import { summarize, summaryLine, type TestReport } from './test-summary.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const RUNNER = join(ROOT, 'node_modules/vitest/vitest.mjs');
/** Fixed, so that a red run is repeated by running it again; `FC_SEED=N npm test` tries others. */
const PROPERTY_SEED = '20261129';
/** Files whose tests ask for the llama engine. */
const NEEDS_LLAMA = /engine-(llama|gateway)/;
/** Files whose tests ask for promtool or Prometheus. */
const NEEDS_PROMTOOL = /promtool-/;
/** Files whose tests ask for a browser. */
const NEEDS_BROWSER = /^test\/e2e\//;
const RUN_MINUTES_MAX = 14;
/** Where the command line keeps its own: what else the tests start is compiled once, too. */
const COMPILE_CACHE = join(tmpdir(), 'node-compile-cache');

function runTests(reportPath: string): number {
  const args = [RUNNER, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportPath}`];
  const run = spawnSync(process.execPath, [...args, ...process.argv.slice(2)], {
    cwd: ROOT,
    stdio: 'inherit',
    timeout: RUN_MINUTES_MAX * 60_000,
    env: {
      ...process.env,
      FC_SEED: process.env['FC_SEED'] ?? PROPERTY_SEED,
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? COMPILE_CACHE,
    },
  });
  if (run.error !== undefined) process.stderr.write(`The test run did not end: ${whyNotEnded(run.error)}\n`);
  return run.status ?? 1;
}

function whyNotEnded(error: NodeJS.ErrnoException): string {
  return error.code === 'ETIMEDOUT'
    ? `it was stopped after ${RUN_MINUTES_MAX} minutes, and what had passed by then is not counted`
    : error.message;
}

function readReport(path: string): TestReport {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as TestReport;
  } catch {
    return { testResults: [] };
  }
}

function whyLeftOut(file: string): string {
  const missing = llamaEngineMissing();
  if (missing !== undefined && NEEDS_LLAMA.test(file))
    return `${missing}; install it with: ${LLAMA_INSTALL_COMMAND}`;
  const programs = [promtoolPath(), prometheusPath(), nodeExporterPath()];
  if (programs.includes(undefined) && NEEDS_PROMTOOL.test(file))
    return `promtool, Prometheus and the node exporter are not installed; install them with: ${PROMTOOL_INSTALL_COMMAND}`;
  if (browserPath() === undefined && NEEDS_BROWSER.test(file))
    return `no browser is installed; install it with: ${BROWSER_INSTALL_COMMAND}`;
  return 'the tests are marked as skipped in the file';
}

function sayLeftOut(leftOut: ReadonlyMap<string, number>): void {
  for (const [path, count] of leftOut) {
    const file = relative(ROOT, path);
    const why = whyLeftOut(file);
    process.stdout.write(`LEFT OUT: ${count} tests of ${file}: ${why}\n`);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'spillway-test-'));
const reportPath = join(folder, 'report.json');
const exitCode = runTests(reportPath);
const summary = summarize(readReport(reportPath), exitCode);
rmSync(folder, { recursive: true });
sayLeftOut(summary.leftOut);
for (const file of summary.brokenFiles) process.stdout.write(`BROKEN: ${file}\n`);
process.stdout.write(`${summaryLine(summary)}\n`);
process.exitCode = summary.failed > 0 ? 1 : 0;
