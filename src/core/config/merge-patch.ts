/**
 * JSON Merge Patch: a mapping changes what it names, null takes a member away, everything else replaces. Two rules of our
 * own: a mapping that ends up empty is taken away as well, since it says nothing, and a patch nests at most so deep.
 *
 *   patched(patched(a, p), inverse of p for a) = a        for every a without nulls and empty mappings
 *
 * Source: RFC 7396.
 */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Deeper than any part of a configuration. */
export const PATCH_DEPTH_MAX = 10;

export function isJsonObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** The patched document, without empty mappings; the arguments stay as they are. The patch nests at most `PATCH_DEPTH_MAX` deep. */
export function patched(document: JsonObject, patch: JsonObject): JsonObject {
  // From entries, never by assignment: a member named __proto__ is a member like any other.
  const members = new Map<string, unknown>(Object.entries(document));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else if (!isJsonObject(value)) members.set(name, value);
    else {
      const before = members.get(name);
      const inner = patched(isJsonObject(before) ? before : {}, value);
      if (Object.keys(inner).length > 0) members.set(name, inner);
      else members.delete(name);
    }
  }
  return Object.fromEntries(members);
}

/** How deep mappings and lists lie in each other; counting ends where it exceeds the bound. */
export function depthOf(value: unknown, most: number = PATCH_DEPTH_MAX): number {
  if (value === null || typeof value !== 'object') return 0;
  if (most === 0) return 1;
  let deepest = 0;
  for (const inner of Object.values(value)) deepest = Math.max(deepest, depthOf(inner, most - 1));
  return deepest + 1;
}

/** Each value that a document holds, with its path; a list is one value. */
export function leavesOf(document: JsonObject): [path: string[], value: unknown][] {
  return Object.entries(document).flatMap(([name, value]): [string[], unknown][] =>
    isJsonObject(value) ? leavesOf(value).map(([path, leaf]) => [[name, ...path], leaf]) : [[[name], value]],
  );
}
