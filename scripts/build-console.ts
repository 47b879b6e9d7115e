/**
 * Builds the web console into `dist/console`, where the gateway finds it: about a second, and nothing when its sources
 * did not change since. `npm start` and `npm run demo` run it first, with `--if-possible`: a gateway whose development
 * dependencies are not installed starts without a console.
 */
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT: string = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = ['console/**/*.{ts,tsx,css,html,svg,json}', 'scripts/build-console.ts', 'package-lock.json'];
const STAMP = '.built-from';

/** Whether there was something to build. */
export async function buildConsole(folder: string = join(ROOT, 'dist/console')): Promise<boolean> {
  const stamp = join(folder, STAMP);
  const sources = digestOfSources();
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === sources) return false;
  const { build } = await import('vite');
  await build({
    configFile: false,
    logLevel: 'warn',
    root: join(ROOT, 'console'),
    base: '/console/',
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2024',
      cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
      // What the page's policy forbids, and what browsers of this age do not need.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
  });
  writeFileSync(stamp, sources);
  return true;
}

function digestOfSources(): string {
  const digest = createHash('sha256');
  for (const path of globSync(SOURCES, { cwd: ROOT }).toSorted()) {
    if (path.includes('.test.')) continue;
    digest.update(`${path}\0`).update(readFileSync(join(ROOT, path)));
  }
  return digest.digest('hex');
}

if (import.meta.main) {
  try {
    if (await buildConsole()) process.stderr.write('Built the console into dist/console\n');
  } catch (error) {
    if (!process.argv.includes('--if-possible')) throw error;
    process.stderr.write(
      `There will be no console: ${error instanceof Error ? error.message : String(error)}\n`,
    );
  }
}
