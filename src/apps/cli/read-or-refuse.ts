/** Reads a configuration for a command; issues go to standard error one a line, and the exit code is 2. */
import {
  issueText,
  type ReadConfig,
  type ReadConfigOptions,
  readOverlay,
} from '../../adapters/config-file/index.ts';
import { CliError, USAGE } from './exit.ts';
import { sayJson } from './output.ts';

export type GoodConfig = Extract<ReadConfig, { kind: 'config' }>;
type Issues = Extract<ReadConfig, { kind: 'issues' }>['issues'];

/** YAML and the schema take a tenth of a second to load, so only a file loads them. */
export async function reading(source: ReadConfigOptions): Promise<() => ReadConfig> {
  const { file } = source;
  if (file === undefined) return () => readOverlay(source);
  const { readConfig } = await import('../../adapters/config-file/read-config.ts');
  return () => readConfig({ ...source, file });
}

export async function readOrRefuse(
  source: ReadConfigOptions,
  output: { readonly json: boolean },
): Promise<GoodConfig> {
  const read = (await reading(source))();
  if (read.kind === 'config') return read;
  return refuseIssues(read.issues, output);
}

export function refuseIssues(issues: Issues, output: { readonly json: boolean }): never {
  if (output.json) sayJson({ ok: false, issues });
  throw new CliError(issues.map(issueText).join('\n'), USAGE);
}
