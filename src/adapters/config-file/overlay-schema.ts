/** What a stored overlay may say: the schema of the file, without what the file alone says, and named lists also by name. */
import { z } from 'zod';
import {
  type ConfigIssue,
  fileOnlyIn,
  type JsonObject,
  NAMED_LISTS,
  OVERLAY_CHARS_MAX,
  OVERLAY_SECTIONS,
} from '../../core/config/index.ts';
import { configSchema, ENTRY_SCHEMAS } from './schema.ts';
import { schemaIssues } from './schema-issues.ts';

const overlaySchema = createSchema();

function createSchema(): z.ZodType {
  const sections = OVERLAY_SECTIONS.map((name) => [name, configSchema.shape[name] as z.ZodType]);
  const lists = Object.entries(NAMED_LISTS).map(([list, name]): [string, z.ZodType] => {
    const whole = ENTRY_SCHEMAS[list] as z.ZodObject;
    const { [name]: _name, ...members } = whole.partial().shape;
    const byName = z.record(z.string(), z.strictObject(members));
    // A whole list of tenants would take away those who have keys.
    if (list === 'tenants') return [list, byName.optional()];
    return [list, z.union([z.array(whole), byName]).optional()];
  });
  return z.strictObject(Object.fromEntries([...sections, ...lists]));
}

/** Paths in names, since an overlay has no line numbers. Values of what only the file may say are never repeated. */
export function overlayIssues(overlay: JsonObject): readonly ConfigIssue[] {
  const refused = fileOnlyIn(overlay).map(({ path, rule }) => ({ path, rule, received: '' }));
  const chars = JSON.stringify(overlay).length;
  if (chars > OVERLAY_CHARS_MAX) {
    const rule = `Expected an overlay of at most ${OVERLAY_CHARS_MAX} characters; larger changes belong in the file`;
    return [{ path: [], rule, received: String(chars) }];
  }
  const parsed = overlaySchema.safeParse(overlay);
  if (parsed.success) return refused;
  const found = schemaIssues(parsed.error.issues, { schema: overlaySchema, raw: overlay });
  const isRefused = (path: ConfigIssue['path']): boolean =>
    refused.some((one) => one.path.every((name, index) => name === String(path[index])));
  return [...refused, ...found.filter(({ path }) => !isRefused(path))];
}
