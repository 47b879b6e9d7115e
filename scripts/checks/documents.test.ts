/** Pages that must not drift: indexes that list everything, paths that exist, configurations that are valid. */
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { issueText } from '../../src/adapters/config-file/index.ts';
import { readConfig } from '../../src/adapters/config-file/read-config.ts';
import { readScenario } from '../../src/apps/simulate/read-scenario.ts';
import { makeCertificate } from '../../test/support/certificate.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const linksIn = (path: string): readonly string[] =>
  [...read(path).matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target);

test('the index of decisions lists every record', () => {
  const records = globSync('[0-9]*.md', { cwd: join(ROOT, 'docs/decisions') }).sort();
  expect(records.length).toBeGreaterThan(0);
  expect(linksIn('docs/decisions/README.md')).toEqual(records);
});

test('the index of the documentation lists every page', () => {
  const pages = globSync('{concepts,guides,reference}/*.md', { cwd: join(ROOT, 'docs') });
  expect(pages.length).toBeGreaterThan(0);
  expect(pages.filter((page) => !linksIn('docs/README.md').includes(page))).toEqual([]);
});

test('the architecture names files that exist', () => {
  const text = read('ARCHITECTURE.md');
  const paths = [...text.matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|txt|json))`/g)].map(([, path = '']) => path);
  expect(paths.length).toBeGreaterThan(40);
  const places = ['', 'src/', 'src/core/'];
  expect(paths.filter((path) => !places.some((place) => existsSync(join(ROOT, place, path))))).toEqual([]);
});

test('the bounds of the architecture are names of the code and of the configuration', () => {
  const table = read('ARCHITECTURE.md').split('\n## Bounds\n')[1]?.split('\n## ')[0] ?? '';
  const code = globSync('src/**/*.ts', { cwd: ROOT }).map(read).join('\n');
  const constants = [...table.matchAll(/`([A-Z][A-Z_]+)`/g)].map(([, name = '']) => name);
  expect(constants.length).toBeGreaterThan(20);
  expect(constants.filter((name) => !new RegExp(`const ${name}\\b`).test(code))).toEqual([]);
  const settings = [...table.matchAll(/`((?:bounds|placement|retry|server)\.\w+)`/g)].map(
    ([, name = '']) => name,
  );
  expect(settings.length).toBeGreaterThan(10);
  expect(settings.filter((name) => !code.includes(`'${name}'`))).toEqual([]);
});

/** Configurations and scenarios in the text: blocks that begin with a section of the file. */
const BLOCKS = ['README.md', ...globSync('docs/{guides,reference}/*.md', { cwd: ROOT })].flatMap((path) =>
  [...read(path).matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ''], index) => ({
    name: `${path} ${index + 1}`,
    text,
  })),
);
const SCENARIOS = BLOCKS.filter(({ text }) => /^fleet:/m.test(text));
const CONFIGURATIONS = BLOCKS.filter(
  (block) => !SCENARIOS.includes(block) && !block.name.includes('/reference/'),
);

test.each(SCENARIOS)('the scenario in $name is valid', ({ text }) => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-page-'));
  try {
    const file = join(folder, 'scenario.yaml');
    writeFileSync(file, text);
    const result = readScenario({ file, sets: [], variants: [], policies: [], traceFile: '' });
    expect(result.kind === 'issues' ? result.issues.map(issueText) : []).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
const FILES = ['fleet-ca.pem', 'gateway.pem', 'gateway.key'];
const SECRET = 'c'.repeat(64);

test.each(CONFIGURATIONS)('the configuration in $name is valid', ({ text }) => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-page-'));
  try {
    for (const name of FILES) writeFileSync(join(folder, name), 'content');
    const { cert, key } = makeCertificate(folder);
    cpSync(cert, join(folder, 'tls.crt'));
    cpSync(key, join(folder, 'tls.key'));
    const keys = [{ id: 'k', tenant: 'acme', sha256: SECRET, createdAt: 'now' }];
    writeFileSync(join(folder, 'keys.json'), JSON.stringify({ keys }));
    const file = join(folder, 'spillway.yaml');
    writeFileSync(file, text.replaceAll('/etc/spillway/', '').replaceAll('/var/lib/spillway', folder));
    const result = readConfig({ file, environment: { A100_KEY: 'a key' }, fallbackFolder: folder });
    expect(result.kind === 'issues' ? result.issues.map(issueText) : []).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('commands in the pages exist: npm scripts, commands of spillway, files that are run', () => {
  const { scripts } = JSON.parse(read('package.json')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  const pages = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: ROOT })]
    .map(read)
    .join('\n');
  const named = (pattern: RegExp): readonly string[] => [
    ...new Set([...pages.matchAll(pattern)].map(([, name = '']) => name)),
  ];
  const npmScripts = named(/\bnpm run (?:-s |--silent )?([a-z][a-z:-]*)/g);
  expect(npmScripts.length).toBeGreaterThan(3);
  expect(npmScripts.filter((name) => scripts[name] === undefined)).toEqual([]);
  const commands = named(/\bspillway -- ([a-z]+)/g);
  expect(commands.length).toBeGreaterThan(3);
  const program = globSync('src/apps/cli/*program.ts', { cwd: ROOT }).map(read).join('\n');
  expect(commands.filter((name) => !program.includes(`'${name}'`))).toEqual([]);
  const files = named(/\bnode ([a-z]+\/[\w./-]+\.ts)/g);
  expect(files.length).toBeGreaterThan(1);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
