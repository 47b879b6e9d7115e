/** How a variant or `--set` changes a scenario before it is checked: mappings key by key, everything else as a whole. */

/** Keys and indexes from the top. */
export type Path = readonly (string | number)[];

type Mapping = Readonly<Record<string, unknown>>;

export function isMapping(value: unknown): value is Mapping {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** What `over` says wins; null takes a key away, so that its default holds again. */
export function mergeOver(base: unknown, over: unknown): unknown {
  if (!isMapping(over)) return over;
  const merged = new Map<string, unknown>(isMapping(base) ? Object.entries(base) : []);
  for (const [key, value] of Object.entries(over)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergeOver(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/** `streams.users.load` or `faults.0.for`: indexes of lists are numbers. */
export function parsePath(text: string): Path {
  return text.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** A copy with another value at the path; mappings that are not there are made. Null takes a key away. */
export function withValue(base: unknown, path: Path, value: unknown): unknown {
  const [head, ...rest] = path;
  if (head === undefined) return isMapping(base) && isMapping(value) ? mergeOver(base, value) : value;
  if (Array.isArray(base) && typeof head === 'number') {
    const list: unknown[] = [...base];
    list[head] = withValue(list[head], rest, value);
    return list;
  }
  const entries = new Map<string, unknown>(isMapping(base) ? Object.entries(base) : []);
  if (rest.length === 0 && value === null) entries.delete(String(head));
  else entries.set(String(head), withValue(entries.get(String(head)), rest, value));
  return Object.fromEntries(entries);
}
