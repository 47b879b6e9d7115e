import { describe, expect, test } from 'vitest';
import { checkLinks } from './links.ts';
import { formatFinding } from './source-files.ts';

function check(files: Readonly<Record<string, string>>): readonly string[] {
  return checkLinks(Object.entries(files).map(([path, text]) => ({ path, text }))).map(formatFinding);
}

describe('checkLinks', () => {
  test('fails when it sees no page', () => {
    expect(check({ 'src/a.ts': '' })).toEqual(['. no page was seen']);
  });

  test('follows links to files and folders from where the page is', () => {
    expect(
      check({
        'README.md':
          '[a](docs/a.md) [folder](docs/) [part](docs/a.md#part) [here](#top) [web](https://example.org/x)',
        'docs/a.md': '[up](../README.md)',
      }),
    ).toEqual([]);
  });

  test('finds a link that leads nowhere, with its line, but not inside a code block', () => {
    expect(check({ 'docs/a.md': 'text\n[gone](b.md)\n```\n[sample](c.md)\n```' })).toEqual([
      'docs/a.md:2 no such file: b.md',
    ]);
  });
});
