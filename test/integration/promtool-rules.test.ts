/** The alert rules as their reader judges them: well formed, and firing under what they are for and nothing close to it. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { promtoolPath } from '../support/promtool.ts';

const promtool = promtoolPath();
const FOLDER: string = fileURLToPath(new URL('../../deploy/prometheus/', import.meta.url));
const tests = readdirSync(FOLDER).filter((name) => name.endsWith('.test.yml'));

function judge(...args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync(promtool ?? '', args, { cwd: FOLDER, encoding: 'utf8' });
  return { status, said: stdout + stderr };
}

describe.skipIf(promtool === undefined)('the alert rules', () => {
  test('are well formed', () => {
    const { status, said } = judge('check', 'rules', 'alerts.rules.yml');
    expect(status, said).toBe(0);
  });

  test.each(tests)(
    'fire and stay quiet as %s says',
    (file) => {
      const { status, said } = judge('test', 'rules', file);
      expect(status, said).toBe(0);
      expect(said).toContain('SUCCESS');
    },
    120_000,
  );

  test('have tests', () => {
    expect(tests.length).toBeGreaterThan(0);
  });
});
