/** The journal that the configuration asks for, and the version of the code that writes it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJournalFile } from '../../adapters/journal-file/index.ts';
import type { GatewayConfig } from '../../core/config/index.ts';
import type { CodeVersion } from '../../core/journal/index.ts';
import type { JournalOptions } from '../../runtime/journal/journal-recorder.ts';
import type { RuntimeLog } from '../../runtime/log.ts';

/** Undefined where none is to be kept. Throws where its folder cannot be made. */
export function openJournal({ journal }: GatewayConfig, log: RuntimeLog): JournalOptions | undefined {
  if (journal.folder === '') return undefined;
  const { folder, bytesMax, segmentBytesMax } = journal;
  // Sorts by age; two gateways that share a folder do not share a run.
  const run = `${Date.now()}-${process.pid}`;
  const onError = (reason: string): void => log.error({ reason }, 'The journal could not be written');
  const store = createJournalFile({ folder, run, bytesMax, onError });
  return { store, run, code: codeVersion(), segmentBytesMax };
}

export function codeVersion(): CodeVersion {
  const root = fileURLToPath(new URL('../../../', import.meta.url));
  return { version: versionIn(root), commit: commitIn(root) };
}

function versionIn(root: string): string {
  const read = readOrNothing(join(root, 'package.json'));
  return read === '' ? 'unknown' : String((JSON.parse(read) as { version?: unknown }).version);
}

/** Of a checkout whose branch lies in a file of its own; '' for a package, or where the branches are packed. */
function commitIn(root: string): string {
  const head = readOrNothing(join(root, '.git', 'HEAD')).trim();
  const branch = /^ref: (\S+)$/.exec(head)?.[1];
  const commit = branch === undefined ? head : readOrNothing(join(root, '.git', branch)).trim();
  return /^[0-9a-f]{40,64}$/.test(commit) ? commit : '';
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
