import { describe, expect, test } from 'vitest';
import { formatFinding } from './source-files.ts';
import { checkTidy } from './tidy.ts';

function check(files: Readonly<Record<string, string>>): readonly string[] {
  return checkTidy(Object.entries(files).map(([path, text]) => ({ path, text }))).map(formatFinding);
}

describe('checkTidy', () => {
  test('fails when it sees no source file', () => {
    expect(check({})).toEqual(['. no source file was seen']);
    expect(check({ 'README.md': 'words' })).toEqual(['. no source file was seen']);
  });

  test('passes plain code', () => {
    expect(
      check({
        'src/lane-queue.ts':
          "import { type AddressInfo } from 'node:net';\nexport function push(): void {}\nconst maintain = 1;",
      }),
    ).toEqual([]);
  });

  test('finds unfinished work and registry hosts in any file, with the line', () => {
    const host = ['registry', 'npmjs', 'org'].join('.');
    expect(check({ 'a.ts': `\n// ${'TO'}${'DO'} later`, 'docs/a.md': `see https://${host}/x` })).toEqual([
      'a.ts:2 unfinished work is told in an issue, not in a comment',
      'docs/a.md:1 no host of a package registry is named: a mirror must do as well',
    ]);
  });

  test.each([
    `class Node${'Man'}${'ager'} {}`,
    `const request${'Ut'}${'ils'} = 1;`,
    `function make${'Hel'}${'per'}() {}`,
    `interface Node${'In'}${'fo'} {}`,
    `type Queue${'Da'}${'ta'} = 1;`,
  ])('finds the empty name in: %s', (text) => {
    expect(check({ 'a.ts': text })).toMatchObject([expect.stringContaining('says nothing of what it is')]);
  });

  test('finds file names that are empty or not kebab-case', () => {
    expect(check({ [`src/${'ut'}${'ils'}.ts`]: '', 'src/LaneQueue.ts': '' })).toEqual([
      `src/${'ut'}${'ils'}.ts a file is named after what it does`,
      'src/LaneQueue.ts file names are kebab-case',
    ]);
  });
});
