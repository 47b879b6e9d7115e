#!/usr/bin/env node
/** Entry of the command line. The compile cache makes every start after the first one faster; see `program.ts`. */
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { run } = await import('./program.ts');
// A reader that has seen enough (`| head`) is no failure, and must not end a gateway.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
process.exitCode = await run(process.argv.slice(2));
