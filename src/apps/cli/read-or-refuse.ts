/** Reads a configuration for a command; issues go to standard error one a line, and the exit code is 2. */
import {
  issueText,
  locatedInOverlay,
  openOverlayStore,
  type OverlayStore,
  type ReadConfig,
  type ReadConfigOptions,
  readCommandLine,
} from '../../adapters/config-file/index.ts';
import { type GatewayConfig, pathOfNames } from '../../core/config/index.ts';
import { CliError, USAGE } from './exit.ts';
import { sayJson } from './output.ts';

export type GoodConfig = Extract<ReadConfig, { kind: 'config' }>;
type Issues = Extract<ReadConfig, { kind: 'issues' }>['issues'];

/** YAML and the schema take a tenth of a second to load, so only a file loads them. */
export async function reading(source: ReadConfigOptions): Promise<() => ReadConfig> {
  const { file } = source;
  if (file === undefined) return () => readCommandLine(source);
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

export interface WithOverlay {
  readonly overlays: OverlayStore;
  readonly config: GatewayConfig;
  /** Paths of the overlay that nobody names any more, as text. */
  readonly dormant: readonly string[];
}

/** What an earlier run was told over the admin plane, on top. The schema is loaded only where there is something to check. */
export async function withStoredOverlay(
  read: GoodConfig,
  output: { readonly json: boolean },
): Promise<WithOverlay> {
  const opened = openOverlayStore(read.config.state.folder);
  const advice = 'move it away to start without what was changed while a gateway ran';
  if (opened.kind === 'refused')
    throw new CliError(`Cannot use ${opened.file}: ${opened.rule}; ${advice}`, USAGE);
  const overlays = opened.store;
  const { overlay, version } = overlays.state;
  if (Object.keys(overlay).length === 0) return { overlays, config: read.config, dormant: [] };
  const { overlayIssues } = await import('../../adapters/config-file/overlay-schema.ts');
  const broken = overlayIssues(overlay);
  const over = broken.length > 0 ? ({ kind: 'issues', issues: broken } as const) : read.layOver(overlay);
  if (over.kind === 'issues') return refuseIssues(locatedInOverlay(over.issues, version), output);
  return { overlays, config: over.config, dormant: over.dormant.map(pathOfNames) };
}
