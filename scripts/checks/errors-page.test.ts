/** `docs/reference/errors.md` against the code: every reason and code has its row, and no row is left over. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { OUTCOMES } from '../../src/edge/outcomes/table.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const page = read('docs/reference/errors.md');

/** Rows of the first table below a heading, as cells. */
function rowsBelow(heading: string): readonly (readonly string[])[] {
  const start = page.indexOf(`\n${heading}\n`);
  expect(start, `the page has the heading ${heading}`).toBeGreaterThan(-1);
  const section = page.slice(start + heading.length + 2).split(/\n#+ /, 1)[0] ?? '';
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .slice(2, -2)
        .split(' | ')
        .map((cell) => cell.trim()),
    );
  return rows.slice(2);
}

const codesIn = (cell: string | undefined): readonly string[] =>
  [...(cell ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** First cells may name several codes that share a meaning. */
const namedBelow = (heading: string): readonly string[] =>
  rowsBelow(heading)
    .flatMap((cells) => codesIn(cells[0]))
    .sort();

function foundIn(paths: readonly string[], pattern: RegExp): readonly string[] {
  const found = paths.flatMap((path) => [...read(path).matchAll(pattern)].map(([, code = '']) => code));
  expect(found.length, `${pattern} finds something in ${paths.join(', ')}`).toBeGreaterThan(0);
  return [...new Set(found)].sort();
}

describe('the page of errors', () => {
  test('has the row of each outcome as the table of outcomes has it', () => {
    const documented = rowsBelow('## Requests').map(([reason, status, type, code, retry]) => ({
      reason: codesIn(reason)[0],
      status,
      type: codesIn(type)[0],
      code: codesIn(code)[0],
      retry,
    }));
    const inCode = Object.entries(OUTCOMES).map(([reason, { openai, canRetry }]) => ({
      reason,
      status: String(openai.status),
      type: openai.type,
      code: openai.code,
      retry: canRetry ? 'yes' : 'no',
    }));
    expect(documented).toEqual(inCode);
  });

  test('names the reasons of the admin plane', () => {
    const files = globSync('src/edge/admin/*.ts', { cwd: ROOT }).filter((path) => !path.endsWith('.test.ts'));
    expect(namedBelow('## Admin plane')).toEqual(
      foundIn(files, /(?:reason: |refused\(\d+, )'([a-z]+(?:-[a-z]+)*)'/g),
    );
  });

  test('names the rules of registration', () => {
    const files = ['node-url', 'registration', 'membership'].map((name) => `src/runtime/fleet/${name}.ts`);
    const rules = foundIn(
      files,
      /(?:rule: |refused\(|return |'refused' \? verdict\.rule : )'([a-z]+(?:-[a-z]+)+)'/g,
    );
    expect(namedBelow('### Rules of registration')).toEqual(rules);
  });

  test('names the codes of the registry, and whether a retry can help', () => {
    const codes = foundIn(['src/adapters/registry-sqlite/messages.ts'], /\| '(registry-[a-z-]+)'/g);
    expect(namedBelow('## Registry')).toEqual(codes);
    const retryable = foundIn(
      ['src/adapters/registry-sqlite/registry-error.ts'],
      /^ {2}'(registry-[a-z-]+)',$/gm,
    );
    const documented = rowsBelow('## Registry').filter(([, retry]) => retry === 'yes');
    expect(documented.flatMap(([code]) => codesIn(code)).sort()).toEqual(retryable);
  });

  test('names why a node may not take a task', () => {
    const union =
      /export type IneligibleReason =([^;]+);/.exec(read('src/core/scheduler/views.ts'))?.[1] ?? '';
    const reasons = [...union.matchAll(/'([a-z-]+)'/g)].map(([, reason = '']) => reason).sort();
    expect(reasons.length).toBeGreaterThan(0);
    expect(namedBelow('## Nodes')).toEqual(reasons);
  });
});
