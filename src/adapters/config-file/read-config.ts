/**
 * A configuration file in, a resolved configuration out, or every problem with file, line and column. The same road
 * serves the start, `spillway check` and live reload.
 */
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { type ConfigInput, type ConfigIssue, receivedText, resolveConfig } from '../../core/config/index.ts';
import type { FileConfig } from './file-types.ts';
import { createLayOver } from './overlaid.ts';
import { COMMAND_LINE, type ReadConfig, type ReadConfigOptions, withKeys } from './reading.ts';
import type { LocatedIssue } from './issue-text.ts';
import { loadYaml } from './load-yaml.ts';
import type { Locate } from './locate.ts';
import { configSchema, ENTRY_SCHEMAS } from './schema.ts';
import { createSecretReader, readNode, readTenant, readTracing, type SecretReader } from './secrets.ts';
import { type PathIssue, schemaIssues, valueAt } from './schema-issues.ts';
import { tlsPairIssue } from './tls-pair.ts';

/** `spillway serve` without a file goes through `readCommandLine`, which loads neither YAML nor the schema. */
export function readConfig(options: ReadConfigOptions & { readonly file: string }): ReadConfig {
  const file = options.file;
  const loaded = loadYaml(file);
  if (loaded.issues.length > 0) return { kind: 'issues', issues: loaded.issues, files: [file], keysFile: '' };
  const parsed = parse(loaded.raw);
  const issues: PathIssue[] = [...parsed.issues];
  const folder = dirname(resolve(file));
  const secrets = createSecretReader({
    folder,
    environment: options.environment,
    report: (path, rule, received) =>
      issues.push({ path, rule, received: received === undefined ? '' : receivedText(received) }),
  });
  const input = merge(
    { ...fromFile(parsed.value, secrets), state: stateOf(parsed.value, folder, options) },
    options.commandLine ?? {},
  );
  const named = parsed.value.keysFile;
  const keysFile = named === undefined ? undefined : secrets.filePath(named, ['keysFile']);
  issues.push(...tlsIssues(input.server?.tls, parsed.value.server?.tls, issues));
  const keys = withKeys(input, keysFile, issues);
  const resolving = { memoryLimitBytes: options.memoryLimitBytes ?? 0 };
  const resolved = resolveConfig(keys.input, resolving);
  const broken = new Set(parsed.issues.map((issue) => issue.path[0]));
  if (resolved.kind === 'issues') {
    issues.push(
      ...resolved.issues.filter((issue) => issue.refersTo === undefined || !broken.has(issue.refersTo)),
    );
  }
  const files = [file, ...secrets.files, ...(keys.keysFile === '' ? [] : [keys.keysFile])];
  if (issues.length > 0 || resolved.kind === 'issues') {
    const fileNodes = parsed.value.nodes?.length ?? 0;
    const place = placeOf(file, loaded.locate, options.commandLine ?? {}, fileNodes);
    return { kind: 'issues', issues: sortByPlace(issues.map(place)), files, keysFile: keys.keysFile };
  }
  const origins = originsOf(parsed.value, options.commandLine ?? {}, file, loaded.locate);
  const { nodes } = resolved.config;
  const own = parsed.value.nodes?.length ?? 0;
  const config = Object.freeze({ ...resolved.config, nodes: Object.freeze(nodes.slice(0, own)) });
  const layOver = createLayOver({ input: keys.input, options: resolving, fileNodes: own });
  const { keysFile: keysPath } = keys;
  return {
    kind: 'config',
    config,
    commandLineNodes: nodes.slice(own),
    keysFile: keysPath,
    files,
    origins,
    layOver,
  };
}

interface Parsed {
  readonly value: FileConfig;
  readonly issues: readonly PathIssue[];
}

function parse(raw: unknown): Parsed {
  const result = configSchema.safeParse(raw);
  if (result.success) return { value: result.data as unknown as FileConfig, issues: [] };
  const issues = schemaIssues(result.error.issues, { schema: configSchema, raw, isSecret: isSecretPath });
  return { value: withoutBroken(raw, result.error.issues), issues };
}

/** What somebody may have typed in place of a reference to a secret must not be repeated. */
function isSecretPath(path: readonly (string | number)[]): boolean {
  if (path[0] === 'tracing') return path[1] === 'headers';
  return path[0] === 'nodes'
    ? path[2] === 'key' || path[2] === 'headers'
    : path[0] === 'tenants' && path[2] === 'keys';
}

/** Drops what did not parse, entry by entry, so that the rest is still checked. */
function withoutBroken(raw: unknown, issues: readonly z.core.$ZodIssue[]): FileConfig {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return {};
  const broken = new Set(issues.flatMap(brokenPlaces));
  const kept = Object.entries(raw).map(([name, value]): [string, unknown] => {
    if (broken.has(name)) return [name, undefined];
    if (Object.hasOwn(ENTRY_SCHEMAS, name) && Array.isArray(value)) {
      return [
        name,
        value.map((entry: unknown, index) => (broken.has(`${name}.${index}`) ? undefined : entry)),
      ];
    }
    if (value === null || typeof value !== 'object') return [name, value];
    return [name, Object.fromEntries(Object.entries(value).filter(([key]) => !broken.has(`${name}.${key}`)))];
  });
  return Object.fromEntries(kept);
}

function brokenPlaces(issue: z.core.$ZodIssue): string[] {
  const place = issue.path.slice(0, 2).map(String);
  if (issue.code !== 'unrecognized_keys' || place.length === 2) return [place.join('.')];
  return issue.keys.map((key) => [...place, key].join('.'));
}

function fromFile(value: FileConfig, secrets: SecretReader): ConfigInput {
  const { keysFile: _keysFile, state: _state, tenants, nodes, server, tracing, ...rest } = value;
  const tls = server?.tls;
  return {
    ...rest,
    ...(tracing === undefined ? {} : { tracing: readTracing(tracing, secrets) }),
    ...(tenants === undefined
      ? {}
      : {
          tenants: tenants.map((entry, i) =>
            entry === undefined ? undefined : readTenant(entry, i, secrets),
          ),
        }),
    ...(nodes === undefined
      ? {}
      : { nodes: nodes.map((entry, i) => (entry === undefined ? undefined : readNode(entry, i, secrets))) }),
    ...(server === undefined
      ? {}
      : { server: { ...server, ...(tls === undefined ? {} : { tls: tlsFiles(tls, secrets) }) } }),
  };
}

/** An empty folder is a choice: everything stays in memory. */
function stateOf(value: FileConfig, base: string, options: ReadConfigOptions): { readonly folder?: string } {
  const named = value.state?.folder;
  if (named !== undefined) return { folder: named === '' ? '' : resolve(base, named) };
  return options.fallbackFolder === undefined ? {} : { folder: options.fallbackFolder };
}

function tlsFiles(tls: { cert: string; key: string }, secrets: SecretReader): { cert: string; key: string } {
  return {
    cert: secrets.filePath(tls.cert, ['server', 'tls', 'cert']),
    key: secrets.filePath(tls.key, ['server', 'tls', 'key']),
  };
}

/** Whether the two files belong together, once each of them could be read. */
function tlsIssues(
  files: { readonly cert: string; readonly key: string } | undefined,
  named: { readonly cert: string; readonly key: string } | undefined,
  before: readonly ConfigIssue[],
): readonly ConfigIssue[] {
  if (files === undefined || named === undefined || before.some(({ path }) => path[1] === 'tls')) return [];
  const issue = tlsPairIssue(files);
  if (issue === undefined) return [];
  const { part, rule } = issue;
  return [{ path: ['server', 'tls', part], rule, received: receivedText(named[part]) }];
}

function merge(file: ConfigInput, commandLine: ConfigInput): ConfigInput {
  return {
    ...file,
    ...commandLine,
    server: { ...file.server, ...commandLine.server },
    state: { ...file.state, ...commandLine.state },
    nodes: [...(file.nodes ?? []), ...(commandLine.nodes ?? [])],
  };
}

type Place = (issue: PathIssue) => LocatedIssue;

function placeOf(file: string, locate: Locate, commandLine: ConfigInput, fileNodes: number): Place {
  return ({ isKey = false, ...issue }) => {
    const [head, second] = issue.path;
    const isNodeAdded = head === 'nodes' && typeof second === 'number' && second >= fileNodes;
    const isGiven = head !== undefined && head !== 'nodes' && valueAt(commandLine, issue.path) !== undefined;
    if (isNodeAdded || isGiven) return { ...issue, file: COMMAND_LINE, line: 0, column: 0 };
    return { ...issue, file, ...locate(issue.path, isKey) };
  };
}

function sortByPlace(issues: readonly LocatedIssue[]): readonly LocatedIssue[] {
  return issues.toSorted((a, b) => a.line - b.line || a.column - b.column);
}

function originsOf(
  value: FileConfig,
  commandLine: ConfigInput,
  file: string,
  locate: Locate,
): Record<string, string> {
  const origins: Record<string, string> = {};
  const note = (source: object, origin: (path: readonly string[]) => string): void => {
    for (const [name, part] of Object.entries(source)) {
      if (part === undefined) continue;
      const isSection = part !== null && typeof part === 'object' && !Array.isArray(part);
      const paths = isSection ? Object.keys(part as object).map((key) => [name, key]) : [[name]];
      for (const path of paths) origins[path.join('.')] = origin(path);
    }
  };
  note(value, (path) => `${file}:${locate(path).line}`);
  note(commandLine, () => COMMAND_LINE);
  return origins;
}
