/**
 * The stored overlay: what operators changed while the gateway runs, on top of the file. It has the shape of the file,
 * but for the lists whose entries have names: there it may also be a mapping by name, which changes the entries that it
 * names and leaves the others, or else a whole list, which stands in for the one of the file.
 *
 *   default < file < overlay < command line
 *
 * Some values are the file's alone: who may come in, which files and addresses are touched, and whose answers are shared.
 * A token that may turn capacity up and down must not reach those.
 */
import { DEFAULT_CLASSES } from './defaults.ts';
import type { ConfigInput } from './input.ts';
import { isJsonObject, type JsonObject, leavesOf, patched } from './merge-patch.ts';

/**
 * What an overlay may hold. A list of what may be, so that a new section of the file is the file's alone until somebody
 * has thought about what it opens.
 */
export const OVERLAY_SECTIONS = [
  'policy',
  'seed',
  'classes',
  'defaultClass',
  'bounds',
  'admission',
  'placement',
  'health',
  'retry',
  'preemption',
  'timeouts',
  'gates',
  'degrade',
  'cache',
  'tenantLimits',
  'ladder',
  'models',
  'tenants',
  'groups',
  'server',
  'survival',
  'idempotency',
  'rum',
] as const;

/** Lists of named entries, and which member is the name. */
export const NAMED_LISTS = { classes: 'name', models: 'id', tenants: 'id', groups: 'name' } as const;
type NamedList = keyof typeof NAMED_LISTS;

/** Text of an overlay as JSON; a hundred versions of it are kept. */
export const OVERLAY_CHARS_MAX = 65_536;

export interface FileOnly {
  /** `*` stands for any name. */
  readonly path: readonly string[];
  readonly rule: string;
}

const KEYS = 'the admin token opens no door for others';
/** Of that, and of what may not be at all, what is refused with a reason of its own. */
export const FILE_ONLY: readonly FileOnly[] = [
  {
    path: ['nodes'],
    rule: 'Expected no nodes here: they come and go over /spillway/v1/nodes, or by the file',
  },
  { path: ['state'], rule: 'Expected no state folder here: it is chosen at start, by file or command line' },
  { path: ['keysFile'], rule: `Expected no file of keys here: ${KEYS}` },
  { path: ['$schema'], rule: 'Expected no $schema here' },
  { path: ['tracing'], rule: 'Expected no tracing here: where spans are sent is said by the file' },
  { path: ['signals'], rule: 'Expected no signals here: how often detectors look is chosen at start' },
  { path: ['journal'], rule: 'Expected no journal here: where it is kept is chosen at start' },
  { path: ['rum', 'originsAllowed'], rule: `Expected no origins here: ${KEYS}` },
  { path: ['server', 'host'], rule: 'Expected no address here: where it listens is chosen at start' },
  { path: ['server', 'port'], rule: 'Expected no port here: where it listens is chosen at start' },
  { path: ['server', 'adminPort'], rule: 'Expected no port here: where it listens is chosen at start' },
  { path: ['server', 'tls'], rule: 'Expected no files here: certificates are named by the file alone' },
  { path: ['tenants', '*', 'keys'], rule: `Expected no keys here: ${KEYS}; use spillway keys` },
  {
    path: ['tenants', '*', 'cachePool'],
    rule: 'Expected no pool here: who shares answers is said by the file',
  },
];

/** The values of a patch or overlay that only the file may say; a null among them counts as well. */
export function fileOnlyIn(document: JsonObject): readonly FileOnly[] {
  return FILE_ONLY.flatMap(({ path, rule }) =>
    matches(document, path).map((found) => ({ path: found, rule })),
  );
}

function matches(value: unknown, [head, ...rest]: readonly string[]): readonly (readonly string[])[] {
  if (head === undefined) return [[]];
  if (value === null || typeof value !== 'object') return [];
  const names = head === '*' ? Object.keys(value) : Object.hasOwn(value, head) ? [head] : [];
  return names.flatMap((name) => matches((value as JsonObject)[name], rest).map((inner) => [name, ...inner]));
}

export interface Applied {
  readonly input: ConfigInput;
  /** Entries that the overlay names and nobody else does: they do nothing until there is such an entry. */
  readonly dormant: readonly (readonly string[])[];
}

/** The overlay has been checked against its schema. A model of a new name is added; other entries must exist. */
export function applyOverlay(input: ConfigInput, overlay: JsonObject): Applied {
  const dormant: (readonly string[])[] = [];
  const changed = Object.entries(overlay).map(([key, value]): [string, unknown] => {
    const before = (input as JsonObject)[key];
    if (!Object.hasOwn(NAMED_LISTS, key) || !isJsonObject(value)) return [key, over(before, value)];
    const list = key as NamedList;
    const entries = entriesOf(list, before);
    const known = new Set(entries.map((entry) => entry?.[NAMED_LISTS[list]]));
    const merged = entries.map((entry) => mergeEntry(list, entry, value));
    for (const [name, entry] of Object.entries(value)) {
      if (known.has(name)) continue;
      if (list === 'models') merged.push({ ...(entry as JsonObject), id: name });
      else dormant.push([list, name]);
    }
    return [key, merged];
  });
  return { input: { ...input, ...Object.fromEntries(changed) } as ConfigInput, dormant };
}

/** What a file without classes means by them. */
function entriesOf(list: NamedList, before: unknown): readonly (JsonObject | undefined)[] {
  if (Array.isArray(before)) return before as readonly (JsonObject | undefined)[];
  return list === 'classes' ? DEFAULT_CLASSES.map(({ name }) => ({ name })) : [];
}

function mergeEntry(
  list: NamedList,
  entry: JsonObject | undefined,
  overlay: JsonObject,
): JsonObject | undefined {
  const name = entry?.[NAMED_LISTS[list]];
  if (entry === undefined || typeof name !== 'string' || !Object.hasOwn(overlay, name)) return entry;
  const change = overlay[name] as JsonObject;
  // A profile is of one kind: members of another kind must not remain.
  const base = change['profile'] === undefined ? entry : { ...entry, profile: {} };
  return over(base, change) as JsonObject;
}

/** Mappings go member by member, also where a member of the file is undefined. */
function over(before: unknown, value: unknown): unknown {
  return isJsonObject(before) && isJsonObject(value) ? patched(before, value) : value;
}

/** In which version each value of an overlay was set: the one before, or for what differs the new one. */
export function versionsOf(
  overlay: JsonObject,
  before: { readonly overlay: JsonObject; readonly setIn: Readonly<Record<string, number>> },
  version: number,
): Record<string, number> {
  const known = new Map(leavesOf(before.overlay).map(([path, value]) => [path.join('\0'), value]));
  return Object.fromEntries(
    leavesOf(overlay).map(([path, value]) => {
      const same = JSON.stringify(known.get(path.join('\0'))) === JSON.stringify(value);
      const text = pathOfNames(path);
      return [text, same ? (before.setIn[text] ?? version) : version];
    }),
  );
}

const PLAIN = /^[A-Za-z_][\w-]*$/;

/** `classes.critical.weight`; a name with other characters in brackets, `models[llama-3.1:8b].off`. */
export function pathOfNames(path: readonly (string | number)[]): string {
  let text = '';
  for (const part of path) {
    const name = String(part);
    if (PLAIN.test(name)) text += text === '' ? name : `.${name}`;
    else text += /[\]"\\]|^$|[\p{Cc}]/u.test(name) ? `[${JSON.stringify(name)}]` : `[${name}]`;
  }
  return text;
}

/** The same backwards; undefined when it is no such path. */
export function namesOfPath(text: string): readonly string[] | undefined {
  const step = /\.?([A-Za-z_$][\w-]*)|\[("(?:[^"\\]|\\.)*")\]|\[([^\]"]+)\]/y;
  const names: string[] = [];
  while (step.lastIndex < text.length) {
    const isFirst = step.lastIndex === 0;
    const match = step.exec(text);
    if (match === null || (isFirst && text.startsWith('.'))) return undefined;
    const [, plain, quoted, bracketed] = match;
    names.push(quoted === undefined ? (plain ?? bracketed ?? '') : unquoted(quoted));
  }
  return names.length === 0 ? undefined : names;
}

function unquoted(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}
