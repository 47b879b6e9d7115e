/** Reads a configuration for a command; issues go to standard error one a line, and the exit code is 2. */
import type { ReadConfig, ReadConfigOptions } from '../../adapters/config-file/read-config.ts';
import { CliError, USAGE } from './exit.ts';
import { sayJson } from './output.ts';

export type GoodConfig = Extract<ReadConfig, { kind: 'config' }>;

export async function reading(source: ReadConfigOptions): Promise<() => ReadConfig> {
  const { readConfig } = await import('../../adapters/config-file/read-config.ts');
  return () => readConfig(source);
}

export async function readOrRefuse(
  source: ReadConfigOptions,
  output: { readonly json: boolean },
): Promise<GoodConfig> {
  const read = (await reading(source))();
  if (read.kind === 'config') return read;
  if (output.json) sayJson({ ok: false, issues: read.issues });
  const { issueText } = await import('../../adapters/config-file/locate.ts');
  throw new CliError(read.issues.map(issueText).join('\n'), USAGE);
}
