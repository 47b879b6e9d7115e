/** Where promtool is, which judges the metrics page by the rules of its readers. Tests that need it say so when it is not there. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROMTOOL_FOLDER: string = fileURLToPath(
  new URL('../../node_modules/.cache/promtool/', import.meta.url),
);
export const PROMTOOL_INSTALL_COMMAND = 'node scripts/install-promtool.ts';

/** Undefined when it is neither installed on this machine nor in the folder that the script fills. */
export function promtoolPath(): string | undefined {
  const folders = [join(PROMTOOL_FOLDER, 'usr/bin'), ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, 'promtool')).find((path) => existsSync(path));
}
