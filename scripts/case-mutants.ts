/**
 * Takes the protection against each known failure mode away, one at a time, in a temporary copy of the source, and
 * demands that its test over real sockets notices: `node scripts/case-mutants.ts [--only TEXT] [--part K/N] [--write-reference]`.
 * TEXT is a part of the test's name or of what is taken away; with N parts, several may run side by side. Before, the same tests must pass as the source is; and a
 * test that only ran out of time has noticed nothing, since a busy machine does that too.
 * Minutes long and bound to load: not part of the tests. Exit code 1 when a removal goes unnoticed.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CASES } from './mutants/cases.ts';
import type { KnownCase, Removal } from './mutants/known-case.ts';
import { caseReferenceOf, take } from './mutants/take-protection.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CONFIG = 'export default { test: { watch: false, testTimeout: 180_000, hookTimeout: 60_000 } };\n';
const TEST_MS_MAX = 400_000;
const ALL = '1/1';
const TIMED_OUT = /(?:Test|Hook) timed out in/;

function main(): number {
  const { values } = parseArgs({
    options: {
      only: { type: 'string', default: '' },
      part: { type: 'string', default: ALL },
      'write-reference': { type: 'boolean' },
    },
  });
  if (values['write-reference'] === true) {
    writeFileSync(join(ROOT, 'docs/reference/cases.md'), caseReferenceOf(CASES));
    return 0;
  }
  const [part, parts] = values.part.split('/').map(Number) as [number, number];
  const chosen = chosenBy(values.only).filter((_, index) => index % parts === part - 1);
  if (chosen.length === 0) {
    console.error(
      `Part ${values.part} has no case with "${values.only}" in its test's name or in what is taken away`,
    );
    return 2;
  }
  const folder = copySource();
  try {
    let noticed = 0;
    let failed = 0;
    for (const one of chosen) {
      if (!passesUnchanged(folder, one)) failed += 1;
      for (const removal of one.removals) {
        if (isNoticed(folder, one, removal)) noticed += 1;
        else failed += 1;
      }
    }
    console.log(`${noticed} removals noticed, ${failed} failures`);
    return failed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function chosenBy(text: string): readonly KnownCase[] {
  return CASES.map((one) => ({
    ...one,
    removals: one.removals.filter(({ what }) => one.test.includes(text) || what.includes(text)),
  })).filter(({ removals }) => removals.length > 0);
}

function copySource(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-cases-'));
  for (const path of ['src', 'test', 'package.json'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG);
  return folder;
}

function passesUnchanged(folder: string, one: KnownCase): boolean {
  const titles = [...new Set(one.removals.map((removal) => removal.titles))];
  const { exitCode, output } = runTest(folder, one.test, titles);
  const passes = exitCode === 0 && / (\d+) passed/.test(output);
  console.log(
    `${passes ? 'passes   ' : 'FAILS    '}  ${one.name}, as the source is${passes ? '' : `\n           ${reasonIn(output)}`}`,
  );
  return passes;
}

function isNoticed(folder: string, one: KnownCase, removal: Removal): boolean {
  const files = [...new Set(removal.edits.map(({ file }) => file))];
  const before = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  for (const [file, source] of before) writeFileSync(join(folder, file), take(source, file, removal));
  try {
    const { exitCode, output } = runTest(folder, one.test, [removal.titles]);
    const hasRun = / (\d+) failed/.test(output) && !output.includes('Failed Suites');
    const isNoticedBy = exitCode !== 0 && hasRun && !TIMED_OUT.test(output);
    const verdict = isNoticedBy ? 'noticed  ' : 'UNNOTICED';
    console.log(`${verdict}  ${one.name}: ${removal.what}\n           ${reasonIn(output)}`);
    return isNoticedBy;
  } finally {
    for (const [file, source] of before) writeFileSync(join(folder, file), source);
  }
}

function reasonIn(output: string): string {
  return /(?:Error|AssertionError): .{0,110}/.exec(output)?.[0] ?? '';
}

function runTest(
  folder: string,
  test: string,
  titles: readonly string[],
): { readonly exitCode: number; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--testNamePattern',
      `^(?:${titles.map((title) => title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|')})`,
      `test/integration/${test}`,
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
