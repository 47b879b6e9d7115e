/** `/spillway/v1/me/…`: what a tenant learns of its own requests with its own key, and of nobody else's. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import { type CaseBench, createCaseBench, nodeAt } from '../support/case-bench.ts';
import { type Answer, call, chat } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

const ADA = 'sk-ada-0123456789';
const BOB = 'sk-bob-0123456789';
const bearer = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });

const INPUT: ConfigInput = {
  models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 1_000 } }],
  tenants: [
    {
      id: 'ada',
      nodeVisible: false,
      limits: { requestsPerMinute: 600 },
      keys: [{ id: 'k', sha256: sha256Hex(ADA) }],
    },
    { id: 'bob', keys: [{ id: 'b', sha256: sha256Hex(BOB) }] },
  ],
};

const own = (started: StartedGateway, rest: string, key = ADA): Promise<Answer> =>
  call(`${started.dataUrl}/spillway/v1/me/${rest}`, { headers: bearer(key) });
const idOf = (answer: Answer): string => String(answer.headers['x-spillway-id']);

async function start(script: NodeScript): Promise<StartedGateway> {
  const node = await bench.node(script);
  return bench.gateway({ ...INPUT, nodes: [nodeAt('secret-node', node, { slots: 1 })] });
}

const ask = (started: StartedGateway, key = ADA): Promise<Answer> =>
  chat(started.dataUrl, {
    model: 'tiny',
    headers: { ...bearer(key), 'x-spillway-deadline-ms': '60000' },
  });

describe('a tenant’s own requests', () => {
  test('are told to their tenant, and to others as requests that never were', async () => {
    const started = await start((res) => sendJson(res, 200, completion('hello')));
    const id = idOf(await ask(started));
    const mine = await own(started, `requests/${encodeURIComponent(id)}`);
    expect(mine.status).toBe(200);
    expect(mine.json).toMatchObject({
      id,
      state: 'served',
      class: 'normal',
      model: 'tiny',
      attempts: 1,
      position: 0,
      unblock: 'Nothing: it was served.',
    });
    const others = await own(started, `requests/${encodeURIComponent(id)}`, BOB);
    const unknown = await own(started, 'requests/no-such-id', BOB);
    expect([others.status, others.text]).toEqual([404, unknown.text]);
    expect(others.headers['content-type']).toBe(unknown.headers['content-type']);
  });

  test('name no node to a tenant that may not know them, whatever became of the request', async () => {
    const answers: (() => void)[] = [];
    let isFailing = false;
    const started = await start((res) => {
      if (isFailing) sendJson(res, 500, { error: 'broken' });
      else answers.push(() => sendJson(res, 200, completion('hello')));
    });
    const submit = vi.spyOn(started.gateway, 'submit');
    const running = ask(started);
    const waiting = ask(started);
    await vi.waitUntil(() => answers.length === 1 && submit.mock.results.length === 2, { timeout: 20_000 });
    const ids = submit.mock.results.map((result) => result.value.publicId as string);
    const [runs, waits] = await Promise.all(ids.map((id) => own(started, `requests/${id}`)));
    expect(runs?.json).toMatchObject({ state: 'running' });
    expect(waits?.json).toMatchObject({
      state: 'queued',
      gates: [{ gate: 'no-room', detail: 'All nodes that could serve it are busy' }],
      refusals: { 'no-room': 1 },
      unblock: expect.stringMatching(/^Room on a node/),
      etaMs: expect.any(Number),
    });
    isFailing = true;
    answers[0]?.();
    const served = idOf(await running);
    const failed = await waiting;
    expect(failed.status).toBe(502);
    for (const id of [served, idOf(failed)]) {
      const told = await own(started, `requests/${id}`);
      expect(told.status).toBe(200);
      expect(told.text).not.toContain('secret-node');
    }
    expect(`${runs?.text}${waits?.text}`).not.toContain('secret-node');
    const admin = await call(`${started.adminUrl}/spillway/v1/requests/${served}`, {
      token: started.adminToken,
    });
    expect(admin.text).toContain('secret-node');
  });

  test('name the node to a tenant that may know it', async () => {
    const started = await start((res) => sendJson(res, 200, completion('hello')));
    const told = await own(started, `requests/${idOf(await ask(started, BOB))}`, BOB);
    expect(told.json).toMatchObject({ node: 'secret-node' });
  });
});

describe('a tenant’s own usage', () => {
  test('counts ends, tokens and work of this tenant alone, and tells what is left of its limits', async () => {
    const started = await start((res) => sendJson(res, 200, completion('hello')));
    await ask(started);
    await ask(started);
    await ask(started, BOB);
    await chat(started.dataUrl, { model: 'nobody-offers', headers: bearer(ADA) });
    const told = await own(started, 'usage');
    expect(told.status).toBe(200);
    const { usage } = completion('hello') as { usage: { prompt_tokens: number; completion_tokens: number } };
    expect(told.json).toEqual({
      tenant: 'ada',
      since: expect.any(Number),
      requests: { served: 2, 'unknown-model': 1 },
      tokens: { input: 2 * usage.prompt_tokens, output: 2 * usage.completion_tokens },
      workMs: 2_000,
      limits: {
        requests: { limit: expect.any(Number), remaining: expect.any(Number), resetMs: expect.any(Number) },
      },
    });
    expect((await own(started, 'usage', BOB)).json).toMatchObject({ requests: { served: 1 }, limits: null });
  });
});

describe('the tenant’s routes', () => {
  test('need a key of a tenant: neither none, nor a wrong one, nor the admin token will do', async () => {
    const started = await start((res) => sendJson(res, 200, completion('hello')));
    for (const rest of ['usage', 'requests/x', 'nothing', '']) {
      for (const key of ['', 'sk-wrong', started.adminToken]) {
        const answer = await own(started, rest, key);
        expect([rest, answer.status]).toEqual([rest, 401]);
        expect(answer.headers['content-type']).toBe('application/problem+json');
      }
    }
    expect((await own(started, 'nothing')).status).toBe(404);
    const post = await call(`${started.dataUrl}/spillway/v1/me/usage`, { headers: bearer(ADA), body: {} });
    expect([post.status, post.headers['allow']]).toEqual([405, 'GET']);
  });

  test('answer one tenant so often a second, and another one still', async () => {
    const started = await start((res) => sendJson(res, 200, completion('hello')));
    const now = vi.spyOn(started.gateway, 'now').mockReturnValue(started.gateway.now());
    const statuses: number[] = [];
    for (let count = 0; count < 11; count++) statuses.push((await own(started, 'usage')).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    expect((await own(started, 'usage', BOB)).status).toBe(200);
    now.mockRestore();
  });
});
