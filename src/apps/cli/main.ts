#!/usr/bin/env node
/** Entry of the command line. The compile cache makes every start after the first one faster; see `program.ts`. */
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { run } = await import('./program.ts');
process.exitCode = await run(process.argv.slice(2));
