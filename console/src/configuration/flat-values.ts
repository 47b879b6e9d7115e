/**
 * The configuration as rows of path and value, so that it can be searched. Paths are those that `spillway config set`
 * takes: entries of named lists go by their name, and what the scheduler reads lies at the top, as it does in the file.
 */

export interface FlatValue {
  readonly path: string;
  readonly value: unknown;
  readonly origin: string;
}

const SCHEDULER = 'scheduler';
const PLAIN = /^[A-Za-z_][\w-]*$/;

type Path = readonly string[];

/** Leaves only; an empty list or object is a leaf. */
export function flatValues(config: unknown, origins: Readonly<Record<string, string>>): readonly FlatValue[] {
  return leavesOf(config, []).map(({ path, value }) => ({
    path: pathText(path),
    value,
    origin: originOf(path, origins),
  }));
}

function leavesOf(value: unknown, path: Path): readonly { readonly path: Path; readonly value: unknown }[] {
  if (typeof value !== 'object' || value === null) return [{ path, value }];
  const parts = Array.isArray(value)
    ? value.map((part, i): [string, unknown] => [nameOf(part) ?? String(i), part])
    : Object.entries(value);
  if (parts.length === 0) return [{ path, value }];
  return parts.flatMap(([name, part]) => {
    const isTop = path.length === 0 && name === SCHEDULER;
    return leavesOf(part, isTop ? path : [...path, name]);
  });
}

function nameOf(entry: unknown): string | undefined {
  if (typeof entry !== 'object' || entry === null) return undefined;
  const { name, id } = entry as { name?: unknown; id?: unknown };
  return typeof name === 'string' ? name : typeof id === 'string' ? id : undefined;
}

/** `classes.critical.weight`; a name with other characters in brackets. */
function pathText(path: Path): string {
  return path.reduce(
    (text, name) => text + (PLAIN.test(name) ? `${text === '' ? '' : '.'}${name}` : `[${name}]`),
    '',
  );
}

/** Of the value itself, or of the nearest part that it was given with. */
function originOf(path: Path, origins: Readonly<Record<string, string>>): string {
  for (let length = path.length; length > 0; length--) {
    const origin = origins[pathText(path.slice(0, length))];
    if (origin !== undefined) return origin;
  }
  return 'default';
}
