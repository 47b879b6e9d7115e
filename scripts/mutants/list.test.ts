import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { mutate, referenceOf } from './apply.ts';
import { MUTANTS } from './list.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('MUTANTS', () => {
  test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
    '%s still applies to the code',
    (_, mutant) => {
      const source = readFileSync(join(ROOT, mutant.file), 'utf8');
      expect(mutate(source, mutant)).not.toBe(source);
      expect(existsSync(join(ROOT, mutant.killer))).toBe(true);
    },
  );

  test('have names of their own and cover every invariant that core carries', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    const covered = new Set(MUTANTS.map(({ invariant }) => invariant));
    for (const invariant of [1, 2, 3, 4, 5, 6, 7, 8, 10, 11]) expect(covered).toContain(invariant);
  });

  test('are listed in the reference as they are', () => {
    expect(readFileSync(join(ROOT, 'docs/reference/mutants.md'), 'utf8')).toBe(referenceOf(MUTANTS));
  });
});

describe('mutate', () => {
  const mutant = {
    name: 'x',
    invariant: 1,
    file: 'f.ts',
    original: 'a',
    mutated: 'b',
    killer: 'k',
    titles: 't',
  };

  test('replaces the one place', () => {
    expect(mutate('1 a 2', mutant)).toBe('1 b 2');
  });

  test.each(['nothing', 'a and a'])('throws when the text is not there exactly once: %s', (source) => {
    expect(() => mutate(source.replace('nothing', ''), mutant)).toThrow('exactly once');
  });
});
