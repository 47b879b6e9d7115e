/**
 * Where promtool is, which judges metrics and rules by the rules of their readers, Prometheus itself, and an exporter of what
 * hosts tell. Tests that need them say so when they are not there.
 */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const PROMTOOL_FOLDER: string = fileURLToPath(
  new URL('../../node_modules/.cache/promtool/', import.meta.url),
);
export const PROMTOOL_INSTALL_COMMAND = 'node scripts/install-promtool.ts';

/** Undefined when it is neither installed on this machine nor in the folder that the script fills. */
export function promtoolPath(): string | undefined {
  return pathOf('promtool');
}

export function prometheusPath(): string | undefined {
  return pathOf('prometheus');
}

export function nodeExporterPath(): string | undefined {
  return pathOf('prometheus-node-exporter');
}

function pathOf(program: string): string | undefined {
  const folders = [join(PROMTOOL_FOLDER, 'usr/bin'), ...(process.env['PATH'] ?? '').split(delimiter)];
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path));
}
