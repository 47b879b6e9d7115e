/** What both ways of reading a configuration share: with a file and without one. */
import { join } from 'node:path';
import {
  type ConfigInput,
  type ConfigIssue,
  type GatewayConfig,
  type NodeConfig,
  receivedText,
} from '../../core/config/index.ts';
import { mergeKeys, readKeysFile } from './keys-file.ts';
import type { LocatedIssue } from './issue-text.ts';
import type { LayOver } from './overlaid.ts';

export const COMMAND_LINE = 'command line';

export interface ReadConfigOptions {
  /** Absent: no file, only the command line. */
  readonly file?: string;
  /** What the command line says: wins over the file; nodes are added. */
  readonly commandLine?: ConfigInput;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly memoryLimitBytes?: number;
  /** State folder when neither file nor command line names one. */
  readonly fallbackFolder?: string;
}

export type ReadConfig =
  | {
      readonly kind: 'config';
      /** Without the nodes of the command line. */
      readonly config: GatewayConfig;
      readonly commandLineNodes: readonly NodeConfig[];
      /** File of `spillway keys`, or '' when there is no state folder. */
      readonly keysFile: string;
      /** Everything that was read, to be watched. */
      readonly files: readonly string[];
      /** Where each given setting came from: `file:line` or `command line`, by path such as `bounds.tasksMax`. */
      readonly origins: Readonly<Record<string, string>>;
      /** The same with a stored overlay on top. */
      readonly layOver: LayOver;
    }
  | {
      readonly kind: 'issues';
      readonly issues: readonly LocatedIssue[];
      readonly files: readonly string[];
      /** Known in spite of the issues, or '': the first key is created where a configuration asks for one. */
      readonly keysFile: string;
    };

/** Adds the keys of the keys file; without a named one, of `keys.json` in the state folder, which need not exist. */
export function withKeys(
  input: ConfigInput,
  named: string | undefined,
  issues: ConfigIssue[],
): { readonly input: ConfigInput; readonly keysFile: string } {
  const folder = input.state?.folder ?? '';
  const keysFile = named ?? (folder === '' ? '' : join(folder, 'keys.json'));
  if (keysFile === '') return { input, keysFile };
  const read = readKeysFile(keysFile);
  if (read.kind === 'refused') {
    issues.push({ path: ['keysFile'], rule: read.rule, received: receivedText(keysFile) });
    return { input, keysFile };
  }
  return { input: { ...input, tenants: mergeKeys(input.tenants ?? [], read.keys) }, keysFile };
}
