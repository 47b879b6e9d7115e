import { describe, expect, test } from 'vitest';
import { table, wrapped } from './output.ts';

const HEAD = ['NODE', 'STATE', 'URL'];
const ROWS = [
  ['gpu-1', 'active', 'http://gpu-1.rack-7.example:8000/engine'],
  ['a-node-with-a-name-of-many-characters', 'suspect', 'http://a'],
];

describe('table', () => {
  test('takes the room it needs when no width is given', () => {
    expect(table(HEAD, ROWS).split('\n')).toEqual([
      'NODE                                   STATE    URL',
      'gpu-1                                  active   http://gpu-1.rack-7.example:8000/engine',
      'a-node-with-a-name-of-many-characters  suspect  http://a',
    ]);
  });

  test('shortens what may shrink, the widest first, and shows that it did', () => {
    const lines = table(HEAD, ROWS, { width: 50, shrinks: [0, 2] }).split('\n');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(50);
    expect(lines[1]).toMatch(/^gpu-1 +active {3}http:\/\/gpu-1\S+…$/);
    expect(lines[2]).toMatch(/^a-node-with-\S+… {2}suspect {2}http:\/\/a$/);
  });

  test('leaves out the last column when shortening is not enough', () => {
    const lines = table(HEAD, ROWS, { width: 24, shrinks: [0, 2] }).split('\n');
    expect(lines[0]).toMatch(/^NODE +STATE$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(24);
  });

  test('lets no control character of a cell reach the terminal', () => {
    expect(table(['A'], [['\u001b[31mred\n']])).toBe('A\n?[31mred?');
  });
});

test('wrapped keeps to the width, word by word, and takes control characters out', () => {
  expect(wrapped('one two three', 8)).toEqual(['one two', 'three']);
  expect(wrapped('a-word-that-is-too-long x', 8)).toEqual(['a-word-that-is-too-long', 'x']);
  expect(wrapped('\u001b[31mred', 80)).toEqual(['?[31mred']);
});
