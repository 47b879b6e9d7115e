/** The overload ladder over real sockets: each trigger by what nodes really tell, and the stage set by hand. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type StartedGateway, startGateway } from '../../src/apps/gateway/start-gateway.ts';
import { type ConfigInput, resolveConfig } from '../../src/core/config/index.ts';
import { type Answer, call, chat, createFixture, type Fixture } from './cli-fixture.ts';

/** Evidence counts at once, and is over at once: what is tried here are the roads, not the times. */
const AT_ONCE = { memoryMs: 0, queueMs: 0, calmMs: 0, leaseMs: 500, criticalOnlyMs: 500 };
const MODEL = 'stub-model';
const SOON = { timeout: 8_000, interval: 20 };

let fixture: Fixture;

beforeEach(() => {
  fixture = createFixture();
});

afterEach(() => fixture.end());

async function start(input: ConfigInput = {}): Promise<StartedGateway> {
  const health = { reconcileMs: 100 };
  const resolved = resolveConfig({ health, ladder: AT_ONCE, ...input, server: { port: 0, drainMs: 0 } });
  if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
  const started = await startGateway(resolved.config, {});
  fixture.onEnd(() => started.stop());
  return started;
}

/** A server on a free port of this machine. */
async function listen(handler: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fixture.onEnd(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function ladder(started: StartedGateway, options: { method?: string; body?: unknown } = {}): Promise<Answer> {
  const url = `${started.adminUrl}/spillway/v1/ladder`;
  return call(url, { token: started.adminToken, ...options });
}

function set(started: StartedGateway, body: unknown): Promise<Answer> {
  return ladder(started, { method: 'PUT', body });
}

function ask(started: StartedGateway, className: string, deadlineMs?: number): Promise<Answer> {
  const deadline = deadlineMs === undefined ? {} : { 'x-spillway-deadline-ms': String(deadlineMs) };
  return chat(started.dataUrl, { headers: { 'x-spillway-class': className, ...deadline } });
}

async function untilStage(started: StartedGateway, stage: number): Promise<Record<string, unknown>> {
  return await vi.waitFor(async () => {
    const { json } = await ladder(started);
    expect(json['stage']).toBe(stage);
    return json;
  }, SOON);
}

interface Trigger {
  readonly trigger: string;
  readonly value: number | null;
  readonly isLit: boolean;
}

function triggerOf(page: Record<string, unknown>, name: string): Trigger {
  return (page['triggers'] as readonly Trigger[]).find(({ trigger }) => trigger === name) as Trigger;
}

describe('the ladder set by hand', () => {
  test('refuses all but the first class and a trickle, says so, and is over by itself', async () => {
    const stub = await fixture.stub();
    const started = await start({ nodes: [{ id: 'one', url: stub.url }] });
    const why = 'an exercise';
    const { status, json } = await set(started, { stage: 3, seconds: 2, why, who: 'ops' });
    expect([status, json['stage']]).toEqual([200, 3]);
    expect(json['override']).toEqual({
      stage: 3,
      since: expect.any(Number),
      expires: expect.any(Number),
      who: 'ops',
      why,
    });
    const first = await ask(started, 'low');
    expect(first.status, 'the first of a hundred').toBe(200);
    const refused = await ask(started, 'low');
    expect([refused.status, refused.headers['x-spillway-reason']]).toEqual([429, 'shed']);
    expect(refused.text).toContain('ladder stage 3, set by hand');
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    for (let i = 0; i < 3; i++) expect((await ask(started, 'critical')).status).toBe(200);
    const page = await call(`${started.adminUrl}/metrics`, { token: started.metricsToken });
    expect(page.text).toMatch(/^spillway_ladder_stage 3$/m);
    const explained = await call(
      `${started.adminUrl}/spillway/v1/requests/${String(refused.headers['x-spillway-id'])}`,
      { token: started.adminToken },
    );
    expect(JSON.stringify(explained.json['gates'])).toContain('ladder stage 3, set by hand');
    expect((await untilStage(started, 0))['override']).toBeNull();
    expect((await ask(started, 'low')).status).toBe(200);
  });

  test('lets one in a hundred of each refused class pass', async () => {
    const stub = await fixture.stub();
    const started = await start({ nodes: [{ id: 'one', url: stub.url }] });
    await set(started, { stage: 3, seconds: 600, why: 'an exercise' });
    for (const className of ['normal', 'low']) {
      const answers: number[] = [];
      for (let i = 0; i < 101; i++) answers.push((await ask(started, className)).status);
      expect(answers.filter((status) => status === 200)).toHaveLength(2);
      expect([answers[0], answers[100], answers[99]]).toEqual([200, 200, 429]);
    }
  });

  test('is taken back with null, and asks for a time, a reason and a stage', async () => {
    const started = await start();
    for (const body of [
      { stage: 4, seconds: 1, why: 'x' },
      { stage: 1, why: 'x' },
      { stage: 1, seconds: 1 },
      { stage: 1, seconds: 21_601, why: 'x' },
      { stage: 1, seconds: 0, why: 'x' },
      { stage: 1, seconds: 1, why: '' },
      { stage: 1, seconds: 1, why: 'x', what: 1 },
      {},
    ]) {
      const answer = await set(started, body);
      expect([answer.status, answer.headers['content-type']], JSON.stringify(body)).toEqual([
        422,
        'application/problem+json',
      ]);
    }
    await set(started, { stage: 2, seconds: 600, why: 'x' });
    expect((await ladder(started)).json).toMatchObject({ stage: 2, override: { who: 'admin token' } });
    expect((await set(started, { stage: null })).json).toMatchObject({ stage: 0, override: null });
    expect((await call(`${started.adminUrl}/spillway/v1/ladder`)).status).toBe(401);
  });

  test('can be set, seen and given back from the command line', async () => {
    const running = await fixture.serve([]);
    const cli = (...args: string[]): ReturnType<Fixture['cli']> =>
      fixture.cli(['ladder', '--url', running.document.adminUrl, ...args]);
    expect((await cli()).stdout).toBe('stage 0\n');
    const done = await cli('--set', '3', '--for', '10m', '--why', 'an exercise');
    expect(done.stdout).toMatch(/^stage 3\nset by admin token for (600|599|598) s more: an exercise\n$/);
    expect(JSON.parse((await cli('--json')).stdout)).toMatchObject({
      stage: 3,
      override: { why: 'an exercise' },
    });
    expect((await cli('--release')).stdout).toBe('stage 0\n');
    const wrong = await Promise.all([cli('--set', '4'), cli('--set', '1'), cli('--set', '1', '--for', '10')]);
    expect(wrong.map(({ code }) => code)).toEqual([2, 2, 2]);
    expect(wrong[1]?.stderr).toContain('Expected --for and --why with --set');
  });

  test('is refused while the gate is off, and holds nothing back in shadow', async () => {
    const off = await start({ gates: { ladder: 'off' } });
    const answer = await set(off, { stage: 3, seconds: 600, why: 'x' });
    expect([answer.status, answer.json['reason']]).toEqual([409, 'gate-off']);
    const stub = await fixture.stub();
    const shadow = await start({ gates: { ladder: 'shadow' }, nodes: [{ id: 'one', url: stub.url }] });
    await set(shadow, { stage: 3, seconds: 600, why: 'x' });
    expect((await ladder(shadow)).json).toMatchObject({ stage: 3, mode: 'shadow' });
    for (let i = 0; i < 3; i++) expect((await ask(shadow, 'low')).status).toBe(200);
    const gates = await call(`${shadow.adminUrl}/spillway/v1/gates`, { token: shadow.adminToken });
    expect(gates.json['gates']).toContainEqual({
      gate: 'ladder',
      mode: 'shadow',
      refused: 0,
      wouldRefuse: 2,
    });
  });
});

describe('memory', () => {
  test('is what a node tells with its heartbeat, less what its engine takes at start', async () => {
    const stub = await fixture.stub();
    const started = await start();
    const nodes = `${started.adminUrl}/spillway/v1/nodes`;
    const body = { id: 'n', url: stub.url, models: [MODEL] };
    const registered = await call(nodes, { token: started.adminToken, body });
    const token = String(registered.json['credential']);
    const beat = (change: unknown): Promise<Answer> => call(`${nodes}/n/heartbeat`, { token, body: change });
    expect((await beat({ memoryUse: 1.5 })).status).toBe(422);
    expect((await beat({ memoryUse: 0.91, reservedUse: 0.9 })).status).toBe(200);
    expect((await ask(started, 'normal')).status).toBe(200);
    await vi.waitFor(async () => {
      expect(triggerOf((await ladder(started)).json, 'memory').value).toBe(0.1);
    }, SOON);
    expect((await ladder(started)).json['stage'], 'nearly nothing beyond the reserve').toBe(0);
    await beat({ memoryUse: 0.99 });
    const page = await untilStage(started, 1);
    expect(triggerOf(page, 'memory')).toMatchObject({ value: 0.9, isLit: true, enter: 0.85, stage: 1 });
    expect(page['unblock']).toBe('Memory use below 75 % for 0 s.');
    expect((await ask(started, 'low')).status, 'stage 1 refuses nothing').toBe(200);
    await beat({ memoryUse: 0.92 });
    await untilStage(started, 0);
  });

  test('is the cache use of an engine that speaks like vLLM', async () => {
    let cacheUse = 0.88;
    const url = await listen((req, res) => {
      if (req.url === '/v1/models') return sendJson(res, { object: 'list', data: [{ id: MODEL }] });
      if (req.url !== '/metrics') return res.end(req.method === 'GET' ? '' : CHAT);
      res.end(`vllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc ${cacheUse}\n`);
    });
    const started = await start({ nodes: [{ id: 'v', url, protocol: 'vllm' }] });
    await ask(started, 'normal');
    const page = await untilStage(started, 1);
    expect(triggerOf(page, 'memory')).toMatchObject({ value: 0.88, isLit: true });
    cacheUse = 0.2;
    await untilStage(started, 0);
  });

  test("is the fullest of a node's devices on the page of a DCGM exporter, and no header goes there", async () => {
    const seen: IncomingMessage['headers'][] = [];
    let used = 75_000;
    const exporter = await listen((req, res) => {
      seen.push(req.headers);
      res.statusCode = req.url === '/metrics' ? 200 : 404;
      res.end(dcgmPage({ '0': [used, 81_920 - used], '1': [1_000, 80_920], '7': [81_000, 920] }));
    });
    const stub = await fixture.stub();
    const telemetry = { url: exporter, gpus: ['0', '1'], reservedUse: 0.1 };
    const headers = { 'x-secret': 'of the node' };
    const started = await start({ nodes: [{ id: 'g', url: stub.url, headers, telemetry }] });
    await ask(started, 'normal');
    const page = await untilStage(started, 1);
    expect(triggerOf(page, 'memory').value).toBeCloseTo((75_000 / 81_920 - 0.1) / 0.9, 3);
    expect(seen[0]).not.toHaveProperty('x-secret');
    used = 8_000;
    await untilStage(started, 0);
  });

  test('is unknown where the page is gone, redirects, or is at an address that must not be fetched', async () => {
    let asked = 0;
    const target = await listen((_req, res) => {
      asked += 1;
      res.end(dcgmPage({ '0': [99, 1] }));
    });
    const moved = await listen((_req, res) => res.writeHead(302, { location: `${target}/metrics` }).end());
    const stubs = await Promise.all([fixture.stub(), fixture.stub(), fixture.stub()]);
    const urls = [moved, 'http://127.0.0.1:9', 'http://169.254.169.254/metrics'];
    const started = await start({
      nodes: stubs.map(({ url }, i) => ({
        id: `n${i}`,
        url,
        telemetry: { url: urls[i] as string, reservedUse: 0 },
      })),
    });
    await ask(started, 'normal');
    await vi.waitFor(async () => {
      expect(triggerOf((await ladder(started)).json, 'queue').value).toBe(0);
    }, SOON);
    expect(triggerOf((await ladder(started)).json, 'memory')).toMatchObject({ value: null, isLit: false });
    expect(asked, 'a redirect is not followed').toBe(0);
    const nodes = await call(`${started.adminUrl}/spillway/v1/config`, { token: started.adminToken });
    expect(nodes.status).toBe(200);
  });
});

describe('the queue', () => {
  test('leads to stage 2: the first class is let in, others are refused with the evidence, and it ends', async () => {
    const stub = await fixture.stub();
    stub.holding = true;
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: MODEL }], slots: 1 }],
      ladder: { ...AT_ONCE, depthMax: 8, waitShare: 0.01 },
    });
    const waiting = Array.from({ length: 20 }, (_, i) =>
      chat(started.dataUrl, { headers: { 'x-spillway-class': i % 2 === 0 ? 'critical' : 'normal' } }),
    );
    const page = await untilStage(started, 2);
    expect(triggerOf(page, 'queue').isLit).toBe(true);
    expect(page['model']).toBe(MODEL);
    const refused = await ask(started, 'normal');
    expect([refused.status, refused.headers['x-spillway-reason']]).toEqual([429, 'shed']);
    expect(refused.text).toMatch(/ladder stage 2: \d+ waiting, (critical|normal) for \d/);
    const critical = ask(started, 'critical');
    stub.release();
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect((await critical).status).toBe(200);
    await untilStage(started, 0);
    expect((await ask(started, 'normal')).status).toBe(200);
  });
});

describe('missed deadlines', () => {
  test('beside a queue lead to stage 3, in which the first class alone is let in', async () => {
    const stub = await fixture.stub();
    stub.holding = true;
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: MODEL }], slots: 1 }],
      models: [{ id: MODEL, profile: { kind: 'generic', meanMs: 5 } }],
      ladder: { ...AT_ONCE, depthMax: 8, waitShare: 1 },
      gates: { 'flow-wait': 'off', 'retry-shed': 'off', preemption: 'off' },
    });
    // It holds the node: one that ran into its deadline there would speak against the node.
    const asked: Promise<Answer>[] = [ask(started, 'normal')];
    await vi.waitUntil(() => stub.calls === 1, SOON);
    const wave = (): void => {
      for (let i = 0; i < 12; i++) asked.push(ask(started, 'normal', 1_500));
    };
    await vi.waitUntil(
      async () => {
        if (started.gateway.queue().depth < 10) wave();
        return (await ladder(started)).json['stage'] === 3;
      },
      { timeout: 20_000, interval: 100 },
    );
    const two = await Promise.all([ask(started, 'normal', 1_500), ask(started, 'normal', 1_500)]);
    const refused = two.find(({ headers }) => headers['x-spillway-reason'] === 'shed');
    expect(refused?.text, 'one of two is the trickle').toMatch(/ladder stage 3: .*% of deadlines missed/);
    const critical = Array.from({ length: 3 }, () => ask(started, 'critical'));
    await vi.waitUntil(() => started.gateway.queue().byClass['critical']?.depth === 3, SOON);
    stub.release();
    expect((await Promise.all(critical)).map(({ status }) => status)).toEqual([200, 200, 200]);
    await Promise.all(asked);
  });
});

describe('lesser answers', () => {
  test('come first from stage 1 on, for the last class and by consent', async () => {
    const [whole, small] = [await fixture.stub(), await fixture.stub('small')];
    const profile = { kind: 'generic', meanMs: 5 } as const;
    const started = await start({
      nodes: [
        { id: 'whole', url: whole.url, models: [{ model: MODEL }] },
        { id: 'less', url: small.url, models: [{ model: 'small' }] },
      ],
      models: [
        { id: MODEL, profile, variants: [{ model: 'small' }] },
        { id: 'small', profile },
      ],
    });
    const degraded = async (className: string, consent: string): Promise<unknown> => {
      const headers = { 'x-spillway-class': className, 'x-spillway-degrade': consent };
      const answer = await chat(started.dataUrl, { headers });
      expect(answer.status).toBe(200);
      return answer.headers['x-spillway-degraded'];
    };
    expect(await degraded('low', 'model'), 'at rest').toBeUndefined();
    await set(started, { stage: 1, seconds: 600, why: 'an exercise' });
    expect(await degraded('low', 'model')).toBe('model:small');
    expect(await degraded('low', 'none')).toBeUndefined();
    expect(await degraded('normal', 'model')).toBeUndefined();
    expect([whole.calls, small.calls]).toEqual([3, 1]);
  });
});

describe('an optional model', () => {
  test('is switched off while another one needs the nodes that both use, and is back afterwards', async () => {
    const stub = await fixture.stub();
    stub.holding = true;
    const profile = { kind: 'generic', meanMs: 50 } as const;
    const started = await start({
      nodes: [{ id: 'one', url: stub.url, models: [{ model: MODEL }, { model: 'extra' }], slots: 1 }],
      models: [
        { id: MODEL, profile },
        { id: 'extra', profile, optional: true },
      ],
      ladder: { ...AT_ONCE, depthMax: 8 },
      gates: { preemption: 'off' },
    });
    const headers = { 'x-spillway-class': 'critical' };
    const extra = (): Promise<Answer> => chat(started.dataUrl, { model: 'extra', headers });
    const waiting = Array.from({ length: 20 }, () => ask(started, 'critical'));
    await untilStage(started, 2);
    const refused = await extra();
    expect([refused.status, refused.headers['x-spillway-reason']]).toEqual([429, 'shed']);
    expect(refused.text).toContain('switched off while others need its nodes');
    stub.release();
    for (const answer of await Promise.all(waiting)) expect(answer.status).toBe(200);
    await untilStage(started, 0);
    expect((await extra()).status).toBe(200);
  });
});

const CHAT = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
});

function sendJson(res: ServerResponse, value: unknown): void {
  res.setHeader('content-type', 'application/json');
  res.end(JSON.stringify(value));
}

/** The text of an exporter: framebuffer used and free in MiB, by device. */
function dcgmPage(devices: Readonly<Record<string, readonly [used: number, free: number]>>): string {
  const lines = ['# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).'];
  for (const [name, pick] of [
    ['DCGM_FI_DEV_FB_USED', 0],
    ['DCGM_FI_DEV_FB_FREE', 1],
  ] as const) {
    lines.push(`# TYPE ${name} gauge`);
    for (const [gpu, memory] of Object.entries(devices)) {
      const labels = `gpu="${gpu}",UUID="GPU-${gpu}",pci_bus_id="00000000:0${gpu}:00.0",modelName="NVIDIA, \\"A100\\" {80}"`;
      lines.push(`${name}{${labels},Hostname="host-1"} ${memory[pick]}`);
    }
  }
  return `${lines.join('\n')}\n`;
}
