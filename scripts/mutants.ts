/**
 * Applies every mutant of the core, one at a time, in a temporary copy of the source, and demands that the named tests
 * notice: `node scripts/mutants.ts [--only NAME] [--write-reference]`. Exit code 1 when one survives.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mutate, referenceOf } from './mutants/apply.ts';
import { MUTANTS } from './mutants/list.ts';
import type { Mutant } from './mutants/mutant.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** A fixed seed, and no shrinking: that a test fails is all that is asked. */
const SETUP = "import fc from 'fast-check';\nfc.configureGlobal({ seed: 1, endOnFailure: true });\n";
const CONFIG = "export default { test: { watch: false, setupFiles: ['setup.ts'], testTimeout: 60_000 } };\n";
const TEST_MS_MAX = 120_000;

interface Verdict {
  readonly isKilled: boolean;
  readonly detail: string;
}

const HELP = `Usage: node scripts/mutants.ts [--only NAME] [--write-reference]

Applies every mutant of the core in a copy of the source, one at a time, and runs the tests named for it.

  --only NAME          that mutant alone; the names are in docs/reference/mutants.md
  --write-reference    writes docs/reference/mutants.md and runs nothing
  -h, --help           this text

Exit codes: 0 every mutant was noticed, 1 one survived, 2 wrong usage.
`;

interface Arguments {
  readonly only?: string | undefined;
  readonly 'write-reference'?: boolean | undefined;
  readonly help?: boolean | undefined;
}

/** Undefined after wrong usage, which was said. */
function readArguments(): Arguments | undefined {
  const options = {
    only: { type: 'string' },
    'write-reference': { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  } as const;
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)} (see --help)`);
    return undefined;
  }
}

function main(): number {
  const values = readArguments();
  if (values === undefined) return 2;
  if (values.help === true) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values['write-reference'] === true) {
    writeFileSync(join(ROOT, 'docs/reference/mutants.md'), referenceOf(MUTANTS));
    return 0;
  }
  const chosen = MUTANTS.filter(({ name }) => values.only === undefined || name === values.only);
  if (chosen.length === 0) {
    console.error(`No mutant is called ${values.only}`);
    return 2;
  }
  const folder = copySource();
  try {
    return hunt(folder, chosen);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function copySource(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-mutants-'));
  for (const path of ['src', 'test', 'package.json']) {
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'setup.ts'), SETUP);
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG);
  return folder;
}

/** First the tests as they are: a test that fails anyway kills nothing. */
function hunt(folder: string, chosen: readonly Mutant[]): number {
  const killers = [...new Set(chosen.map(({ killer }) => killer))];
  const clean = runTests(folder, killers, '');
  if (clean.exitCode !== 0) {
    console.error(`The tests fail without any mutant:\n${clean.output.slice(-4_000)}`);
    return 1;
  }
  let survivors = 0;
  for (const mutant of chosen) {
    const startedAt = performance.now();
    const { isKilled, detail } = judge(folder, mutant);
    if (!isKilled) survivors += 1;
    const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
    console.log(
      `${isKilled ? 'killed  ' : 'SURVIVED'}  ${mutant.name.padEnd(42)} ${seconds.padStart(5)} s  ${detail}`,
    );
  }
  console.log(`${chosen.length - survivors} of ${chosen.length} mutants killed`);
  return survivors === 0 ? 0 : 1;
}

function judge(folder: string, mutant: Mutant): Verdict {
  const path = join(folder, mutant.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, mutate(source, mutant));
  try {
    const { exitCode, output } = runTests(folder, [mutant.killer], mutant.titles);
    const failed = /(\d+) failed/.exec(
      output.split('\n').findLast((line) => /^\s*Tests /.test(line)) ?? '',
    )?.[1];
    if (exitCode === 0 || failed === undefined)
      return { isKilled: false, detail: `${mutant.killer} did not notice` };
    return { isKilled: true, detail: `by ${mutant.killer} (${mutant.titles})` };
  } finally {
    writeFileSync(path, source);
  }
}

function runTests(
  folder: string,
  files: readonly string[],
  titles: string,
): { readonly exitCode: number; readonly output: string } {
  const filter =
    titles === '' ? [] : ['--testNamePattern', `^${titles.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--bail',
      titles === '' ? '0' : '1',
      ...filter,
      ...files,
    ],
    {
      cwd: folder,
      encoding: 'utf8',
      timeout: TEST_MS_MAX,
      env: { ...process.env, TEST_DEPTH: 'deep', NO_COLOR: '1', FORCE_COLOR: '' },
    },
  );
  return { exitCode: status ?? 1, output: `${stdout}\n${stderr}` };
}

process.exitCode = main();
