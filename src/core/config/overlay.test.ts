import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { resolveConfig } from './resolve.ts';
import { configDifferences, DIFFERENCES_MAX } from './changes.ts';
import type { ConfigInput } from './input.ts';
import { depthOf, type JsonObject, leavesOf, PATCH_DEPTH_MAX, patched } from './merge-patch.ts';
import { applyOverlay, fileOnlyIn, namesOfPath, pathOfNames, versionsOf } from './overlay.ts';
import type { GatewayConfig } from './types.ts';

const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
const name = fc.oneof(
  fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor'),
  fc.string({ maxLength: 4 }),
);
const { document } = fc.letrec<{ document: Record<string, unknown> }>((tie) => ({
  document: fc
    .array(fc.tuple(name, fc.oneof({ depthSize: 'small', maxDepth: 4 }, leaf, tie('document'))), {
      maxLength: 4,
    })
    .map((entries) => Object.fromEntries(entries)),
}));
/** Without empty mappings, as every stored overlay is. */
const overlayDocument = document.map((value) => patched({}, value));

function config(input: ConfigInput): GatewayConfig {
  const resolved = resolveConfig(input);
  if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
  return resolved.config;
}

describe('patched', () => {
  test.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  ])('does what RFC 7396 says of %j with %j', (before, patch, after) => {
    expect(patched(before as JsonObject, patch as JsonObject)).toEqual(after);
  });

  test('takes away a mapping that ends up empty', () => {
    expect(patched({ a: { b: { c: 1 } }, d: 2 }, { a: { b: { c: null } } })).toEqual({ d: 2 });
    expect(patched({}, { a: {} })).toEqual({});
  });

  test('makes every leaf of the patch a leaf of the document, and leaves the rest', () => {
    fc.assert(
      fc.property(overlayDocument, overlayDocument, (before, patch) => {
        const after = new Map(
          leavesOf(patched(before, patch)).map(([path, value]) => [path.join('\0'), value]),
        );
        for (const [path, value] of leavesOf(patch)) expect(after.get(path.join('\0'))).toEqual(value);
        expect(patched(before, {})).toEqual(before);
        expect(patched(patched(before, patch), patch)).toEqual(patched(before, patch));
      }),
    );
  });

  test('never reaches a prototype', () => {
    const patch = JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}');
    const after = patched({}, patch);
    expect(Object.getPrototypeOf(after)).toBe(Object.prototype);
    expect(Object(({} as Record<string, unknown>)['polluted'])).not.toBe(1);
    expect(Object.hasOwn(after, '__proto__')).toBe(true);
  });

  test('depthOf stops counting beyond its bound', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 100_000; i++) deep = { a: deep };
    expect(depthOf(deep)).toBe(PATCH_DEPTH_MAX + 1);
    expect(depthOf({ a: [{ b: 1 }] })).toBe(3);
  });
});

describe('pathOfNames', () => {
  test('is read back by namesOfPath, whatever the names', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 4 }), (names) => {
        expect(namesOfPath(pathOfNames(names))).toEqual(names);
      }),
    );
  });

  test.each(['', '.a', 'a..b', 'a.', 'a[b', '[]', 'a]'])('namesOfPath refuses %j', (text) => {
    expect(namesOfPath(text)).toBeUndefined();
  });
});

describe('applyOverlay', () => {
  const file: ConfigInput = {
    bounds: { tasksMax: 100, classShareMax: 0.5 },
    models: [{ id: 'm', aliases: ['n'] }],
    tenants: [{ id: 'acme', keys: [], limits: { requestsPerMinute: 10, concurrency: 2 } }],
  };

  test('changes members by name and leaves what it does not name', () => {
    const { input, dormant } = applyOverlay(file, {
      bounds: { tasksMax: 50 },
      models: { m: { off: true }, other: { off: true } },
      tenants: { acme: { limits: { concurrency: 4 } }, gone: { weight: 2 } },
    });
    expect(input).toEqual({
      bounds: { tasksMax: 50, classShareMax: 0.5 },
      models: [
        { id: 'm', aliases: ['n'], off: true },
        { id: 'other', off: true },
      ],
      tenants: [{ id: 'acme', keys: [], limits: { requestsPerMinute: 10, concurrency: 4 } }],
    });
    expect(dormant).toEqual([['tenants', 'gone']]);
  });

  test('knows the classes of a file that names none', () => {
    const { input } = applyOverlay({}, { classes: { critical: { weight: 12 } } });
    expect(config(input).scheduler.classes.map(({ name: one, weight }) => [one, weight])).toEqual([
      ['critical', 12],
      ['normal', 2],
      ['low', 1],
    ]);
  });

  test('takes a whole list in place of the one of the file', () => {
    const { input } = applyOverlay({}, { classes: [{ name: 'only' }] });
    expect(config(input).scheduler.classes.map((one) => one.name)).toEqual(['only']);
  });

  test('leaves no member of a profile of another kind', () => {
    const before: ConfigInput = {
      models: [{ id: 'm', profile: { kind: 'embedding', fixedMs: 1, msPerToken: 1 } }],
    };
    const { input } = applyOverlay(before, { models: { m: { profile: { kind: 'generic', meanMs: 5 } } } });
    expect(input.models).toEqual([{ id: 'm', profile: { kind: 'generic', meanMs: 5 } }]);
  });
});

describe('fileOnlyIn', () => {
  test.each([
    [{ nodes: [{ url: 'http://x' }] }, ['nodes']],
    [{ nodes: null }, ['nodes']],
    [{ state: { folder: '/etc' } }, ['state']],
    [{ keysFile: '/etc/passwd' }, ['keysFile']],
    [{ server: { host: '0.0.0.0', drainMs: 1 } }, ['server', 'host']],
    [{ server: { tls: { cert: '/etc/passwd' } } }, ['server', 'tls']],
    [{ tenants: { acme: { keys: [{ id: 'k', sha256: 'x' }], weight: 2 } } }, ['tenants', 'acme', 'keys']],
    [{ tenants: [{ id: 'acme', cachePool: 'p' }] }, ['tenants', '0', 'cachePool']],
  ])('finds what the file alone may say in %j', (patch, path) => {
    expect(fileOnlyIn(patch as JsonObject).map((one) => one.path)).toEqual([path]);
  });

  test('finds nothing in what an operator turns', () => {
    expect(fileOnlyIn({ server: { drainMs: 1 }, tenants: { acme: { weight: 2 } } })).toEqual([]);
  });
});

describe('versionsOf', () => {
  test('keeps the version of what did not change', () => {
    const before = { overlay: { a: { b: 1, c: 2 } }, setIn: { 'a.b': 1, 'a.c': 2 } };
    expect(versionsOf({ a: { b: 1, c: 3 }, d: [1] }, before, 7)).toEqual({ 'a.b': 1, 'a.c': 7, d: 7 });
  });
});

describe('configDifferences', () => {
  test('tells values in the paths of the file, entries by name', () => {
    const before = config({});
    const after = config({
      bounds: { tasksMax: 5 },
      classes: [{ name: 'critical', weight: 9 }, { name: 'normal' }, { name: 'low' }],
    });
    expect(configDifferences(before, after)).toEqual({
      changed: [
        { path: 'classes.critical.weight', from: 8, to: 9 },
        { path: 'bounds.tasksMax', from: 100_000, to: 5 },
      ],
      total: 2,
    });
    expect(configDifferences(after, after).total).toBe(0);
  });

  test('tells a list of other names or another order as a whole', () => {
    const named = (...names: string[]): GatewayConfig =>
      config({
        classes: names.map((one) => ({ name: one, weight: 1 })),
        defaultClass: 'a',
        degrade: { classes: [] },
      });
    expect(configDifferences(named('a', 'b'), named('b', 'a')).changed).toEqual([
      { path: 'classes', from: ['a', 'b'], to: ['b', 'a'] },
    ]);
  });

  test('tells the values of an entry that is new', () => {
    const { changed } = configDifferences(config({}), config({ models: [{ id: 'm', off: true }] }));
    expect(changed).toContainEqual({ path: 'models', from: [], to: ['m'] });
    expect(changed).toContainEqual({ path: 'models.m.off', from: null, to: true });
    expect(changed.map(({ path }) => path)).not.toContain('models.m.id');
  });

  test('holds no key, no header and no node', () => {
    const keyed = (sha256: string, header: string): GatewayConfig =>
      config({
        tenants: [{ id: 'acme', keys: [{ id: 'k', sha256 }] }],
        nodes: [
          { url: 'http://a', headers: { authorization: header }, key: { value: header, origin: 'env X' } },
        ],
      });
    expect(configDifferences(keyed('a'.repeat(64), 'one'), keyed('b'.repeat(64), 'two')).total).toBe(0);
  });

  test('counts what is beyond its bound', () => {
    const models = (off: boolean): GatewayConfig =>
      config({ models: Array.from({ length: DIFFERENCES_MAX + 5 }, (_, i) => ({ id: `m${i}`, off })) });
    const found = configDifferences(models(false), models(true));
    expect([found.changed.length, found.total]).toEqual([DIFFERENCES_MAX, DIFFERENCES_MAX + 5]);
  });
});
