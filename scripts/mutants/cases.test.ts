import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CASES } from './cases.ts';
import { caseReferenceOf, take } from './take-protection.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const REMOVALS = CASES.flatMap((one) =>
  one.removals.map((removal) => [`${one.name}: ${removal.what}`, one, removal] as const),
);

describe('CASES', () => {
  test.each(REMOVALS)('%s still applies to the code', (_, __, removal) => {
    for (const file of new Set(removal.edits.map((edit) => edit.file))) {
      const source = readFileSync(join(ROOT, file), 'utf8');
      expect(take(source, file, removal)).not.toBe(source);
    }
  });

  test.each(REMOVALS)('%s names a test that exists', (_, one, removal) => {
    const source = readFileSync(join(ROOT, 'test/integration', one.test), 'utf8');
    const described = [...source.matchAll(/^(?:describe|it|test)\(\s*'([^']+)'/gm)].map(
      ([, title]) => title as string,
    );
    const { titles } = removal;
    const group = described.find((title) => titles.startsWith(title) || title.startsWith(titles));
    expect(group, described.join(' | ')).toBeDefined();
    for (const report of one.reports)
      expect(source, 'the test names its reports').toContain(report.split('#')[1]);
  });

  test.each(CASES.flatMap(({ also = [] }) => also))('the other test %s exists', (path) => {
    expect(existsSync(join(ROOT, path))).toBe(true);
  });

  test('each have a removal, and are listed in the reference as they are', () => {
    for (const one of CASES) expect(one.removals.length).toBeGreaterThan(0);
    expect(readFileSync(join(ROOT, 'docs/reference/cases.md'), 'utf8')).toBe(caseReferenceOf(CASES));
  });
});

describe('take', () => {
  const removal = { what: 'x', titles: 't', edits: [{ file: 'f.ts', original: 'a', mutated: 'b' }] };

  test('changes the one place, in the one file', () => {
    expect([take('1 a 2', 'f.ts', removal), take('1 a 2', 'g.ts', removal)]).toEqual(['1 b 2', '1 a 2']);
  });

  test.each(['nothing', 'a and a'])('throws when the text is not there exactly once: %s', (source) => {
    expect(() => take(source.replace('nothing', ''), 'f.ts', removal)).toThrow('exactly once');
  });
});
