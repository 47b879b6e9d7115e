/** Writes the tables in `docs/reference/hardware.md` between its two marks, from the catalogue. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { hardwareReference, withHardwareReference } from './hardware-reference.ts';

const target = fileURLToPath(new URL('../docs/reference/hardware.md', import.meta.url));
writeFileSync(target, withHardwareReference(readFileSync(target, 'utf8'), hardwareReference()));
