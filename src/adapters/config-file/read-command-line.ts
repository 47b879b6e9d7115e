/** A configuration without a file: the command line and the keys file. Loads neither YAML nor the schema. */
import { type ConfigIssue, resolveConfig } from '../../core/config/index.ts';
import { createLayOver } from './overlaid.ts';
import { COMMAND_LINE, type ReadConfig, type ReadConfigOptions, withKeys } from './reading.ts';

export function readCommandLine(options: ReadConfigOptions): ReadConfig {
  const commandLine = options.commandLine ?? {};
  const folder = commandLine.state?.folder ?? options.fallbackFolder ?? '';
  const issues: ConfigIssue[] = [];
  const { input, keysFile } = withKeys({ ...commandLine, state: { folder } }, undefined, issues);
  const resolving = { memoryLimitBytes: options.memoryLimitBytes ?? 0 };
  const resolved = resolveConfig(input, resolving);
  if (resolved.kind === 'issues') issues.push(...resolved.issues);
  const files = keysFile === '' ? [] : [keysFile];
  if (resolved.kind === 'issues' || issues.length > 0) {
    return {
      kind: 'issues',
      issues: issues.map((issue) => ({ ...issue, file: COMMAND_LINE, line: 0, column: 0 })),
      files,
      keysFile,
    };
  }
  const config = Object.freeze({ ...resolved.config, nodes: Object.freeze([]) });
  const given = Object.entries(commandLine.server ?? {}).filter(([, value]) => value !== undefined);
  const origins = Object.fromEntries(given.map(([key]) => [`server.${key}`, COMMAND_LINE]));
  const layOver = createLayOver({ input, options: resolving, fileNodes: 0 });
  return {
    kind: 'config',
    config,
    commandLineNodes: resolved.config.nodes,
    keysFile,
    files,
    origins,
    layOver,
  };
}
