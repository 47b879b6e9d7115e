/** Who may do what, where no import shows it: reading the environment, and answering clients with a status. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { readSourceFiles, type SourceFile } from './source-files.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const sources = readSourceFiles(ROOT).filter(
  ({ path }) => path.startsWith('src/') && path.endsWith('.ts') && !path.endsWith('.test.ts'),
);

function withPattern(pattern: RegExp, owners: readonly string[]): readonly string[] {
  const isOwned = ({ path }: SourceFile): boolean => owners.some((owner) => path.startsWith(owner));
  return sources.filter((file) => !isOwned(file) && pattern.test(file.text)).map((file) => file.path);
}

test('only apps read the environment and the command line', () => {
  expect(sources.length).toBeGreaterThan(100);
  expect(withPattern(/\bprocess\.(env|argv)\b/, ['src/apps/'])).toEqual([]);
});

test('only the edge answers with an HTTP status; the emulator plays foreign servers', () => {
  const answering = /\.writeHead\(|\.statusCode\s*=|`HTTP\/1\.1 \$\{/;
  expect(withPattern(answering, ['src/edge/', 'src/emulator/'])).toEqual([]);
});
