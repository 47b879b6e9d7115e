/**
 * Takes the protection against each known failure mode away, one at a time, in a temporary copy of the source, and
 * demands that its test over real sockets notices: `node scripts/case-mutants.ts [--only TEXT] [--write-reference]`.
 * Minutes long and bound to load: not part of the tests. Exit code 1 when a removal goes unnoticed.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CASES, type KnownCase, type Removal } from './mutants/cases.ts';
import { caseReferenceOf, take } from './mutants/take-protection.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const CONFIG = 'export default { test: { watch: false, testTimeout: 90_000, hookTimeout: 60_000 } };\n';
const TEST_MS_MAX = 240_000;

function main(): number {
  const { values } = parseArgs({
    options: { only: { type: 'string' }, 'write-reference': { type: 'boolean' } },
  });
  if (values['write-reference'] === true) {
    writeFileSync(join(ROOT, 'docs/reference/cases.md'), caseReferenceOf(CASES));
    return 0;
  }
  const chosen = CASES.filter(({ test }) => test.includes(values.only ?? ''));
  if (chosen.length === 0) {
    console.error(`No test of a case has ${values.only} in its name`);
    return 2;
  }
  const folder = copySource();
  try {
    let unnoticed = 0;
    for (const one of chosen)
      for (const removal of one.removals) if (!isNoticed(folder, one, removal)) unnoticed += 1;
    return unnoticed === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function copySource(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-cases-'));
  for (const path of ['src', 'test', 'package.json'])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'vitest.config.ts'), CONFIG);
  return folder;
}

function isNoticed(folder: string, one: KnownCase, removal: Removal): boolean {
  const files = [...new Set(removal.edits.map(({ file }) => file))];
  const before = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]));
  for (const [file, source] of before) writeFileSync(join(folder, file), take(source, file, removal));
  try {
    const { exitCode, output } = runTest(folder, one.test, removal.titles);
    const hasRun = / (\d+) failed/.test(output) && !output.includes('Failed Suites');
    const verdict = exitCode !== 0 && hasRun ? 'noticed  ' : 'UNNOTICED';
    const reason = /(?:Error|AssertionError): .{0,110}/.exec(output)?.[0] ?? '';
    console.log(`${verdict}  ${one.name}: ${removal.what}\n           ${reason}`);
    return verdict === 'noticed  ';
  } finally {
    for (const [file, source] of before) writeFileSync(join(folder, file), source);
  }
}

function runTest(
  folder: string,
  test: string,
  titles: string,
): { readonly exitCode: number; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      join(ROOT, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--testNamePattern',
      `^${titles.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`,
      `test/integration/${test}`,
    ],
    {
      cwd: folder,
      encoding: 'utf8',
      timeout: TEST_MS_MAX,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '' },
    },
  );
  return { exitCode: status ?? 1, output: `${stdout}\n${stderr}` };
}

process.exitCode = main();
