import { describe, expect, test } from 'vitest';
import type { ConfigInput } from './input.ts';
import { pathText } from './input.ts';
import { parseNodeUrl } from './node-url.ts';
import { resolveConfig } from './resolve.ts';
import { SETTINGS } from './settings.ts';
import type { GatewayConfig } from './types.ts';

const HASH = 'a'.repeat(64);

function resolved(input: ConfigInput, memoryLimitBytes = 0): GatewayConfig {
  const result = resolveConfig(input, { memoryLimitBytes });
  if (result.kind === 'issues') throw new Error(JSON.stringify(result.issues));
  return result.config;
}

function issuePaths(input: ConfigInput): string[] {
  const result = resolveConfig(input);
  return result.kind === 'issues' ? result.issues.map((issue) => pathText(issue.path)) : [];
}

describe('SETTINGS', () => {
  test('have defaults inside their own ranges, and a reason and a source each', () => {
    for (const [path, setting] of Object.entries(SETTINGS)) {
      expect(setting.value, path).toBeGreaterThanOrEqual(setting.min);
      expect(setting.value, path).toBeLessThanOrEqual(setting.max);
      if (setting.integer) expect(Number.isInteger(setting.value), path).toBe(true);
      expect(setting.reason.length, path).toBeGreaterThan(10);
      expect(setting.source.length, path).toBeGreaterThan(3);
    }
  });
});

describe('resolveConfig of groups', () => {
  const nodes = { labels: { pool: 'a' } };

  test('fills shares and leaves out who has none', () => {
    const shares = [{ model: 'm', max: 0.5 }, { tenant: 't' }];
    expect(resolved({ groups: [{ name: 'a', nodes, shares }] }).scheduler.groups).toEqual([
      {
        name: 'a',
        nodes: { ids: [], labels: { pool: 'a' } },
        reservedFor: { models: [], tenants: [] },
        shares: [
          { holder: 'model', name: 'm', min: 0, max: 0.5 },
          { holder: 'tenant', name: 't', min: 0, max: 1 },
        ],
      },
    ]);
  });

  test('reports every broken rule by its path', () => {
    const shares = [
      { model: 'm', min: 0.7, max: 0.5 },
      { model: 'm', tenant: 't' },
      { tenant: 'unknown', min: 0.6 },
      { model: 'alias', min: 2 },
    ];
    const input: ConfigInput = {
      models: [{ id: 'm', aliases: ['alias'] }],
      tenants: [{ id: 't' }],
      groups: [
        { name: 'a', nodes, shares, reservedFor: { tenants: ['nobody'] } },
        { name: 'a', nodes: {} },
      ],
    };
    expect(issuePaths(input)).toEqual([
      'groups[0].shares[0].min',
      'groups[0].shares[1]',
      'groups[0].shares[2].tenant',
      'groups[0].shares[3].min',
      'groups[0].shares[3].model',
      'groups[0].shares',
      'groups[0].reservedFor.tenants[0]',
      'groups[1].name',
      'groups[1].nodes',
    ]);
  });

  test('refuses more than 64 groups, and more than 64 shares of one', () => {
    const shares = Array.from({ length: 65 }, (_, i) => ({ model: `m${i}` }));
    const groups = Array.from({ length: 65 }, (_, i) => ({
      name: `g${i}`,
      nodes,
      shares: i === 0 ? shares : [],
    }));
    expect(issuePaths({ groups })).toEqual(['groups', 'groups[0].shares']);
  });
});

describe('resolveConfig', () => {
  test('gives a complete frozen configuration for an empty input', () => {
    const config = resolved({});
    expect(config.scheduler.classes.map((entry) => entry.name)).toEqual(['critical', 'normal', 'low']);
    expect(config.scheduler.defaultClass).toBe('normal');
    expect(config.server).toMatchObject({ host: '127.0.0.1', port: 8480, overloadStatus: 429 });
    expect(Object.isFrozen(config.scheduler.bounds)).toBe(true);
    expect(Object.isFrozen(config.scheduler.classes[0])).toBe(true);
  });

  test('lowers the default task bound to what the memory limit allows', () => {
    expect(resolved({}).scheduler.bounds.tasksMax).toBe(100_000);
    const small = resolved({}, 64 * 1024 * 1024);
    expect(small.scheduler.bounds.tasksMax).toBeLessThan(2_000);
    expect(small.server.bodyBytesMax).toBeLessThanOrEqual(small.scheduler.bounds.bytesMax);
  });

  test('keeps a task bound that was given, whatever the memory limit', () => {
    expect(resolved({ bounds: { tasksMax: 77 } }, 1 << 20).scheduler.bounds.tasksMax).toBe(77);
  });

  test('takes the defaults of a known class and the general ones of a new class', () => {
    const config = resolved({
      classes: [{ name: 'critical', weight: 5 }, { name: 'bulk' }],
      defaultClass: 'bulk',
    });
    expect(config.scheduler.classes[0]).toMatchObject({ weight: 5, firstByteMs: 10_000 });
    expect(config.scheduler.classes[1]).toMatchObject({ weight: 1, shareMin: 0, completionMs: 120_000 });
  });

  test('lowers the default class of a tenant to its ceiling', () => {
    const config = resolved({ tenants: [{ id: 'batch', classCeiling: 'low' }] });
    expect(config.tenants[0]).toMatchObject({ classCeiling: 'low', classDefault: 'low', weight: 1 });
    expect(config.scheduler.tenantWeights).toEqual([{ id: 'batch', weight: 1 }]);
  });

  test('names nodes after their address and drops a trailing /v1 and slash', () => {
    const config = resolved({ nodes: [{ url: 'http://gpu-1:8000/base/v1/' }, { url: 'https://[::1]/x' }] });
    expect(config.nodes.map((node) => [node.id, node.url])).toEqual([
      ['gpu-1:8000-base', 'http://gpu-1:8000/base'],
      ['1:443-x', 'https://[::1]/x'],
    ]);
  });

  test('reports every broken rule at once, each with its path', () => {
    const paths = issuePaths({
      classes: [{ name: 'A b' }, { name: 'x' }, { name: 'x', weight: -1 }],
      defaultClass: 'none',
      bounds: { tasksMax: 0, classShareMax: 2 },
      admission: { marginMin: 3, deadlineMsMin: 10, deadlineMsMax: 5 },
      tenants: [
        { id: 't', classCeiling: 'gone' },
        { id: 't', keys: [{ id: 'k', sha256: 'XYZ' }] },
      ],
      models: [{ id: 'm', aliases: ['n'] }, { id: 'n' }],
      nodes: [
        { url: 'ftp://x' },
        { url: 'http://a:1', headers: { host: 'b', 'x y': 'c' } },
        { url: 'http://a:1' },
      ],
      server: { port: 70_000, headersMs: 100_000 },
    });
    expect(paths.sort()).toEqual(
      [
        'admission.deadlineMsMin',
        'admission.marginMin',
        'bounds.classShareMax',
        'bounds.tasksMax',
        'classes[0].name',
        'classes[2].name',
        'classes[2].weight',
        'defaultClass',
        'models[0].aliases[0]',
        'nodes[0].url',
        'nodes[1].headers.host',
        'nodes[1].headers.x y',
        'nodes[2].url',
        'server.headersMs',
        'server.port',
        'tenants[0].classCeiling',
        'tenants[1].id',
        'tenants[1].keys[0].sha256',
      ].sort(),
    );
  });

  test('refuses numbers that are none', () => {
    expect(issuePaths({ bounds: { tasksMax: Number.NaN, bytesMax: 1e308 }, seed: 1.5 })).toEqual([
      'seed',
      'bounds.tasksMax',
      'bounds.bytesMax',
    ]);
  });

  test('refuses a default class of a tenant above its ceiling', () => {
    expect(issuePaths({ tenants: [{ id: 't', classCeiling: 'low', classDefault: 'critical' }] })).toEqual([
      'tenants[0].classDefault',
    ]);
  });

  test('listens beyond loopback only when there is a key', () => {
    const open: ConfigInput = { server: { host: '0.0.0.0' } };
    expect(issuePaths(open)).toEqual(['server.host']);
    expect(issuePaths({ ...open, tenants: [{ id: 't', keys: [{ id: 'k', sha256: HASH }] }] })).toEqual([]);
  });

  test('refuses floors that add up to more than everything', () => {
    expect(
      issuePaths({
        classes: [
          { name: 'normal', shareMin: 0.7 },
          { name: 'low', shareMin: 0.7 },
        ],
      }),
    ).toEqual(['classes']);
  });

  test('asks for a default class when several classes have other names', () => {
    expect(issuePaths({ classes: [{ name: 'a' }, { name: 'b' }] })).toEqual(['defaultClass']);
    expect(resolved({ classes: [{ name: 'a' }] }).scheduler.defaultClass).toBe('a');
  });

  test('sends spans to /v1/traces where the endpoint has no path', () => {
    const endpointOf = (endpoint: string): string => resolved({ tracing: { endpoint } }).tracing.endpoint;
    expect(endpointOf('http://collector:4318')).toBe('http://collector:4318/v1/traces');
    expect(endpointOf('http://collector:4318/')).toBe('http://collector:4318/v1/traces');
    expect(endpointOf('https://a/otlp/v1/traces')).toBe('https://a/otlp/v1/traces');
    expect(resolved({}).tracing.endpoint).toBe('');
  });

  test.each<[string, ConfigInput, string]>([
    ['an endpoint without a scheme', { tracing: { endpoint: 'collector:4318' } }, 'tracing.endpoint'],
    ['a ratio above one', { tracing: { endpoint: 'http://a', sampleRatio: 2 } }, 'tracing.sampleRatio'],
    [
      'a header of two lines',
      { tracing: { endpoint: 'http://a', headers: { a: 'b\r\nc: d' } } },
      'tracing.headers.a',
    ],
    ['an origin with a path', { rum: { originsAllowed: ['https://a/b'] } }, 'rum.originsAllowed[0]'],
    ['every origin', { rum: { originsAllowed: ['*'] } }, 'rum.originsAllowed[0]'],
  ])('refuses %s', (_what, input, path) => {
    expect(issuePaths(input)).toEqual([path]);
  });

  test('never repeats a password that stands in an address', () => {
    const result = resolveConfig({ nodes: [{ url: 'http://user:hunter2@host' }] });
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });
});

describe('parseNodeUrl', () => {
  test.each([
    'http://a b',
    'http://',
    'a:80',
    'http://a:0',
    'http://a:99999',
    'http://a/x?y',
    'http://a/#f',
    'http://ä',
  ])('refuses %s', (text) => {
    expect(parseNodeUrl(text).kind).toBe('refused');
  });
});
