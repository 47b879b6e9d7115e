import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const manifest = (path: string): Manifest => JSON.parse(read(path)) as Manifest;

test('the record of dependencies has one line for each package of the manifests, and no other', () => {
  const root = manifest('package.json');
  const llama = manifest('engines/llama/package.json');
  const used = Object.keys({ ...root.dependencies, ...root.devDependencies, ...llama.dependencies });
  const recorded = [...read('docs/decisions/0003-dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
    ([, name]) => name,
  );
  expect(used.length).toBeGreaterThan(0);
  expect(new Set(recorded)).toEqual(new Set(used));
  expect(recorded.length, 'no line is double').toBe(used.length);
});

test('every version of the manifests is exact, so that a fresh clone installs what was tested', () => {
  for (const path of ['package.json', 'engines/llama/package.json']) {
    const { dependencies = {}, devDependencies = {} } = manifest(path);
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      expect(version, `${name} in ${path}`).toMatch(/^\d+\.\d+\.\d+$/);
    }
  }
});
