import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type StartedGateway,
  type StartOptions,
  startGateway,
} from '../../src/apps/gateway/start-gateway.ts';
import { type ConfigInput, resolveConfig } from '../../src/core/config/index.ts';
import { call, chat, createFixture, type Fixture } from './cli-fixture.ts';

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

async function start(input: ConfigInput = {}, options: StartOptions = {}): Promise<StartedGateway> {
  const resolved = resolveConfig({ ...input, server: { port: 0, drainMs: 5_000, ...input.server } });
  if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
  const started = await startGateway(resolved.config, options);
  fixture.onEnd(() => started.stop());
  return started;
}

const nodesUrl = (started: StartedGateway, rest = ''): string =>
  `${started.adminUrl}/spillway/v1/nodes${rest}`;

describe('admin plane', () => {
  test('leaves probes open and asks for the admin token everywhere else', async () => {
    const started = await start();
    expect((await call(`${started.adminUrl}/livez`)).status).toBe(200);
    expect((await call(`${started.adminUrl}/readyz`)).status).toBe(200);
    for (const path of [
      '/metrics',
      ...['nodes', 'nodes/x', 'queue', 'requests/x', 'dump', 'config', 'nothing'].map(
        (p) => `/spillway/v1/${p}`,
      ),
    ]) {
      const answer = await call(`${started.adminUrl}${path}`);
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.headers['content-type']).toBe('application/problem+json');
      expect((await call(`${started.adminUrl}${path}`, { token: 'wrong' })).status).toBe(401);
    }
    expect(
      (await call(`${started.adminUrl}/spillway/v1/nothing`, { token: started.adminToken })).status,
    ).toBe(404);
  });

  test('opens metrics, and nothing else, to the metrics token', async () => {
    const started = await start();
    const token = started.metricsToken;
    const page = await call(`${started.adminUrl}/metrics`, { token });
    expect(page.status).toBe(200);
    expect(page.text).toContain('# TYPE spillway_requests_total counter');
    expect((await call(nodesUrl(started), { token })).status).toBe(401);
    expect((await call(`${started.adminUrl}/metrics`, { token: started.adminToken })).status).toBe(200);
  });

  test('registers a node, shows it in the words of the contract, and lets it leave', async () => {
    const stub = await fixture.stub();
    const started = await start();
    const token = started.adminToken;
    const body = {
      id: 'gpu-1',
      url: stub.url,
      models: ['stub-model'],
      slots: 2,
      hardware: 'T4',
      labels: { zone: 'a' },
    };
    const created = await call(nodesUrl(started), { token, body });
    expect([created.status, created.headers.location]).toEqual([201, '/spillway/v1/nodes/gpu-1']);
    expect(created.json).toMatchObject({
      id: 'gpu-1',
      url: stub.url,
      protocol: 'openai',
      models: ['stub-model'],
      slots: 2,
      hardware: 'T4',
      labels: { zone: 'a' },
    });
    expect(created.json['credential']).toEqual(expect.any(String));
    expect((await chat(started.dataUrl)).status).toBe(200);
    const row = await call(nodesUrl(started, '/gpu-1'), { token });
    expect(row.json).toMatchObject({
      state: 'active',
      health: expect.any(Number),
      rate: expect.any(Number),
      inflight: 0,
      drainMs: 0,
    });
    const cordoned = await call(nodesUrl(started, '/gpu-1'), {
      token,
      method: 'PATCH',
      body: { cordoned: true },
    });
    expect(cordoned.json).toMatchObject({ id: 'gpu-1', state: 'cordoned' });
    expect((await call(nodesUrl(started, '/gpu-1'), { token, method: 'DELETE' })).status).toBe(204);
    expect((await call(nodesUrl(started, '/gpu-1'), { token })).status).toBe(404);
  });

  test('binds a node to its own credential', async () => {
    const stub = await fixture.stub();
    const started = await start({}, { joinToken: 'a-join-token-of-some-length' });
    const token = 'a-join-token-of-some-length';
    const body = { id: 'n', url: stub.url, models: ['stub-model'] };
    const credential = String((await call(nodesUrl(started), { token, body })).json['credential']);
    expect((await call(nodesUrl(started), { token })).status).toBe(401);
    expect((await call(nodesUrl(started), { token, body })).status).toBe(409);
    expect((await call(nodesUrl(started), { token: 'another', body })).status).toBe(409);
    expect((await call(nodesUrl(started), { token: 'another', body: { ...body, id: 'm' } })).status).toBe(
      401,
    );
    expect((await call(nodesUrl(started), { token: credential, body })).status).toBe(200);
    const beat = await call(nodesUrl(started, '/n/heartbeat'), { token: credential, body: {} });
    expect([beat.status, beat.json]).toEqual([200, { nextMs: 30_000 }]);
    expect((await call(nodesUrl(started, '/n/heartbeat'), { token: 'another', body: {} })).status).toBe(403);
    expect((await call(nodesUrl(started, '/gone/heartbeat'), { token: credential, body: {} })).status).toBe(
      404,
    );
    expect((await call(nodesUrl(started, '/n/heartbeat'), { body: {} })).status).toBe(401);
  });

  test.each([
    'http://169.254.169.254/',
    'http://[fe80::1]:80',
    'http://metadata.google.internal',
    'file:///etc/passwd',
    'http://u:p@host',
  ])('refuses to register %s', async (url) => {
    const started = await start();
    const answer = await call(nodesUrl(started), { token: started.adminToken, body: { id: 'x', url } });
    expect([answer.status, answer.headers['content-type']]).toEqual([422, 'application/problem+json']);
    expect(started.gateway.nodes()).toEqual([]);
  });

  test.each<[string, unknown, number]>([
    ['malformed JSON', '{"id":', 400],
    ['a list', [], 422],
    ['no URL', { id: 'x' }, 422],
    ['a wrong type', { url: 5 }, 422],
    ['an unknown key', { url: 'http://a:1', slot: 1 }, 422],
    ['absurd slots', { url: 'http://a:1', slots: 1e308 }, 422],
    ['an id with a line break', { url: 'http://a:1', id: 'a\nb' }, 422],
    ['an oversize body', { url: 'http://a:1', hardware: 'x'.repeat(300_000) }, 413],
  ])('answers %s with a typed problem and no trace of our insides', async (_what, body, status) => {
    const started = await start();
    const answer = await call(nodesUrl(started), { token: started.adminToken, body });
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
    expect(answer.json).toMatchObject({ status, type: 'about:blank' });
    expect(answer.text).not.toMatch(/\.ts\b|node_modules|\\n +at /);
  });

  test('explains why a request waits, and afterwards where it ran', async () => {
    const stub = await fixture.stub();
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: 'stub-model' }], slots: 1 }],
    });
    const token = started.adminToken;
    stub.holding = true;
    const running = chat(started.dataUrl);
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    const waiting = chat(started.dataUrl, {
      headers: { 'x-spillway-class': 'low', 'x-spillway-deadline-ms': '60000' },
    });
    const queue = await vi.waitUntil(async () => {
      const answer = await call(`${started.adminUrl}/spillway/v1/queue`, { token });
      return answer.json['depth'] === 1 ? answer.json : undefined;
    });
    expect(queue).toMatchObject({
      depth: 1,
      running: 1,
      byClass: { low: { depth: 1 } },
      byModel: { 'stub-model': { depth: 1 } },
      byTenant: { anonymous: { depth: 1 } },
    });
    const dump = await call(`${started.adminUrl}/spillway/v1/dump`, { token });
    expect(dump.status).toBe(200);
    stub.release();
    const [first, second] = await Promise.all([running, waiting]);
    expect([first.status, second.status]).toEqual([200, 200]);
    const id = encodeURIComponent(String(second.headers['x-spillway-id']));
    const explained = await call(`${started.adminUrl}/spillway/v1/requests/${id}`, { token });
    expect(explained.json).toMatchObject({
      state: 'served',
      class: 'low',
      tenant: 'anonymous',
      model: 'stub-model',
      node: 'one',
      attempts: 1,
    });
    const timeline = explained.json['timeline'] as Record<string, number>;
    const instants = ['received', 'admitted', 'decided', 'sent', 'firstByte', 'done'].map(
      (name) => timeline[name] ?? Number.NaN,
    );
    expect(instants).toEqual(instants.toSorted((a, b) => a - b));
    expect((await call(`${started.adminUrl}/spillway/v1/requests/none`, { token })).status).toBe(404);
  });

  test('tells position, gates and reasons of every node for a request that still waits', async () => {
    const stub = await fixture.stub();
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: 'stub-model' }], slots: 1 }],
    });
    const submit = vi.spyOn(started.gateway, 'submit');
    stub.holding = true;
    const running = chat(started.dataUrl);
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    const waiting = chat(started.dataUrl);
    const submitted = await vi.waitUntil(
      () => submit.mock.results[1]?.value as { publicId: string } | undefined,
    );
    const id = encodeURIComponent(submitted.publicId);
    const answer = await call(`${started.adminUrl}/spillway/v1/requests/${id}`, {
      token: started.adminToken,
    });
    expect(answer.json).toMatchObject({
      state: 'queued',
      position: 0,
      nodesTotal: 1,
      node: null,
      attempts: 0,
    });
    expect(answer.json['etaMs']).toEqual(expect.any(Number));
    expect(answer.json['unblock']).not.toBe('');
    const nodes = answer.json['nodes'] as { id: string; eligible: boolean; reasons: string[] }[];
    expect(nodes[0]).toMatchObject({ id: 'one', eligible: false });
    expect(nodes[0]?.reasons.length).toBeGreaterThan(0);
    stub.release();
    await Promise.all([running, waiting]);
  });

  test('serves pages of nodes in order of their ids', async () => {
    const nodes = ['c', 'a', 'b'].map((id) => ({ id, url: 'http://127.0.0.1:9', models: [{ model: 'm' }] }));
    const started = await start({ nodes });
    const token = started.adminToken;
    const first = await call(nodesUrl(started, '?limit=2'), { token });
    expect(first.json).toMatchObject({ nodes: [{ id: 'a' }, { id: 'b' }], total: 3, next: 'b' });
    expect((await call(nodesUrl(started, '?limit=2&after=b'), { token })).json).toMatchObject({
      nodes: [{ id: 'c' }],
      next: null,
    });
  });

  test('shows the configuration without any secret', async () => {
    const key = { value: 'node-secret', origin: 'env NODE_KEY' };
    const nodes = [
      {
        id: 'a',
        url: 'http://127.0.0.1:9',
        key,
        headers: { 'x-token': 'header-secret' },
        models: [{ model: 'm' }],
      },
    ];
    const started = await start({
      nodes,
      tenants: [{ id: 't', keys: [{ id: 'k', sha256: 'ab'.repeat(32) }] }],
    });
    const token = started.adminToken;
    const shown = await call(`${started.adminUrl}/spillway/v1/config`, { token });
    const dump = await call(`${started.adminUrl}/spillway/v1/dump`, { token });
    expect(shown.text).toContain('env NODE_KEY');
    for (const text of [shown.text, dump.text]) expect(text).not.toMatch(/node-secret|header-secret|abab/);
  });

  test('refuses foreign Host and Origin while there are no keys', async () => {
    const started = await start();
    const token = started.adminToken;
    const url = nodesUrl(started);
    expect((await call(url, { token, headers: { host: 'evil.example' } })).status).toBe(403);
    expect((await call(url, { token, headers: { origin: 'https://evil.example' } })).status).toBe(403);
    expect((await call(url, { token, headers: { origin: new URL(url).origin } })).status).toBe(200);
  });

  test('names the methods that a path has', async () => {
    const started = await start();
    const answer = await call(`${started.adminUrl}/spillway/v1/queue`, {
      token: started.adminToken,
      method: 'DELETE',
    });
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET']);
  });

  test('answers on a port of its own, apart from the data port', async () => {
    const started = await start({ server: { adminPort: 0 } });
    expect(started.adminUrl).not.toBe(started.dataUrl);
    expect((await call(nodesUrl(started), { token: started.adminToken })).status).toBe(200);
    expect((await call(`${started.dataUrl}/livez`)).status).toBe(404);
    expect((await call(`${started.adminUrl}/v1/models`, { token: started.adminToken })).status).toBe(404);
  });

  test('says not ready first when it stops, while what runs goes on to its end', async () => {
    const stub = await fixture.stub();
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: 'stub-model' }], slots: 1 }],
    });
    stub.holding = true;
    const running = chat(started.dataUrl);
    await vi.waitUntil(() => stub.calls === 1, { timeout: 20_000 });
    const stopped = started.stop();
    expect((await call(`${started.adminUrl}/readyz`)).status).toBe(503);
    expect((await call(`${started.adminUrl}/livez`)).status).toBe(200);
    expect((await chat(started.dataUrl)).status).toBe(503);
    stub.release();
    expect((await running).status).toBe(200);
    await stopped;
  });

  test('closes connections of clients that hold them when it has stopped', async () => {
    const started = await start();
    const socket = connect(Number(new URL(started.dataUrl).port), '127.0.0.1');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.on('error', () => undefined);
    await started.stop();
    await closed;
  });
});
