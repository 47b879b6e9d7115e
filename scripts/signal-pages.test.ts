import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { RULES } from '../src/core/signals/rules/index.ts';
import { SIGNAL_NAMES } from '../src/core/signals/index.ts';

const ROOT = new URL('..', import.meta.url);
const HEADINGS = ['## Rule', '## Evidence', '## What to do', '## What it cannot see'];

test('every signal has one rule, in the order of the names', () => {
  expect(RULES.map(({ signal }) => signal)).toEqual(SIGNAL_NAMES);
});

test.each(RULES.map((rule) => [rule.signal, rule] as const))(
  'the page of %s tells rule, evidence, remedy, limits and every threshold',
  (signal, { thresholds }) => {
    const page = readFileSync(new URL(`docs/signals/${signal}.md`, ROOT), 'utf8');
    expect(page.startsWith(`# \`${signal}\`: `)).toBe(true);
    for (const heading of HEADINGS) expect(page).toContain(`\n${heading}\n`);
    const rows = page.split('\n').map((line) => line.split('|')[1]?.trim());
    for (const [name, { value }] of Object.entries(thresholds)) {
      const at = rows.indexOf(name);
      expect(at, `a row for ${name}`).toBeGreaterThan(0);
      expect(page.split('\n')[at]).toContain(String(value));
    }
  },
);

test('the list of the signals has each of them', () => {
  const list = readFileSync(new URL('docs/concepts/signals.md', ROOT), 'utf8');
  for (const signal of SIGNAL_NAMES) expect(list).toContain(`(../signals/${signal}.md)`);
});
