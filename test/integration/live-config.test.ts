/** Live configuration over real sockets: a whole gateway in a process of its own, changed while it works, and killed. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { within } from '../support/case-bench.ts';
import { type Answer, call, chat, createFixture, type Fixture, type RunningCli } from './cli-fixture.ts';

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

interface Running extends RunningCli {
  get(path: string): Promise<Answer>;
  send(
    method: 'PUT' | 'POST',
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  change(patch: unknown, why?: string): Promise<Answer>;
}

async function serve(config: string, environment: Record<string, string> = {}): Promise<Running> {
  const file = join(fixture.folder, 'spillway.yaml');
  writeFileSync(file, config);
  const running = await fixture.serve(['--config', file], environment);
  const { adminUrl, adminTokenFile } = running.document;
  const token = environment['SPILLWAY_TOKEN'] ?? readFileSync(adminTokenFile, 'utf8').trim();
  const url = (path: string): string => `${adminUrl}/spillway/v1/config${path}`;
  const send: Running['send'] = (method, path, body, headers = {}) =>
    call(url(path), { method, token, body, headers });
  return {
    ...running,
    get: (path) => call(url(path), { token }),
    send,
    change: (patch, why = 'a test') => send('PUT', '', { patch, why }),
  };
}

async function kill({ child }: RunningCli): Promise<void> {
  const gone = once(child, 'close');
  child.kill('SIGKILL');
  await gone;
}

const MODEL = 'models: [{ id: stub-model, profile: { kind: generic, meanMs: 5 } }]\n';
const nodes = (url: string): string =>
  `nodes: [{ id: a, url: "${url}", models: [stub-model], slots: 1, headers: { x-own: { env: NODE_SECRET } } }]\n`;
const secret = { NODE_SECRET: 'not-for-anybody' };

describe('PUT /config', () => {
  test('changes a weight under load: nothing is lost, and the next choices follow it', async () => {
    const stub = await fixture.stub();
    const running = await serve(`${MODEL}${nodes(stub.url)}`, secret);
    stub.holding = true;
    const first = chat(running.document.dataUrl);
    await within(5_000, 'the first request reaches the node', () => stub.calls === 1);
    const served: string[] = [];
    const waiting = Array.from({ length: 40 }, async (_, i) => {
      const name = i % 2 === 0 ? 'normal' : 'low';
      const answer = await chat(running.document.dataUrl, { headers: { 'x-spillway-class': name } });
      served.push(name);
      return answer.status;
    });
    const queue = running.document.adminUrl;
    const token = readFileSync(running.document.adminTokenFile, 'utf8').trim();
    await within(5_000, 'forty wait', async () => {
      const { json } = await call(`${queue}/spillway/v1/queue`, { token });
      return json['depth'] === 40;
    });
    // By the defaults `normal` has twice the share of `low`.
    const answer = await running.change(
      { classes: { low: { weight: 1_000 } } },
      'the low ones first, for once',
    );
    expect(answer.json).toEqual({
      version: 1,
      changed: [{ path: 'classes.low.weight', from: 1, to: 1_000 }],
      changedTotal: 1,
      needsRestart: [],
    });
    stub.release();
    expect((await first).status).toBe(200);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([200]));
    expect(served.slice(0, 15).filter((name) => name === 'low').length).toBeGreaterThanOrEqual(11);
  });

  test('survives kill -9 once it was acknowledged, with its origin; a rollback survives as well', async () => {
    const config = `bounds: { tasksMax: 1000 }\n`;
    const before = await serve(config);
    expect((await before.change({ bounds: { tasksMax: 500 } }, 'less')).status).toBe(200);
    await kill(before);
    const after = await serve(config);
    const shown = (await after.get('')).json;
    expect(shown).toMatchObject({
      config: { scheduler: { bounds: { tasksMax: 500 } } },
      origins: { 'bounds.tasksMax': 'overlay (version 1)' },
      version: 1,
      durable: true,
    });
    const file = join(after.document.adminTokenFile, '..', 'config-overlay.json');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await after.send('POST', '/rollback', { version: 0 })).json).toMatchObject({ version: 2 });
    await kill(after);
    const last = await serve(config);
    expect((await last.get('')).json).toMatchObject({
      config: { scheduler: { bounds: { tasksMax: 1_000 } } },
      origins: { 'bounds.tasksMax': expect.stringMatching(/spillway\.yaml:1$/) },
      version: 2,
      overlay: {},
    });
    expect((await last.get('/history')).json).toMatchObject({
      versions: [
        { version: 2, why: 'Back to version 0', who: 'admin token' },
        { version: 1, why: 'less', changed: [{ path: 'bounds.tasksMax', from: 1_000, to: 500 }] },
      ],
    });
  });

  test('is whole after a kill in the middle of changes, and holds all that were acknowledged', async () => {
    const before = await serve('');
    let acknowledged = 0;
    const storm = (async () => {
      for (let i = 1; i <= 2_000; i++) {
        const answer = await before
          .change({ bounds: { tasksMax: 1_000 + i } }, `change ${i}`)
          .catch(() => undefined);
        if (answer?.status !== 200) return;
        acknowledged = i;
      }
    })();
    await within(20_000, 'some are acknowledged', () => acknowledged >= 20);
    await Promise.all([kill(before), storm]);
    const after = await serve('');
    const { version, config } = (await after.get('')).json as {
      version: number;
      config: { scheduler: unknown };
    };
    expect([acknowledged, acknowledged + 1]).toContain(version);
    expect(config.scheduler).toMatchObject({ bounds: { tasksMax: 1_000 + version } });
    const { versions } = (await after.get('/history')).json as { versions: { version: number }[] };
    expect(versions[0]).toMatchObject({ version, why: `change ${version}` });
    expect(versions.length).toBeLessThanOrEqual(100);
  });

  test('refuses with every issue, and a stale version with 409 or 412', async () => {
    const running = await serve('');
    const bad = await running.change({ bounds: { tasksMax: 0 }, nodes: [], server: { host: '0.0.0.0' } });
    expect([bad.status, bad.headers['content-type']]).toEqual([422, 'application/problem+json']);
    expect(bad.json['issues']).toEqual([
      { path: 'nodes', rule: expect.stringMatching(/^Expected no nodes/), received: '' },
      { path: 'server.host', rule: expect.stringMatching(/^Expected no address/), received: '' },
      { path: 'bounds.tasksMax', rule: expect.stringMatching(/^Expected a whole number/), received: '0' },
    ]);
    expect((await running.send('PUT', '', { patch: {} })).status, 'a change says why').toBe(422);
    const body = { patch: { bounds: { tasksMax: 50 } }, why: 'a test' };
    const etag = String((await running.get('')).headers['etag']);
    expect((await running.send('PUT', '', body, { 'if-match': etag })).status).toBe(200);
    const later = { patch: { bounds: { tasksMax: 60 } }, why: 'a test' };
    expect((await running.send('PUT', '', later, { 'if-match': etag })).status).toBe(412);
    expect((await running.send('PUT', '', { ...later, version: 0 })).status).toBe(409);
    expect((await running.send('POST', '/rollback', { version: 9 })).status).toBe(404);
    const { status, json } = await running.send('PUT', '', { ...later, version: 1 });
    expect([status, json['version']]).toEqual([200, 2]);
    const { adminUrl } = running.document;
    const foreign = { method: 'PUT', body: later, token: 'somebody' };
    expect((await call(`${adminUrl}/spillway/v1/config`, foreign)).status).toBe(401);
  });

  test('shows no secret, anywhere', async () => {
    const running = await serve(`${nodes('http://127.0.0.1:9')}`, secret);
    await running.change({ bounds: { tasksMax: 50 } });
    for (const path of ['', '/history'])
      expect((await running.get(path)).text).not.toContain(secret.NODE_SECRET);
    const tried = await running.send('POST', '/dry-run', {
      patch: { tenants: { acme: { keys: ['sk-typed-in'] } } },
    });
    expect(tried.status).toBe(422);
    expect(tried.text).not.toContain('sk-typed-in');
  });

  test('stays on top when the file is written, and refills no bucket', async () => {
    const stub = await fixture.stub();
    const text = (tasksMax: number): string =>
      `${MODEL}${nodes(stub.url)}classes: [{ name: normal, limits: { requestsPerMinute: 1, requestsBurst: 2 } }]\nbounds: { tasksMax: ${tasksMax} }\n`;
    const running = await serve(text(100), secret);
    const { dataUrl } = running.document;
    expect([(await chat(dataUrl)).status, (await chat(dataUrl)).status]).toEqual([200, 200]);
    expect((await running.change({ placement: { heldMax: 8 } })).status).toBe(200);
    expect((await chat(dataUrl)).status).toBe(429);
    writeFileSync(join(fixture.folder, 'spillway.yaml'), text(200));
    await within(10_000, 'the file is read again', async () => {
      const { config } = (await running.get('')).json as { config: { scheduler: Record<string, unknown> } };
      expect(config.scheduler).toMatchObject({ placement: { heldMax: 8 } });
      return JSON.stringify(config.scheduler['bounds']).includes('"tasksMax":200');
    });
    expect((await chat(dataUrl)).status).toBe(429);
  });

  test('forgives no node that failed', async () => {
    const broken = createServer((req, res) => {
      res.writeHead(req.method === 'GET' ? 200 : 500, { 'content-type': 'application/json' });
      res.end(req.method === 'GET' ? '{"data": [{"id": "stub-model"}]}' : '{"error": "broken"}');
    });
    broken.listen(0, '127.0.0.1');
    await once(broken, 'listening');
    fixture.onEnd(() => void broken.close());
    const url = `http://127.0.0.1:${(broken.address() as AddressInfo).port}`;
    const running = await serve(
      `${MODEL}${nodes(url)}health: { ejectMs: 600000, ejectMsMax: 600000 }\n`,
      secret,
    );
    const { adminUrl, adminTokenFile, dataUrl } = running.document;
    const token = readFileSync(adminTokenFile, 'utf8').trim();
    const node = async (): Promise<Answer['json']> =>
      (await call(`${adminUrl}/spillway/v1/nodes/a`, { token })).json;
    await within(20_000, 'the node is ejected', async () => {
      await chat(dataUrl);
      return (await node())['state'] === 'ejected';
    });
    const before = await node();
    expect((await running.change({ classes: { low: { weight: 3 } } })).status).toBe(200);
    expect(await node()).toMatchObject({ state: 'ejected', ejections: 1, health: before['health'] });
  });

  test('works without a state folder, and says that it will not last', async () => {
    const running = await serve('state: { folder: "" }\n', { SPILLWAY_TOKEN: 'a-token-of-the-test' });
    expect((await running.change({ bounds: { tasksMax: 50 } })).status).toBe(200);
    expect((await running.get('')).json).toMatchObject({ durable: false, version: 1 });
  });

  test('a stored overlay that no longer fits stops the start, with what to do', async () => {
    const before = await serve('');
    const file = join(before.document.adminTokenFile, '..', 'config-overlay.json');
    await before.change({ bounds: { tasksMax: 50 } });
    await kill(before);
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"tasksMax"', '"tasksMx"'));
    const path = join(fixture.folder, 'spillway.yaml');
    const { code, stderr } = await fixture.cli(['serve', '--port', '0', '--config', path]);
    expect([code, stderr.trim()]).toEqual([
      2,
      'overlay (version 1): bounds.tasksMx: Unknown key; did you mean tasksMax?',
    ]);
    writeFileSync(file, '{');
    const broken = await fixture.cli(['serve', '--port', '0', '--config', path]);
    expect([broken.code, broken.stderr]).toEqual([
      2,
      expect.stringMatching(/config-overlay\.json.*move it away/),
    ]);
  });
});

describe('spillway config', () => {
  test('shows, tries, sets, tells and goes back', async () => {
    await serve('bounds: { tasksMax: 1000 }\n');
    const run = async (...args: string[]): Promise<Record<string, unknown>> => {
      const { code, stdout, stderr } = await fixture.cli(['config', ...args, '--json'], { USER: 'ada' });
      expect([code, stderr]).toEqual([0, '']);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    const changed = [{ path: 'bounds.tasksMax', from: 1_000, to: 700 }];
    expect(await run('dry-run', 'bounds.tasksMax', '700')).toMatchObject({ version: 0, changed });
    expect(await run('set', 'bounds.tasksMax', '700', '--why', 'less')).toMatchObject({
      version: 1,
      changed,
    });
    expect(await run('history')).toMatchObject({
      versions: [{ version: 1, who: 'ada', why: 'less', changed }],
    });
    expect(await run('rollback', '0', '--why', 'enough')).toMatchObject({ version: 2 });
    expect(await run('show')).toMatchObject({ version: 2, overlay: {} });
    const table = (await fixture.cli(['config', 'history'])).stdout;
    expect(table).toMatch(/^VERSION +AT +WHO +CHANGED +WHY/);
    expect(table).toContain('bounds.tasksMax');
    expect((await fixture.cli(['config', 'show'])).stdout).toMatch(
      /bounds\.tasksMax +1000 +.*spillway\.yaml:1/,
    );
  });

  test('tells every issue on a line, ends with 2, and with --json writes the problem', async () => {
    await serve('');
    const wrong = ['config', 'set', 'bounds.tasksMax', '0', '--why', 'a test'];
    const { code, stdout, stderr } = await fixture.cli(wrong);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^bounds\.tasksMax: Expected a whole number from 1 .*\(received 0\)\n$/);
    const told = await fixture.cli([...wrong, '--json']);
    expect([told.code, JSON.parse(told.stdout)]).toMatchObject([
      2,
      { status: 422, issues: [{ path: 'bounds.tasksMax' }] },
    ]);
    expect((await fixture.cli(['config', 'set', 'a..b', '1', '--why', 'x'])).code).toBe(2);
  });
});
