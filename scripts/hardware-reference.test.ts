import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { hardwareReference, withHardwareReference } from './hardware-reference.ts';

describe('docs/reference/hardware.md', () => {
  test('has the tables of the catalogue; `node scripts/write-hardware-reference.ts` writes them', () => {
    const page = readFileSync(new URL('../docs/reference/hardware.md', import.meta.url), 'utf8');
    expect(withHardwareReference(page, hardwareReference())).toBe(page);
  });
});
