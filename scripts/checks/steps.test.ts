import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { judge, STEPS } from './steps.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONFIGURATION = [
  'package.json',
  'tsconfig.base.json',
  'tsconfig.json',
  'tsconfig.core.json',
  'tsconfig.build.json',
  'biome.json',
  '.oxlintrc.json',
  '.jscpd.json',
  'knip.json',
  'console/tsconfig.json',
] as const;

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-check-'));
  mkdirSync(join(folder, 'console'));
  for (const name of CONFIGURATION) copyFileSync(join(ROOT, name), join(folder, name));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

function outputOf(name: string): string {
  const step = STEPS.find((each) => each.name === name);
  if (step === undefined) throw new Error(`No step ${name}`);
  return step.run(folder).output;
}

describe('judge', () => {
  test('passes a step that ended well and saw files', () => {
    expect(judge({ exitCode: 0, output: '', filesSeen: 3 })).toEqual({ ok: true, reason: '3 files' });
  });

  test('fails a step that saw no file, or does not say, though it ended well', () => {
    expect(judge({ exitCode: 0, output: '', filesSeen: 0 }).ok).toBe(false);
    expect(judge({ exitCode: 0, output: '', filesSeen: undefined }).ok).toBe(false);
  });
});

describe('each step', () => {
  test.each(STEPS.map((step) => step.name))('%s fails in a repository without sources', (name) => {
    const step = STEPS.find((each) => each.name === name);
    expect(step === undefined || judge(step.run(folder)).ok).toBe(false);
  });
});

describe('lint', () => {
  test('bans clocks, chance, timers and the environment in core and base, not elsewhere', () => {
    const text = [
      'export const a: number = Date.now() + Math.random();',
      'export const b: unknown = process.env;',
      'export const c: unknown = setTimeout;',
      '',
    ].join('\n');
    write('src/core/a.ts', text);
    write('src/base/a.ts', text);
    write('src/runtime/a.ts', text);
    const output = outputOf('lint');
    for (const file of ['src/core/a.ts', 'src/base/a.ts']) {
      for (const line of [1, 2, 3]) expect(output).toContain(`${file}:${line}:`);
    }
    expect(output).not.toContain('src/runtime/a.ts');
  });

  test('finds floating promises and import cycles', () => {
    write(
      'src/edge/a.ts',
      "import { b } from './b.ts';\nexport async function a(): Promise<void> {\n  b();\n}\na();\n",
    );
    write('src/edge/b.ts', "import { a } from './a.ts';\nexport function b(): unknown {\n  return a;\n}\n");
    const output = outputOf('lint');
    expect(output).toContain('no-floating-promises');
    expect(output).toContain('no-cycle');
  });

  test('bounds what a function holds in all, and files to 600 lines, tests excepted', () => {
    const long = `export function long(): void {\n${'  void 0;\n'.repeat(251)}}\n`;
    write('src/edge/a.ts', long);
    write('src/edge/a.test.ts', long);
    write(
      'src/edge/b.ts',
      Array.from({ length: 601 }, (_, index) => `export const x${index} = 1;\n`).join(''),
    );
    const output = outputOf('lint');
    expect(output).toContain('max-lines-per-function');
    expect(output).toContain('max-lines)');
    expect(output).not.toContain('a.test.ts');
  });
});

describe('types of core alone', () => {
  test('does not know the platform', () => {
    write('src/core/a.ts', 'export const a: unknown = [setTimeout, process, Buffer, fetch, document];\n');
    const output = outputOf('types of core alone');
    for (const name of ['setTimeout', 'process', 'Buffer', 'fetch', 'document'])
      expect(output).toContain(`'${name}'`);
  });
});

describe('copies', () => {
  test('finds code that was pasted', () => {
    const lines = Array.from(
      { length: 40 },
      (_, index) => `  total += first[${index}] * second.field${index} - ${index};`,
    );
    const text = `export function a(first: number[], second: never): number {\n  let total = 0;\n${lines.join('\n')}\n  return total;\n}\n`;
    write('src/edge/a.ts', text);
    write('src/edge/b.ts', text);
    expect(outputOf('copies')).toContain('Clone found');
  });
});
