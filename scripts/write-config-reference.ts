/** Writes the table of settings in `docs/reference/configuration.md` between its two marks, from the code. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { settingsReference, withReference } from '../src/core/config/reference.ts';

const target = fileURLToPath(new URL('../docs/reference/configuration.md', import.meta.url));
writeFileSync(target, withReference(readFileSync(target, 'utf8'), settingsReference()));
