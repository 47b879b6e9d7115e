/**
 * Where the built console lies: `dist/console`, in a checkout as in the published package. Read at the first request and
 * kept, since it is small and a running gateway must not change its answers halfway through an upgrade.
 */
import { createHash } from 'node:crypto';
import { globSync, readFileSync, statSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ConsoleFile, ConsoleFiles } from '../../edge/admin/console.ts';

/** The compiled program lies in `dist` itself, the sources beside it. */
const FOLDER: string = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../../../dist/console/' : '../../console/', import.meta.url),
);
const CONSOLE_FILES_MAX = 64;
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

export function createConsoleFiles(folder: string = FOLDER): ConsoleFiles {
  let files: ReadonlyMap<string, ConsoleFile> | undefined;
  return () => (files ??= readFiles(folder));
}

function readFiles(folder: string): ReadonlyMap<string, ConsoleFile> | undefined {
  const names = globSync('**/*', { cwd: folder })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => CONTENT_TYPES[extname(name)] !== undefined && statSync(join(folder, name)).isFile());
  if (!names.includes('index.html')) return undefined;
  if (names.length > CONSOLE_FILES_MAX)
    throw new Error(
      `Cannot serve the console: expected at most ${CONSOLE_FILES_MAX} files, found ${names.length}`,
    );
  return new Map(names.map((name) => [name, readFile(folder, name)]));
}

function readFile(folder: string, name: string): ConsoleFile {
  const bytes = readFileSync(join(folder, name));
  return {
    bytes,
    contentType: CONTENT_TYPES[extname(name)] as string,
    etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
    isHashed: name.startsWith('assets/'),
  };
}
