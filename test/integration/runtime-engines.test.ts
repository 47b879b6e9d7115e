/**
 * Engine drivers and the search for local engines, against small servers that give the documented answers of the
 * real ones, and against servers that give none, half of one, or a wrong one.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createEngineDrivers, detectEngine, detectEngines } from '../../src/adapters/engines/index.ts';
import type { EngineDriver, EngineProbe } from '../../src/ports/engine-driver.ts';
import type { NodeEndpoint } from '../../src/ports/node-transport.ts';

type Page = (request: IncomingMessage, response: ServerResponse) => void;

const servers: Server[] = [];

const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
});

async function listen(server: Server): Promise<string> {
  servers.push(server);
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves these pages and 404 for the rest. */
function engine(pages: Record<string, Page>): Promise<string> {
  return listen(
    createServer((request, response) => {
      const page = pages[request.url ?? ''];
      if (page === undefined) response.writeHead(404).end('{}');
      else page(request, response);
    }),
  );
}

const json =
  (value: unknown, status = 200): Page =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const text =
  (value: string, status = 200): Page =>
  (_request, response) =>
    response.writeHead(status, { 'content-type': 'text/plain' }).end(value);

const at = (url: string, headers: readonly string[] = []): NodeEndpoint => ({ id: 'n', url, headers });

function driver(protocol: string): EngineDriver {
  const found = createEngineDrivers().find((one) => one.protocol === protocol);
  if (found === undefined) throw new Error(`no driver ${protocol}`);
  return found;
}

const LIST = {
  object: 'list',
  data: [
    { id: 'b', object: 'model' },
    { id: 'a', object: 'model' },
  ],
};

const VLLM_METRICS = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="org/m"} 3.0
vllm:num_requests_running{engine="1",model_name="org/m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="a}b{\\"c"} 1.0
vllm:num_requests_waiting{engine="1",model_name="org/m"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="org/m"} 0.25 1700000000000
vllm:kv_cache_usage_perc{engine="1",model_name="org/m"} 7.5e-01
vllm:broken{x="1"
nonsense
# EOF
`;

describe('openai driver', () => {
  test('reads the models, sends the key, keeps the base path', async () => {
    let key: string | undefined;
    const url = await engine({
      '/base/v1/models': (request, response) => {
        key = request.headers.authorization;
        json(LIST)(request, response);
      },
    });
    const probe = await driver('openai').probe(at(`${url}/base`, ['Authorization', 'Bearer k']), 2_000);
    expect(probe).toEqual({
      alive: true,
      ready: true,
      models: [{ model: 'a' }, { model: 'b' }],
      detail: 'HTTP 200',
    });
    expect(key).toBe('Bearer k');
  });

  test.each([401, 403, 404, 429, 500, 503])('takes HTTP %i as a sign of life', async (status) => {
    const url = await engine({ '/v1/models': json({ error: 'x' }, status) });
    const probe = await driver('openai').probe(at(url), 2_000);
    expect(probe.alive).toBe(true);
    expect(probe.ready).toBe(status < 429);
    expect(probe.models).toBeUndefined();
  });

  test('does not follow a redirect', async () => {
    let followed = false;
    const url = await engine({
      '/v1/models': (_request, response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      '/elsewhere': (request, response) => {
        followed = true;
        json(LIST)(request, response);
      },
    });
    const probe = await driver('openai').probe(at(url), 2_000);
    expect(probe).toMatchObject({ alive: true, detail: 'HTTP 302' });
    expect(probe.models).toBeUndefined();
    expect(followed).toBe(false);
  });

  test('takes a refused connection as dead, at once', async () => {
    const url = await listen(createTcpServer());
    const [server] = servers.splice(0);
    await new Promise((resolve) => server?.close(resolve));
    expect(await driver('openai').probe(at(url), 60_000)).toMatchObject({ alive: false, ready: false });
  });

  test('tells a server that accepts and stays silent from one that is not there', async () => {
    const url = await listen(createTcpServer(() => {}));
    expect(await driver('openai').probe(at(url), 50)).toMatchObject({ alive: false, silent: true });
  });

  test.each([
    ['garbage', (_q: IncomingMessage, r: ServerResponse) => r.end('not json')],
    ['another shape', json({ data: { id: 'x' } })],
    ['rows without ids', json({ data: [1, null, { id: 7 }, { id: '' }] })],
    ['a list beyond the bound on bytes', text(' '.repeat(2_000_000))],
  ])('stays alive and unknown on %s', async (_name, page) => {
    const url = await engine({ '/v1/models': page });
    const probe = await driver('openai').probe(at(url), 2_000);
    expect(probe.alive).toBe(true);
    expect(probe.models ?? []).toEqual([]);
  });

  test('takes bytes that are no HTTP as a sign of life', async () => {
    const url = await listen(createTcpServer((socket) => socket.end('SSH-2.0-x\r\n')));
    expect(await driver('openai').probe(at(url), 2_000)).toMatchObject({ alive: true, ready: false });
  });
});

describe('a probe over TLS', () => {
  test('checks the engine against the node’s authority and shows the node’s certificate', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-probe-tls-'));
    try {
      const file = (name: string): string => join(folder, name);
      const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2'];
      const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      const args = ['req', '-x509', ...curve, '-keyout', file('key'), '-out', file('cert'), ...subject];
      execFileSync('openssl', args, { stdio: 'ignore' });
      // One certificate plays both sides: it signs itself and is its own authority.
      const [cert, key] = [readFileSync(file('cert')), readFileSync(file('key'))];
      const server = createTlsServer(
        { cert, key, ca: cert, requestCert: true, rejectUnauthorized: true },
        (_q, r) => r.end(JSON.stringify(LIST)),
      );
      const url = (await listen(server)).replace('http:', 'https:');
      const tls = { ca: file('cert'), cert: file('cert'), key: file('key') };
      const probe = (endpoint: NodeEndpoint): Promise<EngineProbe> => driver('openai').probe(endpoint, 5_000);
      expect(await probe({ ...at(url), tls })).toMatchObject({
        alive: true,
        models: [{ model: 'a' }, { model: 'b' }],
      });
      expect(await probe(at(url)), 'an unknown authority').toMatchObject({ alive: false });
      expect(await probe({ ...at(url), tls: { ca: file('cert') } }), 'no certificate shown').toMatchObject({
        alive: false,
      });
      const missing = { ca: file('nothing-here') };
      expect(await probe({ ...at(url), tls: missing }), 'no such file').toMatchObject({ alive: false });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('vllm driver', () => {
  test('reads models with their context length, and sums the load of its replicas', async () => {
    const url = await engine({
      '/health': text(''),
      '/v1/models': json({ data: [{ id: 'org/m', owned_by: 'vllm', max_model_len: 8192 }] }),
      '/metrics': text(VLLM_METRICS),
    });
    const expected = { running: 5, waiting: 1, cacheUse: 0.75 };
    expect(await driver('vllm').probe(at(url), 2_000)).toEqual({
      alive: true,
      ready: true,
      detail: 'HTTP 200',
      models: [{ model: 'org/m', contextTokensMax: 8192 }],
      reading: expected,
    });
    expect(await driver('vllm').read?.(at(url), 2_000)).toEqual(expected);
  });

  test.each([
    [
      'vLLM',
      'vllm:num_requests_running 1\nvllm:prefix_cache_queries_total{engine="0"} 100\n' +
        'vllm:prefix_cache_queries_total{engine="1"} 50\nvllm:prefix_cache_hits_total{engine="0"} 30\n',
      { running: 1, prefixQueries: 150, prefixHits: 30 },
    ],
    [
      'an older vLLM',
      'vllm:num_requests_running 1\nvllm:gpu_prefix_cache_hit_rate 0.25\n',
      { running: 1, prefixHitRatio: 0.25 },
    ],
    [
      'SGLang',
      'sglang:num_running_reqs{model_name="m"} 7\nsglang:num_queue_reqs{model_name="m"} 2\n' +
        'sglang:token_usage{model_name="m"} 0.4\nsglang:cache_hit_rate{model_name="m"} 0.1\n',
      { running: 7, waiting: 2, cacheUse: 0.4, prefixHitRatio: 0.1 },
    ],
    ['TGI', 'tgi_batch_current_size 4\ntgi_queue_size 9\n', { running: 4, waiting: 9 }],
  ])('reads load and prefix cache as %s names them', async (_name, page, expected) => {
    const url = await engine({ '/metrics': text(page) });
    expect(await driver('vllm').read?.(at(url), 2_000)).toEqual(expected);
  });

  test('takes hits of a prefix cache alone for no load', async () => {
    const url = await engine({ '/metrics': text('vllm:prefix_cache_queries_total 5\n') });
    expect(await driver('vllm').read?.(at(url), 2_000)).toBeUndefined();
  });

  test('reads the older name of the cache metric', async () => {
    const url = await engine({ '/metrics': text('vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n') });
    expect(await driver('vllm').read?.(at(url), 2_000)).toEqual({ cacheUse: 0.5 });
  });

  test.each([
    ['an empty page', ''],
    ['values that are no load', 'vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc 42\n'],
    ['a negative count', 'vllm:num_requests_waiting -1\n'],
  ])('leaves the load unknown on %s', async (_name, page) => {
    const url = await engine({ '/metrics': text(page) });
    expect(await driver('vllm').read?.(at(url), 2_000)).toBeUndefined();
  });

  test('is alive and not ready when its health page says 503', async () => {
    const url = await engine({ '/health': text('', 503) });
    expect(await driver('vllm').probe(at(url), 2_000)).toMatchObject({ alive: true, ready: false });
  });
});

describe('llama.cpp driver', () => {
  test('reads slots, models and load', async () => {
    const url = await engine({
      '/health': json({ status: 'ok' }),
      '/v1/models': json({
        data: [{ id: 'tiny.gguf', owned_by: 'llamacpp', meta: { n_ctx_train: 131072 } }],
      }),
      '/props': json({ total_slots: 4, default_generation_settings: {} }),
      '/slots': json([
        { id: 0, is_processing: true },
        { id: 1, is_processing: false },
      ]),
      '/metrics': text('llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n'),
    });
    expect(await driver('llama.cpp').probe(at(url), 2_000)).toEqual({
      alive: true,
      ready: true,
      detail: 'HTTP 200',
      models: [{ model: 'tiny.gguf' }],
      slots: 4,
      reading: { running: 2, waiting: 1 },
    });
  });

  test('counts busy slots when the metrics page is switched off', async () => {
    const url = await engine({
      '/metrics': json({ error: { code: 501 } }, 501),
      '/slots': json([
        { id: 0, is_processing: true },
        { id: 1, is_processing: false },
      ]),
    });
    expect(await driver('llama.cpp').read?.(at(url), 2_000)).toEqual({ running: 1 });
  });

  test('is alive and not ready while it loads its model', async () => {
    const loading = json({ error: { code: 503, message: 'Loading model', type: 'unavailable_error' } }, 503);
    const url = await engine({
      '/health': loading,
      '/v1/models': loading,
      '/props': loading,
      '/slots': loading,
    });
    const probe = await driver('llama.cpp').probe(at(url), 2_000);
    expect(probe).toEqual({ alive: true, ready: false, detail: 'HTTP 503' });
  });
});

describe('detectEngine', () => {
  const cases: readonly [string, Record<string, Page>, object][] = [
    [
      'ollama',
      {
        '/v1/models': json({ data: [{ id: 'llama3.2:1b', owned_by: 'library' }] }),
        '/api/version': json({ version: '0.12.0' }),
      },
      { engine: 'ollama', version: '0.12.0', node: { protocol: 'openai', models: [] } },
    ],
    [
      'vllm',
      {
        '/v1/models': json({ data: [{ id: 'org/m', owned_by: 'vllm', max_model_len: 4096 }] }),
        '/version': json({ version: '0.11.0' }),
      },
      { engine: 'vllm', version: '0.11.0', node: { protocol: 'vllm' } },
    ],
    [
      'sglang',
      {
        '/v1/models': json({ data: [{ id: 'm', owned_by: 'sglang' }] }),
        '/get_model_info': json({ model_path: 'org/m' }),
      },
      { engine: 'sglang', node: { protocol: 'openai' } },
    ],
    [
      'llama.cpp',
      {
        '/v1/models': json({ data: [{ id: 'm', owned_by: 'llamacpp' }] }),
        '/props': json({ total_slots: 2 }),
      },
      { engine: 'llama.cpp', node: { protocol: 'llama.cpp' } },
    ],
    [
      'tei',
      {
        '/info': json({
          model_id: 'BAAI/bge-small',
          model_type: { embedding: { pooling: 'cls' } },
          version: '1.8.0',
        }),
      },
      { engine: 'tei', node: { protocol: 'openai', models: [{ model: 'BAAI/bge-small' }] } },
    ],
    [
      'a1111',
      { '/sdapi/v1/sd-models': json([{ title: 'v1-5 [abc]', model_name: 'v1-5' }]) },
      { engine: 'a1111', node: undefined, models: [{ model: 'v1-5' }] },
    ],
    ['openai', { '/v1/models': json(LIST) }, { engine: 'openai', node: { protocol: 'openai' } }],
  ];

  test.each(cases)('tells %s by what only it serves', async (_name, pages, expected) => {
    const url = await engine(pages);
    const found = await detectEngine(url);
    expect(found).toMatchObject({ url, ...expected });
    expect(found?.summary).toContain(url);
  });

  test('finds nothing where nobody answers, or nobody it knows', async () => {
    const stranger = await engine({});
    const silent = await listen(createTcpServer(() => {}));
    expect(await detectEngine(stranger)).toBeUndefined();
    expect(await detectEngine(silent, 50)).toBeUndefined();
  });

  test('looks at every candidate and keeps their order', async () => {
    const first = await engine({ '/v1/models': json(LIST) });
    const stranger = await engine({});
    const last = await engine({ '/props': json({ total_slots: 1 }) });
    const found = await detectEngines([first, stranger, last]);
    expect(found.map((one) => one.engine)).toEqual(['openai', 'llama.cpp']);
  });
});
