/**
 * The direction of imports inside `src`: apps → edge → runtime → ports → core → base, adapters → ports, simulator → core,
 * emulator → hardware → base.
 * Reads import statements, not types: an import of a type is a dependency too.
 */
import { dirname, join } from 'node:path/posix';
import type { Finding, SourceFile } from './source-files.ts';

/** Which layers each layer may import, besides itself. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  core: ['base'],
  ports: ['core', 'base'],
  runtime: ['ports', 'core', 'base'],
  edge: ['runtime', 'ports', 'core', 'base'],
  adapters: ['ports', 'core', 'base'],
  hardware: ['base'],
  simulator: ['core', 'hardware', 'base'],
  // Plays foreign servers: it must not share the gateway's code, or both would share its mistakes.
  emulator: ['hardware', 'base'],
  apps: ['edge', 'runtime', 'adapters', 'simulator', 'emulator', 'hardware', 'ports', 'core', 'base'],
};

/** Their folders are strangers to one another. */
const SEPARATE_FOLDERS: ReadonlySet<string> = new Set(['adapters']);
/** No package and no module of the platform. */
const PURE_LAYERS: ReadonlySet<string> = new Set(['base', 'core', 'hardware']);

export interface ImportStatement {
  readonly specifier: string;
  readonly typeOnly: boolean;
  readonly line: number;
}

const IMPORT =
  /^\s*(?:import|export)\s+(?<type>type\s+)?(?:[^'";]*?\sfrom\s+)?['"](?<from>[^'"]+)['"]|\bimport\(\s*['"](?<dynamic>[^'"]+)['"]/gm;

export function importsOf(text: string): readonly ImportStatement[] {
  const code = blankComments(text);
  return [...code.matchAll(IMPORT)].map((match) => ({
    specifier: match.groups?.['from'] ?? match.groups?.['dynamic'] ?? '',
    typeOnly: match.groups?.['type'] !== undefined,
    line: code.slice(0, match.index + match[0].length).split('\n').length,
  }));
}

const STRING_OR_COMMENT =
  /(?<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/.*$/gm;

/** Comments become empty, their line breaks stay; strings are kept, also those that hold what looks like a comment. */
function blankComments(text: string): string {
  return text.replaceAll(STRING_OR_COMMENT, (found, string: string | undefined) =>
    string === undefined ? found.replaceAll(/[^\n]/g, '') : found,
  );
}

interface Place {
  readonly layer: string;
  /** The folder below the layer; empty for a file directly in it. */
  readonly folder: string;
}

function placeOf(path: string): Place {
  const [, layer = '', folder = '', ...rest] = path.split('/');
  return { layer, folder: rest.length > 0 ? folder : '' };
}

/** Fails when `files` holds nothing of `src`: a check that looked at nothing proves nothing. */
export function checkLayers(files: readonly SourceFile[]): readonly Finding[] {
  const sources = files.filter((file) => file.path.startsWith('src/') && file.path.endsWith('.ts'));
  if (sources.length === 0) return [{ path: 'src', line: 0, rule: 'no source file was seen' }];
  const known = new Set(files.map((file) => file.path));
  return sources.flatMap((file) => checkFile(file, known));
}

function checkFile(file: SourceFile, known: ReadonlySet<string>): readonly Finding[] {
  const from = placeOf(file.path);
  if (ALLOWED[from.layer] === undefined) {
    return [
      {
        path: file.path,
        line: 0,
        rule: `src/${from.layer} is no layer: add it to the check with its direction`,
      },
    ];
  }
  const isTest = file.path.endsWith('.test.ts');
  return importsOf(file.text).flatMap((statement) => {
    const rule = isTest
      ? testRule(from, file.path, statement)
      : ruleBroken(from, file.path, statement, known);
    return rule === undefined ? [] : [{ path: file.path, line: statement.line, rule }];
  });
}

function ruleBroken(
  from: Place,
  path: string,
  statement: ImportStatement,
  known: ReadonlySet<string>,
): string | undefined {
  const { specifier } = statement;
  if (!specifier.startsWith('.')) {
    return PURE_LAYERS.has(from.layer)
      ? `${from.layer} imports no package and no platform: ${specifier}`
      : undefined;
  }
  const target = join(dirname(path), specifier);
  if (!target.startsWith('src/')) return `src imports nothing outside of src: ${specifier}`;
  if (target.endsWith('.test.ts')) return `a test is imported by what it tests: ${specifier}`;
  const to = placeOf(target);
  return directionBroken(from, to) ?? indexBypassed({ from, to, target, statement, known });
}

function directionBroken(from: Place, to: Place): string | undefined {
  if (from.layer !== to.layer) {
    return ALLOWED[from.layer]?.includes(to.layer) === true
      ? undefined
      : `${from.layer} must not import ${to.layer}`;
  }
  if (SEPARATE_FOLDERS.has(from.layer) && from.folder !== to.folder) {
    return `${from.layer} never import each other: ${from.folder} imports ${to.folder}`;
  }
  return undefined;
}

/**
 * From outside, a core folder's values come from its index, and a folder without one is core's own affair. Types may be
 * named where they are declared, which keeps cycles out; inside core the folders compose one another directly.
 */
function indexBypassed(use: {
  readonly from: Place;
  readonly to: Place;
  readonly target: string;
  readonly statement: ImportStatement;
  readonly known: ReadonlySet<string>;
}): string | undefined {
  const { from, to } = use;
  if (from.layer === 'core' || to.layer !== 'core' || to.folder === '' || use.statement.typeOnly) {
    return undefined;
  }
  const index = `src/core/${to.folder}/index.ts`;
  if (use.target === index) return undefined;
  return use.known.has(index)
    ? `core/${to.folder} is entered through its index.ts`
    : `core/${to.folder} has no index.ts: it is not entered from outside`;
}

/** Their tests may stand on an adapter, such as the one that keeps everything in memory. */
const TESTED_ON_ADAPTERS: ReadonlySet<string> = new Set(['runtime', 'edge']);

/** Tests may use packages and what lies outside of src, but never reach up to a higher layer. */
function testRule(from: Place, path: string, statement: ImportStatement): string | undefined {
  if (!statement.specifier.startsWith('.')) return undefined;
  const target = join(dirname(path), statement.specifier);
  if (!target.startsWith('src/')) return undefined;
  const to = placeOf(target);
  if (to.layer === 'adapters' && TESTED_ON_ADAPTERS.has(from.layer)) return undefined;
  return directionBroken(from, to);
}
