import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeCertificate } from '../../../test/support/certificate.ts';
import { settingsReference, withReference } from '../../core/config/reference.ts';
import { issueText } from './issue-text.ts';
import { readConfig } from './read-config.ts';
import { configJsonSchema } from './schema.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const EXAMPLES = globSync('examples/*.yaml', { cwd: ROOT });
/** What the examples refer to. */
const FILES = ['proxy-token', 'acme-key', 'fleet-ca.pem', 'gateway.pem', 'gateway.key'];
const ENVIRONMENT = { ACME_KEY: 'a key', UPSTREAM_KEY: 'another key' };

test('there are examples', () => {
  expect(EXAMPLES.length).toBeGreaterThanOrEqual(4);
});

test.each(EXAMPLES)('%s has no issues', (example) => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-example-'));
  try {
    const file = join(folder, basename(example));
    cpSync(join(ROOT, example), file);
    makeCertificate(folder);
    for (const name of FILES) writeFileSync(join(folder, name), 'content');
    writeFileSync(join(folder, 'keys.json'), '{"keys":[]}');
    const read = readConfig({ file, environment: ENVIRONMENT });
    expect(read.kind === 'issues' ? read.issues.map(issueText) : []).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('config.schema.json is what `node scripts/write-config-schema.ts` writes', () => {
  const written: unknown = JSON.parse(readFileSync(join(ROOT, 'config.schema.json'), 'utf8'));
  expect(written).toEqual(JSON.parse(JSON.stringify(configJsonSchema())));
});

test('the configuration page has the table that `node scripts/write-config-reference.ts` writes', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/configuration.md'), 'utf8');
  expect(page).toContain('`bounds.tasksMax`');
  expect(withReference(page, settingsReference())).toBe(page);
});
