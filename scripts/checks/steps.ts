/**
 * The steps of `npm run check`. Each tells how many files it saw, and one that saw none has failed whatever its exit code
 * says: a wrong pattern in a configuration must not read as a clean repository.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { checkLayers } from './layers.ts';
import { checkFunctionLengths } from './function-length.ts';
import { checkLinks } from './links.ts';
import { type Finding, formatFinding, readSourceFiles, type SourceFile } from './source-files.ts';
import { checkTidy } from './tidy.ts';

export interface StepRun {
  readonly exitCode: number;
  readonly output: string;
  /** Undefined when the tool did not say. */
  readonly filesSeen: number | undefined;
}

export interface Step {
  readonly name: string;
  readonly run: (root: string) => StepRun;
}

export interface Verdict {
  readonly ok: boolean;
  readonly reason: string;
}

export function judge(run: StepRun): Verdict {
  if (run.exitCode !== 0) return { ok: false, reason: `ended with code ${run.exitCode}` };
  if (run.filesSeen === undefined) return { ok: false, reason: 'does not say how many files it saw' };
  if (run.filesSeen === 0) return { ok: false, reason: 'saw no file' };
  return { ok: true, reason: `${run.filesSeen} files` };
}

const TOOLS = fileURLToPath(new URL('../../node_modules/.bin/', import.meta.url));
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const COPY_FOLDERS = ['src', 'engines', 'scripts', 'bench', 'test', 'conformance', 'console'] as const;

function runTool(root: string, tool: string, args: readonly string[]): { exitCode: number; output: string } {
  const run = spawnSync(join(TOOLS, tool), args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: OUTPUT_BYTES_MAX,
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  if (run.error !== undefined)
    return { exitCode: 1, output: `${tool} could not be run: ${run.error.message}` };
  return { exitCode: run.status ?? 1, output: stripVTControlCharacters(`${run.stdout}${run.stderr}`) };
}

function countIn(output: string, pattern: RegExp): number | undefined {
  const found = pattern.exec(output)?.[1];
  return found === undefined ? undefined : Number(found.replaceAll(',', ''));
}

/** `folder`: the compiler has checked nothing unless it read a file below it. */
function typesStep(name: string, project: string, folder: string): Step {
  return {
    name,
    run: (root) => {
      const { exitCode, output } = runTool(root, 'tsc', ['-p', project, '--listFiles', '--pretty', 'false']);
      const lines = output.split('\n');
      const isOwn = (line: string): boolean => line.startsWith(join(root, folder)) && /\.tsx?$/.test(line);
      const filesSeen = lines.filter(isOwn).length;
      return { exitCode, filesSeen, output: lines.filter((line) => !line.startsWith('/')).join('\n') };
    },
  };
}

/** The formatter reads JSON too; only TypeScript counts as having seen the sources. */
function formatStep(root: string): StepRun {
  const run = runTool(root, 'biome', ['format', '--max-diagnostics=50', '.']);
  const reported = countIn(run.output, /Checked ([\d,]+) files?/);
  const sources = globSync('**/*.{ts,tsx}', {
    cwd: root,
    exclude: ['**/node_modules/**', '**/dist/**'],
  }).length;
  return { ...run, filesSeen: reported === undefined ? undefined : Math.min(reported, sources) };
}

function lintStep(root: string): StepRun {
  const run = runTool(root, 'oxlint', ['--type-aware', '--deny-warnings']);
  return { ...run, filesSeen: countIn(run.output, /on ([\d,]+) files?/) };
}

/** Knip is silent about what it read, so the files of its own patterns are counted beside it. */
function knipStep(root: string): StepRun {
  const run = runTool(root, 'knip', ['--no-progress']);
  const { project } = JSON.parse(readFileSync(join(root, 'knip.json'), 'utf8')) as {
    project: readonly string[];
  };
  const filesSeen = globSync(project, { cwd: root, exclude: ['**/node_modules/**'] }).length;
  return { ...run, filesSeen };
}

function copiesStep(root: string): StepRun {
  const folders = COPY_FOLDERS.filter((folder) => existsSync(join(root, folder)));
  if (folders.length === 0) return { exitCode: 1, output: 'No folder to look into', filesSeen: 0 };
  const run = runTool(root, 'jscpd', ['--fail-on-empty', ...folders]);
  return { ...run, filesSeen: countIn(run.output, /Total:\D+(\d+)/) };
}

/** What is published compiles, and the compiled command starts: an import that only type stripping forgives fails here. */
function buildStep(root: string): StepRun {
  // Inside node_modules, so that the compiled files find the packages.
  const folder = mkdtempSync(join(root, 'node_modules', '.spillway-build-'));
  try {
    const compiled = runTool(root, 'tsc', [
      '-p',
      'tsconfig.build.json',
      '--outDir',
      folder,
      '--pretty',
      'false',
    ]);
    const filesSeen = globSync('**/*.js', { cwd: folder }).length;
    if (compiled.exitCode !== 0) return { ...compiled, filesSeen };
    return { ...runTool(root, 'node', [join(folder, 'apps/cli/main.js'), '--help']), filesSeen };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function ownStep(name: string, check: (files: readonly SourceFile[]) => readonly Finding[]): Step {
  return {
    name,
    run: (root) => {
      const files = readSourceFiles(root);
      const findings = check(files);
      return {
        exitCode: findings.length === 0 ? 0 : 1,
        output: findings.map(formatFinding).join('\n'),
        filesSeen: files.length,
      };
    },
  };
}

export const STEPS: readonly Step[] = [
  typesStep('types', 'tsconfig.json', 'src'),
  typesStep('types of core alone', 'tsconfig.core.json', 'src/core'),
  typesStep('types of the console', 'console/tsconfig.json', 'console/src'),
  { name: 'build', run: buildStep },
  { name: 'format', run: formatStep },
  { name: 'lint', run: lintStep },
  { name: 'dead code', run: knipStep },
  { name: 'copies', run: copiesStep },
  ownStep('layers', checkLayers),
  ownStep('length of functions', checkFunctionLengths),
  ownStep('tidy', checkTidy),
  ownStep('links', checkLinks),
];
