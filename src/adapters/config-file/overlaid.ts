/** The stored overlay on top of what file and command line say: resolved anew, with the origin of each of its values. */
import {
  applyOverlay,
  type Applied,
  type ConfigInput,
  type ConfigIssue,
  type GatewayConfig,
  type JsonObject,
  NAMED_LISTS,
  resolveConfig,
  type ResolveOptions,
} from '../../core/config/index.ts';
import type { LocatedIssue } from './issue-text.ts';

export type Overlaid =
  | { readonly kind: 'config'; readonly config: GatewayConfig; readonly dormant: Applied['dormant'] }
  | { readonly kind: 'issues'; readonly issues: readonly ConfigIssue[] };

/** Lays an overlay that fits its schema over a configuration that is valid without it. */
export type LayOver = (overlay: JsonObject) => Overlaid;

export interface Layer {
  readonly input: ConfigInput;
  readonly options: ResolveOptions;
  /** Nodes of the file come first; those of the command line are not part of the configuration. */
  readonly fileNodes: number;
}

export function createLayOver({ input, options, fileNodes }: Layer): LayOver {
  return (overlay) => {
    const applied = applyOverlay(input, overlay);
    const resolved = resolveConfig(applied.input, options);
    if (resolved.kind === 'issues')
      return { kind: 'issues', issues: resolved.issues.map((issue) => byName(issue, applied.input)) };
    const nodes = Object.freeze(resolved.config.nodes.slice(0, fileNodes));
    return { kind: 'config', config: Object.freeze({ ...resolved.config, nodes }), dormant: applied.dormant };
  };
}

/** Entries of a named list by their name: an overlay knows no positions. */
function byName(issue: ConfigIssue, input: ConfigInput): ConfigIssue {
  const [list, index, ...rest] = issue.path;
  if (typeof index !== 'number' || !Object.hasOwn(NAMED_LISTS, String(list))) return issue;
  const entries = (input as JsonObject)[String(list)] as readonly JsonObject[];
  const name = entries[index]?.[NAMED_LISTS[list as keyof typeof NAMED_LISTS]];
  return typeof name === 'string' ? { ...issue, path: [list as string, name, ...rest] } : issue;
}

/** `overlay (version 3)` for each value of the overlay; what stood there before is another value's origin. */
export function overlayOrigins(
  origins: Readonly<Record<string, string>>,
  { setIn }: { readonly setIn: Readonly<Record<string, number>> },
): Readonly<Record<string, string>> {
  const own = Object.entries(setIn).map(([path, version]) => [path, `overlay (version ${version})`]);
  return { ...origins, ...Object.fromEntries(own) };
}

/** Where an overlay stands has no line; its version leads to who set it. */
export function locatedInOverlay(issues: readonly ConfigIssue[], version: number): readonly LocatedIssue[] {
  return issues.map((issue) => ({ ...issue, file: `overlay (version ${version})`, line: 0, column: 0 }));
}
