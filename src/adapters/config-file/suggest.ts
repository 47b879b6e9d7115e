/** "Did you mean": the known key nearest to a mistyped one. */
import type { z } from 'zod';

/** Most edits between a key and a suggestion, by length of the key: a third of it. */
const EDITS_PER_CHARS = 3;

export function suggestKey(wrong: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.max(2, Math.floor(wrong.length / EDITS_PER_CHARS)) + 1;
  for (const candidate of known) {
    const edits = editDistance(wrong.toLowerCase(), candidate.toLowerCase());
    if (edits < bestEdits) {
      best = candidate;
      bestEdits = edits;
    }
  }
  return best;
}

/** Levenshtein's distance, one row at a time; keys are short. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitution));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

interface SchemaDef {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly element?: z.ZodType;
  readonly innerType?: z.ZodType;
  /** What a transformation begins with. */
  readonly in?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** Keys that a mapping at this path may have, over all arms of a union. */
export function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  const def = schema.def as unknown as SchemaDef;
  const inner = def.innerType ?? def.in;
  if (inner !== undefined) return knownKeys(inner, path);
  if (def.options !== undefined) return def.options.flatMap((option) => knownKeys(option, path));
  const [head, ...rest] = path;
  if (head === undefined) return Object.keys(def.shape ?? {});
  const child = def.shape?.[String(head)] ?? def.element ?? def.valueType;
  return child === undefined ? [] : knownKeys(child, rest);
}
