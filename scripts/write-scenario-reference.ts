/** Writes the table of keys in `docs/reference/scenarios.md` between its two marks, from the schema of scenario files. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { scenarioReference, withKeys } from '../src/apps/simulate/scenario-reference.ts';

const target = fileURLToPath(new URL('../docs/reference/scenarios.md', import.meta.url));
writeFileSync(target, withKeys(readFileSync(target, 'utf8'), scenarioReference()));
