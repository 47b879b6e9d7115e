/** Writes `scenario.schema.json`, which editors read, from the schema of scenario files; `npm run format` follows. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { scenarioJsonSchema } from '../src/apps/simulate/scenario-schema.ts';

const target = fileURLToPath(new URL('../scenario.schema.json', import.meta.url));
writeFileSync(target, `${JSON.stringify(scenarioJsonSchema(), undefined, 2)}\n`);
