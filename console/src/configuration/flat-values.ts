/** The configuration as rows of path and value, so that it can be searched. */

export interface FlatValue {
  readonly path: string;
  readonly value: unknown;
}

/** Leaves only; an empty list or object is a leaf. */
export function flatValues(value: unknown, path = ''): readonly FlatValue[] {
  if (typeof value !== 'object' || value === null) return [{ path, value }];
  const parts = Array.isArray(value)
    ? value.map((part, i): [string, unknown] => [`${path}[${i}]`, part])
    : Object.entries(value).map(([key, part]): [string, unknown] => [
        path === '' ? key : `${path}.${key}`,
        part,
      ]);
  return parts.length === 0 ? [{ path, value }] : parts.flatMap(([name, part]) => flatValues(part, name));
}
