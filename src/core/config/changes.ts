/**
 * What differs between two configurations, in the paths of the file: `bounds.tasksMax`, `classes.critical.weight`. Only
 * what an overlay may hold is compared: the rest changes by the file alone, and some of it is secret.
 */
import { isJsonObject, type JsonObject } from './merge-patch.ts';
import { NAMED_LISTS, OVERLAY_SECTIONS, pathOfNames } from './overlay.ts';
import type { GatewayConfig } from './types.ts';

export interface ConfigDifference {
  readonly path: string;
  /** Null: there is none. */
  readonly from: unknown;
  readonly to: unknown;
}

/** More are counted, not told. */
export const DIFFERENCES_MAX = 200;
/** A longer list or text is told by its size. */
const VALUE_CHARS_MAX = 400;

export interface ConfigDifferences {
  /** In the order of the configuration, at most `DIFFERENCES_MAX`. */
  readonly changed: readonly ConfigDifference[];
  readonly total: number;
}

export function configDifferences(before: GatewayConfig, after: GatewayConfig): ConfigDifferences {
  const changed: ConfigDifference[] = [];
  let total = 0;
  compare([], overlaid(before), overlaid(after), (path, from, to) => {
    total += 1;
    if (changed.length < DIFFERENCES_MAX)
      changed.push({ path: pathOfNames(path), from: told(from), to: told(to) });
  });
  return { changed, total };
}

function fileShape({ scheduler, nodes: _nodes, tenants, ...rest }: GatewayConfig): JsonObject {
  const { tenantWeights: _weights, tenantLimitsOwn: _limits, ...sections } = scheduler;
  return { ...sections, ...rest, tenants: tenants.map(({ keys: _keys, ...tenant }) => tenant) };
}

function overlaid(config: GatewayConfig): JsonObject {
  const shape = fileShape(config);
  return Object.fromEntries(OVERLAY_SECTIONS.map((name) => [name, shape[name]]));
}

type Visit = (path: readonly string[], from: unknown, to: unknown) => void;

function compare(path: readonly string[], from: unknown, to: unknown, visit: Visit): void {
  if (from === to) return;
  if (isJsonObject(from) && isJsonObject(to)) return compareMembers(path, [from, to], visit);
  const [head, inside] = path;
  const name = inside === undefined && head !== undefined ? nameOf(head) : undefined;
  if (name !== undefined && Array.isArray(from) && Array.isArray(to))
    return compareEntries(path, [from, to, name], visit);
  if (JSON.stringify(from) !== JSON.stringify(to)) visit(path, from, to);
}

function compareMembers(
  path: readonly string[],
  [from, to]: readonly [JsonObject, JsonObject],
  visit: Visit,
): void {
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)]))
    compare([...path, key], from[key], to[key], visit);
}

function nameOf(list: string): string | undefined {
  return Object.hasOwn(NAMED_LISTS, list) ? NAMED_LISTS[list as keyof typeof NAMED_LISTS] : undefined;
}

/** By name; where the names or their order differ, that is a difference of the list. */
function compareEntries(
  path: readonly string[],
  [from, to, name]: readonly [readonly JsonObject[], readonly JsonObject[], string],
  visit: Visit,
): void {
  const names = (list: readonly JsonObject[]): readonly unknown[] => list.map((entry) => entry[name]);
  compare([...path, ''], names(from), names(to), (_path, a, b) => visit(path, a, b));
  const known = new Map(from.map((entry) => [entry[name], entry]));
  for (const entry of to) {
    const own = String(entry[name]);
    // Of a new entry its values are told as well, without its name: that is in the path.
    compare([...path, own], known.get(entry[name]) ?? { [name]: own }, entry, visit);
  }
}

function told(value: unknown): unknown {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  if (text.length <= VALUE_CHARS_MAX) return value;
  return Array.isArray(value) ? `a list of ${value.length}` : `${text.slice(0, VALUE_CHARS_MAX - 1)}…`;
}

export interface ConfigValue {
  readonly names: readonly string[];
  readonly path: string;
  readonly value: unknown;
}

/** Each value of a configuration as the admin plane tells it, in the paths of the file, without keys and nodes. */
export function configValues(config: GatewayConfig): readonly ConfigValue[] {
  const values: ConfigValue[] = [];
  visitValues([], fileShape(config), (names, value) =>
    values.push({ names, path: pathOfNames(names), value }),
  );
  return values;
}

function visitValues(
  path: readonly string[],
  value: unknown,
  visit: (names: readonly string[], value: unknown) => void,
): void {
  const name = path.length === 1 ? nameOf(path[0] as string) : undefined;
  if (name !== undefined && Array.isArray(value)) {
    for (const { [name]: own, ...entry } of value as readonly JsonObject[])
      visitValues([...path, String(own)], entry, visit);
  } else if (isJsonObject(value)) {
    for (const [key, inner] of Object.entries(value)) visitValues([...path, key], inner, visit);
  } else if (value !== undefined) visit(path, value);
}
