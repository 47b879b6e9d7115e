/** Writes `config.schema.json`, which editors read, from the schema of the configuration file; `npm run format` follows. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configJsonSchema } from '../src/adapters/config-file/schema.ts';

const target = fileURLToPath(new URL('../config.schema.json', import.meta.url));
writeFileSync(target, `${JSON.stringify(configJsonSchema(), undefined, 2)}\n`);
