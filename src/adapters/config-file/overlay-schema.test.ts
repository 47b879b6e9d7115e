import { describe, expect, test } from 'vitest';
import { fileOnlyIn, type JsonObject, NAMED_LISTS, OVERLAY_SECTIONS } from '../../core/config/index.ts';
import { overlayIssues } from './overlay-schema.ts';
import { configJsonSchema, configSchema } from './schema.ts';

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Paths of everything that is free text: what could name a file, an address or a secret. Names and list places are `*`. */
function textPaths(schema: JsonSchema, path: readonly string[]): readonly (readonly string[])[] {
  if (schema.type === 'string' && schema.enum === undefined && schema.const === undefined) return [path];
  const parts = Object.entries(schema.properties ?? {}).map(([name, inner]) => [name, inner] as const);
  const { additionalProperties: named, items } = schema;
  const loose = [items, typeof named === 'object' ? named : undefined].filter((one) => one !== undefined);
  return [
    ...parts.flatMap(([name, inner]) => textPaths(inner, [...path, name])),
    ...loose.flatMap((inner) => textPaths(inner, [...path, '*'])),
    ...[...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((inner) => textPaths(inner, path)),
  ];
}

/** Each was thought about: names of classes, models, tenants and nodes that there are, labels, and words for clients. */
const THOUGHT_ABOUT = [
  'classes.*.name',
  'defaultClass',
  'degrade.classes.*',
  'groups.*.name',
  'groups.*.nodes.ids.*',
  'groups.*.nodes.labels.*',
  'groups.*.reservedFor.models.*',
  'groups.*.reservedFor.tenants.*',
  'groups.*.shares.*.model',
  'groups.*.shares.*.tenant',
  'models.*.aliases.*',
  'models.*.default.chat',
  'models.*.default.completions',
  'models.*.id',
  'models.*.quality.*.name',
  'models.*.quality.*.size',
  'models.*.revision',
  'models.*.variants.*.model',
  'tenants.*.classCeiling',
  'tenants.*.classDefault',
  'tenants.*.id',
];

describe('an overlay', () => {
  test('may hold no text that nobody has thought about: it could be a path, an address or a secret', () => {
    const open = textPaths(configJsonSchema() as JsonSchema, [])
      .filter(([top = '']) => (OVERLAY_SECTIONS as readonly string[]).includes(top))
      .filter((path) => {
        const document = path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), 'x') as JsonObject;
        return fileOnlyIn(document).length === 0;
      });
    expect(open.map((path) => path.join('.')).toSorted()).toEqual(THOUGHT_ABOUT);
  });

  test('is told why, for each section of the file that it may not hold', () => {
    const sections = Object.keys(configSchema.shape);
    const closed = sections.filter((name) => !(OVERLAY_SECTIONS as readonly string[]).includes(name));
    expect(closed.toSorted()).toEqual([
      '$schema',
      'journal',
      'keysFile',
      'nodes',
      'signals',
      'state',
      'tracing',
    ]);
    for (const name of closed) {
      const issues = overlayIssues({ [name]: 'a-value' });
      expect(issues).toEqual([{ path: [name], rule: expect.stringMatching(/^Expected no /), received: '' }]);
    }
  });

  test('may name entries of lists, and give all lists but the tenants as a whole', () => {
    for (const [list, name] of Object.entries(NAMED_LISTS)) {
      const whole = overlayIssues({ [list]: [{ [name]: 'x', ...(list === 'groups' ? { nodes: {} } : {}) }] });
      expect([list, whole.length > 0]).toEqual([list, list === 'tenants']);
      expect(overlayIssues({ [list]: { x: {} } })).toEqual([]);
      expect(overlayIssues({ [list]: { x: { [name]: 'y' } } })).toHaveLength(1);
    }
  });

  test('is bounded', () => {
    const models = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`m${i}`, { off: true }]));
    expect(overlayIssues({ models })).toMatchObject([
      { path: [], rule: expect.stringContaining('at most 65536') },
    ]);
  });
});
