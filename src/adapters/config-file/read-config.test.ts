import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createKey, readKeysFile, revokeKey } from './keys-file.ts';
import { issueText } from './issue-text.ts';
import { readConfig } from './read-config.ts';
import { readCommandLine } from './read-command-line.ts';
import type { ReadConfig, ReadConfigOptions } from './reading.ts';
import { sha256Hex } from './digest.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-config-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function read(text: string, options: Partial<ReadConfigOptions> = {}): ReadConfig {
  const file = join(folder, 'spillway.yaml');
  writeFileSync(file, text);
  return readConfig({ file, environment: {}, ...options });
}

/** The issues without the folder, as people see them. */
function issues(text: string, options: Partial<ReadConfigOptions> = {}): string[] {
  const result = read(text, options);
  if (result.kind === 'config') return [];
  return result.issues.map((issue) => issueText(issue).replaceAll(`${folder}/`, ''));
}

function config(
  text: string,
  options: Partial<ReadConfigOptions> = {},
): Extract<ReadConfig, { kind: 'config' }> {
  const result = read(text, options);
  if (result.kind === 'issues') throw new Error(result.issues.map(issueText).join('\n'));
  return result;
}

describe('readConfig', () => {
  test('reads nodes, tenants and classes', () => {
    const { config: value } = config(`
classes:
  - name: critical
  - name: normal
    weight: 3
tenants:
  - id: acme
    classCeiling: normal
    keys: [{ id: k1, sha256: ${'a'.repeat(64)} }]
nodes:
  - url: http://gpu-1:8000
    protocol: vllm
    models: [llama-3, { model: big, contextTokensMax: 8192 }]
    slots: 4
`);
    expect(value.scheduler.classes.map((entry) => entry.weight)).toEqual([8, 3]);
    expect(value.tenants[0]?.keys[0]?.id).toBe('k1');
    expect(value.nodes[0]?.models).toEqual([{ model: 'llama-3' }, { model: 'big', contextTokensMax: 8192 }]);
  });

  test('takes an empty file for the defaults', () => {
    expect(config('').config.server.port).toBe(8480);
    expect(config('# nothing\n').config.nodes).toEqual([]);
  });

  test('reports every problem at once with file, line and column', () => {
    const text = `server:
  prot: 80
  port: "80"
bounds:
  tasksMax: 0
classes:
  - name: critical
  - nam: normal
tenants:
  - id: a
    classCeiling: gone
  - id: a
nodes:
  - url: ftp://x
  - url: http://ok:1
    protocol: telnet
`;
    expect(issues(text)).toEqual([
      'spillway.yaml:2:3: server.prot: Unknown key; did you mean port?',
      'spillway.yaml:3:9: server.port: Expected a number (received "80")',
      'spillway.yaml:5:13: bounds.tasksMax: Expected a whole number from 1 to 10000000 tasks (received 0)',
      'spillway.yaml:8:5: classes[1].name: Expected a value here; it is missing',
      'spillway.yaml:8:5: classes[1].nam: Unknown key; did you mean name?',
      'spillway.yaml:12:9: tenants[1].id: Expected every tenant id once; tenants[0].id has the same (received "a")',
      'spillway.yaml:14:10: nodes[0].url: Expected http:// or https://, a host, and optionally a port and a base path (received "ftp://x")',
      'spillway.yaml:16:15: nodes[1].protocol: Expected one of "openai"|"vllm"|"llama.cpp" (received "telnet")',
    ]);
  });

  test('still checks references when nothing else is wrong', () => {
    expect(issues('tenants: [{ id: a, classCeiling: gone }]')).toEqual([
      'spillway.yaml:1:34: tenants[0].classCeiling: Expected one of the classes: critical, normal, low (received "gone")',
    ]);
  });

  test('locates errors of the YAML itself', () => {
    expect(issues('server:\n  port: 1\n  port: 2\n')[0]).toMatch(
      /^spillway\.yaml:3:3: Expected YAML: .*unique/,
    );
    expect(issues('nodes: [')[0]).toMatch(/^spillway\.yaml:1:\d+: Expected YAML/);
    expect(issues('a: 1\n---\nb: 2')[0]).toMatch(/Expected YAML/);
  });

  test('says when the whole is no mapping', () => {
    expect(issues('- a\n- b')).toEqual([
      'spillway.yaml:1:1: Expected a mapping of keys (received a list of 2)',
    ]);
    expect(issues('hello')[0]).toContain('Expected a mapping of keys');
  });

  test('stops an alias bomb', () => {
    const levels = Array.from(
      { length: 12 },
      (_, i) => `l${i + 1}: &l${i + 1} [${Array(12).fill(`*l${i}`).join(', ')}]`,
    );
    expect(issues(`l0: &l0 [x]\n${levels.join('\n')}\n`)).toEqual([
      'spillway.yaml: Expected fewer aliases: at most 1000 uses of anchors in all, none of them inside itself',
    ]);
  });

  test('refuses a file beyond the size bound and one that is not there', () => {
    expect(issues(`#${'x'.repeat(8 * 1024 * 1024)}`)).toEqual([
      'spillway.yaml: Expected at most 8388608 bytes',
    ]);
    const missing = readConfig({ file: join(folder, 'none.yaml'), environment: {} });
    expect(missing.kind === 'issues' && missing.issues[0]?.rule).toBe(
      'Expected a file; there is none of this name',
    );
  });

  test('does not let a special key reach the prototype', () => {
    expect(issues('__proto__: { policy: x }\nconstructor: 1').length).toBeGreaterThan(0);
    expect(({} as Record<string, unknown>)['policy']).toBeUndefined();
  });

  test('reads secrets from environment and file', () => {
    writeFileSync(join(folder, 'key.txt'), 'from-file\n');
    const text = `nodes:
  - url: http://a:1
    key: { env: NODE_KEY }
    headers: { x-extra: { file: key.txt }, x-plain: yes please }
tenants: [{ id: t, keys: [{ id: k, env: TENANT_KEY }] }]`;
    const { config: value, files } = config(text, { environment: { NODE_KEY: 's3cret', TENANT_KEY: 'tk' } });
    expect(value.nodes[0]?.key).toEqual({ value: 's3cret', origin: 'env NODE_KEY' });
    expect(value.nodes[0]?.headers).toEqual({ 'x-extra': 'from-file', 'x-plain': 'yes please' });
    expect(value.tenants[0]?.keys).toEqual([{ id: 'k', sha256: sha256Hex('tk') }]);
    expect(files).toContain(join(folder, 'key.txt'));
  });

  test('names what is wrong with a secret without ever repeating it', () => {
    const text = `nodes:
  - { url: "http://a:1", key: hunter2 }
  - { url: "http://b:1", key: { env: MISSING } }
  - { url: "http://c:1", key: { file: none.txt } }
  - { url: "http://d:1", key: { env: A, file: b } }
  - { url: "http://e:1", headers: { authorization: 7 } }
tenants: [{ id: t, keys: [hunter2] }]`;
    const found = issues(text);
    expect(found.join('\n')).not.toContain('hunter2');
    expect(found.length).toBe(6);
    expect(found[0]).toBe(
      'spillway.yaml:2:31: nodes[0].key: Expected {env: NAME} or {file: PATH}, never the secret itself',
    );
    expect(found[1]).toContain(
      'nodes[1].key.env: Expected an environment variable that is set and not empty (received "MISSING")',
    );
    expect(found[2]).toContain('nodes[2].key.file: Expected a readable file (ENOENT)');
  });

  test('lets the command line win over the file, adds its nodes and names it in issues', () => {
    const commandLine = { server: { port: 9 }, nodes: [{ url: 'http://b:2' }] };
    const {
      config: value,
      commandLineNodes,
      origins,
    } = config('server: { port: 5, host: localhost }\nnodes: [{ url: "http://a:1" }]', { commandLine });
    expect(value.server).toMatchObject({ port: 9, host: 'localhost' });
    expect(value.nodes.map((node) => node.id)).toEqual(['a:1']);
    expect(commandLineNodes.map((node) => node.id)).toEqual(['b:2']);
    expect(origins['server.port']).toBe('command line');
    expect(origins['server.host']).toMatch(/spillway\.yaml:1$/);
    expect(issues('', { commandLine: { nodes: [{ url: 'nope' }] } })[0]).toMatch(
      /^command line: nodes\[0\]\.url/,
    );
  });

  test('takes the state folder of the file before the fallback, relative to the file', () => {
    expect(config('', { fallbackFolder: '/x' }).config.state.folder).toBe('/x');
    expect(config('state: { folder: here }', { fallbackFolder: '/x' }).config.state.folder).toBe(
      join(folder, 'here'),
    );
    expect(config('state: { folder: "" }', { fallbackFolder: '/x' }).config.state.folder).toBe('');
    expect(
      config('state: { folder: here }', { commandLine: { state: { folder: '/o' } } }).config.state.folder,
    ).toBe('/o');
  });

  test('needs no file: the command line and the keys file are enough', () => {
    const state = { folder: join(folder, 'state') };
    createKey(join(state.folder, 'keys.json'), { tenant: 'acme', createdAt: 'now' });
    const commandLine = { state, server: { port: 1, host: '0.0.0.0' }, nodes: [{ url: 'http://a:1' }] };
    const read = readCommandLine({ commandLine, environment: {} });
    if (read.kind === 'issues') throw new Error(read.issues.map(issueText).join());
    expect(read.commandLineNodes.map((node) => node.id)).toEqual(['a:1']);
    expect(read.config.tenants.map((tenant) => tenant.id)).toEqual(['acme']);
    const wrong = readCommandLine({
      commandLine: { nodes: [{ url: 'nope' }], server: { host: '0.0.0.0' } },
      environment: {},
    });
    expect(wrong.kind === 'issues' && wrong.issues.length).toBe(2);
  });

  test('reads limits of tenants, classes and models, and says where one is wrong', () => {
    const { config: value } = config(`tenantLimits: { requestsPerMinute: 60 }
tenants: [{ id: acme, limits: { tokensPerMinute: 1000, tokensBurst: 500, concurrency: 2 } }, { id: free, limits: {} }]
classes: [{ name: normal, limits: { concurrency: 9 } }]
models: [{ id: m, limits: { requestsPerMinute: 5 }, imageTokens: 1000 }]`);
    expect(value.scheduler).toMatchObject({
      tenantLimits: { requestsPerMinute: 60 },
      tenantLimitsOwn: [
        { id: 'acme', limits: { tokensPerMinute: 1_000, tokensBurst: 500, concurrency: 2 } },
        { id: 'free', limits: {} },
      ],
      classes: [{ limits: { concurrency: 9 } }],
      models: [{ limits: { requestsPerMinute: 5 }, imageTokens: 1_000 }],
    });
    const wrong = `tenantLimits: { requestsPerMinute: 0 }
tenants:
  - id: acme
    limits:
      tokensBurst: 10
      concurrency: 1.5
      requestPerMinute: 3
models:
  - { id: m, limits: { tokensPerMinute: 1e12 } }`;
    expect(issues(wrong)).toEqual([
      'spillway.yaml:1:36: tenantLimits.requestsPerMinute: Expected a whole number from 1 to 1000000000 requests per minute (received 0)',
      'spillway.yaml:7:7: tenants[0].limits.requestPerMinute: Unknown key; did you mean requestsPerMinute?',
      'spillway.yaml:9:41: models[0].limits.tokensPerMinute: Expected a whole number from 1 to 1000000000 tokens per minute (received 1000000000000)',
    ]);
    expect(issues(wrong.replace('      requestPerMinute: 3\n', '')).slice(1, 3)).toEqual([
      'spillway.yaml:5:20: tenants[0].limits.tokensBurst: Expected tokensPerMinute beside it: a burst is the size of that limit (received 10)',
      'spillway.yaml:6:20: tenants[0].limits.concurrency: Expected a whole number from 1 to 10000000 requests (received 1.5)',
    ]);
  });

  test('says what is missing among certificate files', () => {
    expect(issues('server: { tls: { cert: a.pem, key: b.pem } }')).toEqual([
      'spillway.yaml:1:24: server.tls.cert: Expected a readable file (ENOENT) (received "a.pem")',
      'spillway.yaml:1:36: server.tls.key: Expected a readable file (ENOENT) (received "b.pem")',
    ]);
  });
});

describe('keys file', () => {
  test('stores the hash alone, in a file of mode 0600, and shows the secret once', () => {
    const path = join(folder, 'state', 'keys.json');
    const created = createKey(path, { tenant: 'acme', createdAt: '2026-01-01T00:00:00Z' });
    if (created.kind !== 'created') throw new Error(created.rule);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const text = readFileSync(path, 'utf8');
    expect(text).not.toContain(created.secret);
    expect(text).toContain(sha256Hex(created.secret));
  });

  test('gives its keys to the tenants of the configuration, and makes tenants that it does not name', () => {
    const path = join(folder, 'keys.json');
    createKey(path, { tenant: 'acme', id: 'k1', createdAt: 'now' });
    createKey(path, { tenant: 'new', id: 'k2', classCeiling: 'low', createdAt: 'now' });
    const { config: value, keysFile } = config('tenants: [{ id: acme, weight: 3 }]\nkeysFile: keys.json');
    expect(keysFile).toBe(path);
    expect(
      value.tenants.map((tenant) => [tenant.id, tenant.weight, tenant.classCeiling, tenant.keys[0]?.id]),
    ).toEqual([
      ['acme', 3, 'critical', 'k1'],
      ['new', 1, 'low', 'k2'],
    ]);
  });

  test('revokes a key once', () => {
    const path = join(folder, 'keys.json');
    createKey(path, { tenant: 'acme', id: 'k1', createdAt: 'now' });
    expect(revokeKey(path, 'k1').kind).toBe('revoked');
    expect(revokeKey(path, 'k1').kind).toBe('unknown');
    expect(readKeysFile(path)).toEqual({ kind: 'keys', keys: [] });
  });

  test('refuses a second key of the same id, odd names, and a file that it did not write', () => {
    const path = join(folder, 'keys.json');
    createKey(path, { tenant: 'acme', id: 'k1', createdAt: 'now' });
    expect(createKey(path, { tenant: 'acme', id: 'k1', createdAt: 'now' }).kind).toBe('refused');
    expect(createKey(path, { tenant: 'a b', createdAt: 'now' }).kind).toBe('refused');
    writeFileSync(path, '{"keys": [{"id": 1}]}');
    expect(readKeysFile(path).kind).toBe('refused');
    expect(issues('keysFile: keys.json')[0]).toContain('keysFile: Expected {"keys"');
  });

  test('reports a file that cannot be read', () => {
    if (process.getuid?.() === 0) return;
    const path = join(folder, 'keys.json');
    writeFileSync(path, '{"keys":[]}');
    chmodSync(path, 0);
    expect(readKeysFile(path)).toMatchObject({ kind: 'refused' });
  });
});
