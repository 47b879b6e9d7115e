/** `GET /requests/{id}` and `spillway explain`: every way in which a request can wait or end, over real sockets. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { REASONS } from '../../src/edge/admin/finished.ts';
import { OUTCOMES } from '../../src/edge/outcomes/table.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { type CaseBench, createCaseBench, nodeAt } from '../support/case-bench.ts';
import { type Answer, call, chat, createFixture, type Fixture } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson } from './edge-fixture.ts';

let bench: CaseBench;
let cli: Fixture;

beforeEach(() => {
  bench = createCaseBench();
  cli = createFixture();
});

afterEach(async () => {
  await bench.end();
  await cli.end();
});

interface Explained {
  readonly id: string;
  readonly state: string;
  readonly position: number | null;
  readonly etaMs: number | null;
  readonly timeline: Readonly<Record<string, number | null>>;
  readonly gates: readonly { readonly gate: string; readonly since: number; readonly detail: string }[];
  readonly nodes: readonly Readonly<Record<string, unknown>>[];
  readonly failures: readonly Readonly<Record<string, unknown>>[];
  readonly unblock: string;
  readonly [field: string]: unknown;
}

async function explain(started: StartedGateway, id: string, query = ''): Promise<Explained> {
  const url = `${started.adminUrl}/spillway/v1/requests/${encodeURIComponent(id)}${query}`;
  const answer = await call(url, { token: started.adminToken });
  expect(answer.status).toBe(200);
  return answer.json as unknown as Explained;
}

const idOf = (answer: Answer): string => String(answer.headers['x-spillway-id']);

/** Answers that wait until the test lets them go. */
function heldNode(): { readonly script: NodeScript; release(): void; readonly waiting: number } {
  const waiting: (() => void)[] = [];
  return {
    script: (res) => void waiting.push(() => sendJson(res, 200, completion('hello'))),
    release: () => {
      for (const answer of waiting.splice(0)) answer();
    },
    get waiting() {
      return waiting.length;
    },
  };
}

const MODELS = [{ id: 'tiny', profile: { kind: 'generic' as const, meanMs: 1_000 } }];
const tiny = { model: 'tiny' };

describe('explain of a request that lives', () => {
  test('tells what holds a queued one, its position, and where a running one runs', async () => {
    const held = heldNode();
    const node = await bench.node(held.script);
    const started = await bench.gateway({ nodes: [nodeAt('one', node, { slots: 1 })], models: MODELS });
    const submit = vi.spyOn(started.gateway, 'submit');
    const first = chat(started.dataUrl, tiny);
    await vi.waitUntil(() => held.waiting === 1, { timeout: 20_000 });
    const deadline = { ...tiny, headers: { 'x-spillway-deadline-ms': '60000' } };
    const second = chat(started.dataUrl, deadline);
    const third = chat(started.dataUrl, deadline);
    await vi.waitUntil(() => submit.mock.results.length === 3, { timeout: 20_000 });
    const [running, next, last] = submit.mock.results.map((result) => result.value.publicId as string);
    expect(await explain(started, running ?? '')).toMatchObject({
      state: 'running',
      node: 'one',
      attempts: 1,
      gates: [],
      etaMs: expect.any(Number),
      unblock: 'It runs.',
    });
    expect(await explain(started, next ?? '')).toMatchObject({ state: 'queued', node: null, position: 0 });
    const waiting = await explain(started, last ?? '');
    expect(waiting).toMatchObject({
      state: 'queued',
      position: 1,
      workMs: 1_000,
      deadlineMs: 60_000,
      gates: [{ gate: 'no-room', since: expect.any(Number), detail: expect.stringContaining('busy') }],
      nodes: [{ id: 'one', eligible: false, reasons: ['no-room'] }],
      nodesTotal: 1,
      nodesNextOffset: null,
    });
    expect(waiting.etaMs).toBeGreaterThan(0);
    expect(waiting.unblock).toContain('no-room');
    await vi.waitUntil(() => {
      held.release();
      return started.gateway.queue().depth + started.gateway.queue().running === 0;
    });
    expect((await Promise.all([first, second, third])).map((answer) => answer.status)).toEqual([
      200, 200, 200,
    ]);
  });

  test('pages the nodes of a fleet', async () => {
    const held = heldNode();
    const node = await bench.node(held.script);
    const nodes = Array.from({ length: 7 }, (_, i) => nodeAt(`n${i}`, node, { slots: 1 }));
    const started = await bench.gateway({ nodes, models: MODELS });
    const submit = vi.spyOn(started.gateway, 'submit');
    const answer = chat(started.dataUrl, tiny);
    await vi.waitUntil(() => held.waiting === 1, { timeout: 20_000 });
    const id = submit.mock.results[0]?.value.publicId as string;
    const page = await explain(started, id, '?nodesOffset=2&nodesLimit=3');
    expect(page.nodes.map((row) => row['id'])).toEqual(['n2', 'n3', 'n4']);
    expect(page).toMatchObject({ nodesTotal: 7, nodesNextOffset: 5 });
    held.release();
    await answer;
  });
});

describe('what was decided about a request', () => {
  test('is told with the nodes that were compared, page by page over the decisions, and in plain words', async () => {
    const held = heldNode();
    const [one, two] = [await bench.node(held.script), await bench.node(held.script)];
    const nodes = [nodeAt('one', one, { slots: 1 }), nodeAt('two', two, { slots: 1 })];
    const started = await bench.gateway({ nodes, models: MODELS });
    const submit = vi.spyOn(started.gateway, 'submit');
    const deadline = { ...tiny, headers: { 'x-spillway-deadline-ms': '60000' } };
    const answers = [chat(started.dataUrl, deadline), chat(started.dataUrl, deadline)];
    await vi.waitUntil(() => held.waiting === 2, { timeout: 20_000 });
    answers.push(chat(started.dataUrl, deadline));
    await vi.waitUntil(() => submit.mock.results.length === 3, { timeout: 20_000 });
    await vi.waitUntil(() => {
      held.release();
      return started.gateway.queue().depth + started.gateway.queue().running === 0;
    });
    const ids = (await Promise.all(answers)).map(idOf);
    const last = await explain(started, ids[2] as string);
    const decisions = last['decisions'] as Record<string, unknown>[];
    expect(decisions.map((row) => row['kind'])).toEqual(
      expect.arrayContaining(['admitted', 'queued', 'placed', 'sent', 'first-byte', 'done']),
    );
    expect(decisions.find((row) => row['kind'] === 'queued')).toMatchObject({ refusals: { 'no-room': 2 } });
    const placed = decisions.find((row) => row['kind'] === 'placed');
    const node = { id: expect.any(String), doneMs: expect.any(Number) };
    expect(placed).toMatchObject({ attempt: 1, task: ids[2], node: expect.any(String), nodes: [node, node] });
    const url = `${started.adminUrl}/spillway/v1/decisions`;
    const all: Record<string, unknown>[] = [];
    for (let since = 0, pages = 0; pages < 50; pages++) {
      const page = await call(`${url}?since=${since}&limit=7`, { token: started.adminToken });
      const { next, oldest, dropped } = page.json as { next: number; oldest: number; dropped: number };
      expect([oldest, dropped]).toEqual([1, 0]);
      const rows = page.json['decisions'] as Record<string, unknown>[];
      if (rows.length === 0) break;
      all.push(...rows);
      since = next;
    }
    expect(all.map((row) => row['seq'])).toEqual(all.map((_, index) => index + 1));
    expect(all.filter((row) => row['task'] === ids[2])).toEqual(decisions);
    expect(all.filter((row) => row['kind'] === 'node-joined').map((row) => row['node'])).toEqual([
      'one',
      'two',
    ]);
    const args = ['explain', ids[2] as string, '--url', started.adminUrl, '--token', started.adminToken];
    const words = (await cli.cli(args)).stdout;
    expect(words).toMatch(/placed {4}on (one|two); done soonest on (one|two) .*(one|two)/);
    expect(words).toContain('nodes could not take it: 2 no-room');
  });
});

describe('explain of a request that has ended', () => {
  test('tells where it was served', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const started = await bench.gateway({ nodes: [nodeAt('one', node)], models: MODELS });
    const explained = await explain(started, idOf(await chat(started.dataUrl, tiny)));
    expect(explained).toMatchObject({
      state: 'served',
      node: 'one',
      position: 0,
      etaMs: 0,
      gates: [],
      nodes: [{ id: 'one', eligible: true, reasons: [], attempt: 1, result: 'served' }],
      nodesTotal: 1,
      unblock: 'Nothing: it was served.',
    });
  });

  test('tells the gate that refused it, with both of its numbers and the hint that was given', async () => {
    const held = heldNode();
    const node = await bench.node(held.script);
    const started = await bench.gateway({ nodes: [nodeAt('one', node, { slots: 1 })], models: MODELS });
    const wish = { ...tiny, headers: { 'x-spillway-deadline-ms': '4000' } };
    const all = Array.from({ length: 6 }, () => chat(started.dataUrl, wish));
    const refused = await Promise.any(
      all.map(async (answer) =>
        (await answer).status === 429 ? answer : Promise.reject(new Error('served')),
      ),
    );
    expect(refused.headers['x-spillway-reason']).toBe('deadline-infeasible');
    const explained = await explain(started, idOf(refused));
    expect(explained).toMatchObject({
      state: 'rejected',
      reason: 'deadline-infeasible',
      position: 0,
      nodes: [],
    });
    expect(explained.etaMs).toBeGreaterThan(0);
    const [gate] = explained.gates;
    expect(gate?.gate).toBe('deadline-infeasible');
    expect(gate?.since).toBe(explained.timeline['done']);
    expect(gate?.detail).toMatch(
      /^What normal of tenant anonymous had waiting would take about [\d.]+ m?s at its share; at most 1\.0 s may wait for its deadline of 4\.0 s \(asked for\)$/,
    );
    expect(explained.unblock).toMatch(/^The same request again after about [\d.]+ m?s/);
    held.release();
    await vi.waitUntil(() => {
      held.release();
      return started.gateway.queue().running === 0;
    });
    await Promise.all(all);
  });

  test('tells that no node can finish in time, and that a retry does not help', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const models = [{ id: 'tiny', profile: { kind: 'generic' as const, meanMs: 600_000 } }];
    const started = await bench.gateway({ nodes: [nodeAt('one', node, { slots: 1 })], models });
    const refused = await chat(started.dataUrl, { ...tiny, headers: { 'x-spillway-deadline-ms': '2000' } });
    expect(refused.headers['x-spillway-reason']).toBe('too-slow');
    expect(await explain(started, idOf(refused))).toMatchObject({
      etaMs: null,
      gates: [{ gate: 'too-slow', detail: expect.stringContaining('10.0 min of work') }],
      unblock: expect.stringContaining('A longer deadline'),
    });
  });

  test('keeps a model that nobody offers explainable, its name at a bounded length', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const started = await bench.gateway({ nodes: [nodeAt('one', node)], models: MODELS });
    const refused = await chat(started.dataUrl, { model: 'nothing-like-it' });
    expect(refused.status).toBe(404);
    expect(await explain(started, idOf(refused))).toMatchObject({
      state: 'rejected',
      reason: 'unknown-model',
      model: 'nothing-like-it',
      position: 0,
      etaMs: null,
      workMs: null,
      gates: [{ gate: 'unknown-model', detail: expect.stringContaining('No node offers nothing-like-it') }],
      nodes: [],
      unblock: expect.stringContaining('alias'),
    });
    const long = await explain(started, idOf(await chat(started.dataUrl, { model: 'm'.repeat(250) })));
    expect(String(long['model']).length).toBe(201);
  });

  test('names every node of the model when none can take work', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const started = await bench.gateway({
      nodes: [nodeAt('one', node), nodeAt('two', node)],
      models: MODELS,
    });
    for (const { id } of started.gateway.nodes()) await started.gateway.setCordoned(id, true);
    const refused = await chat(started.dataUrl, tiny);
    expect(refused.status).toBe(503);
    const explained = await explain(started, idOf(refused));
    expect(explained).toMatchObject({ state: 'rejected', reason: 'no-node' });
    expect(explained.nodes).toEqual([
      { id: 'one', eligible: false, reasons: ['cordoned'] },
      { id: 'two', eligible: false, reasons: ['cordoned'] },
    ]);
  });

  test('lists the nodes that failed it, and how', async () => {
    const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
    const reset = await bench.node((res) => void res.socket?.destroy());
    const started = await bench.gateway({
      nodes: [nodeAt('broken', broken), nodeAt('reset', reset)],
      models: MODELS,
    });
    const failed = await chat(started.dataUrl, tiny);
    expect(failed.status).toBe(502);
    const explained = await explain(started, idOf(failed));
    expect(explained).toMatchObject({ state: 'failed', reason: 'node-failed', attempts: 2, position: 0 });
    const rows = explained.nodes.toSorted((a, b) => (String(a['id']) < String(b['id']) ? -1 : 1));
    expect(rows).toMatchObject([
      { id: 'broken', eligible: false, reasons: ['server-error'], result: 'failed' },
      { id: 'reset', eligible: false, reasons: ['reset'], result: 'failed' },
    ]);
    expect(explained.failures.map((row) => row['attempt'])).toEqual([1, 2]);
    expect(explained.gates[0]?.detail).toContain('2 of its attempts failed');
    expect(explained.gates[0]?.detail).toContain('broken (server-error)');
  });

  test('keeps the failed attempt of a request that another node served', async () => {
    const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
    const good = await bench.node((res) => sendJson(res, 200, completion('hello')));
    const started = await bench.gateway({
      nodes: [nodeAt('broken', broken), nodeAt('good', good)],
      models: MODELS,
    });
    const answers = await Promise.all(Array.from({ length: 4 }, () => chat(started.dataUrl, tiny)));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 200]);
    const retried = answers.find((answer) => answer.headers['x-spillway-attempts'] === '2');
    const explained = await explain(started, idOf(retried as Answer));
    expect(explained.nodes).toMatchObject([
      { id: 'broken', eligible: false, reasons: ['server-error'], attempt: 1, result: 'failed' },
      { id: 'good', eligible: true, reasons: [], attempt: 2, result: 'served' },
    ]);
  });

  test('tells that the client left, and blames nobody', async () => {
    const held = heldNode();
    const node = await bench.node(held.script);
    const started = await bench.gateway({ nodes: [nodeAt('one', node)], models: MODELS });
    const submit = vi.spyOn(started.gateway, 'submit');
    const leave = new AbortController();
    const body = JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: 'hi' }] });
    const sent = fetch(`${started.dataUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: leave.signal,
    }).catch(() => undefined);
    await vi.waitUntil(() => held.waiting === 1, { timeout: 20_000 });
    leave.abort();
    await sent;
    await vi.waitUntil(() => started.gateway.queue().running === 0, { timeout: 20_000 });
    expect(await explain(started, submit.mock.results[0]?.value.publicId as string)).toMatchObject({
      state: 'cancelled',
      position: 0,
      etaMs: null,
      gates: [],
      nodes: [{ id: 'one', eligible: true, reasons: [], attempt: 1, result: 'cancelled' }],
      unblock: expect.stringContaining('client left'),
    });
  });

  test('tells which node did not answer by the deadline', async () => {
    const held = heldNode();
    const node = await bench.node(held.script);
    const models = [{ id: 'tiny', profile: { kind: 'generic' as const, meanMs: 5 } }];
    const started = await bench.gateway({ nodes: [nodeAt('one', node)], models });
    const failed = await chat(started.dataUrl, { ...tiny, headers: { 'x-spillway-deadline-ms': '300' } });
    expect(failed.status).toBe(504);
    const explained = await explain(started, idOf(failed));
    expect(explained).toMatchObject({
      state: 'failed',
      reason: 'node-timeout',
      nodes: [{ id: 'one', eligible: false, reasons: ['node-timeout'], attempt: 1, result: 'timeout' }],
    });
    expect(explained.gates[0]?.detail).toMatch(
      /^one had it for .* did not finish within its deadline of 300 ms/,
    );
  });
});

describe('reasons', () => {
  test('have a sentence and a way out, each of them that a task can end with', () => {
    const edgeOnly = [
      'bad-request',
      'header-too-large',
      'too-large',
      'request-timeout',
      'unauthenticated',
      'forbidden',
      'unknown-path',
      'method-not-allowed',
      'idempotency-mismatch',
    ];
    const expected = Object.keys(OUTCOMES).filter((reason) => !edgeOnly.includes(reason));
    expect(Object.keys(REASONS).toSorted()).toEqual([...expected, 'declined'].toSorted());
  });
});

describe('spillway explain', () => {
  test('says it at 80 columns, and as one JSON document', async () => {
    const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
    const started = await bench.gateway({ nodes: [nodeAt('broken', broken)], models: MODELS });
    const id = idOf(await chat(started.dataUrl, tiny));
    const flags = ['--url', started.adminUrl, '--token', started.adminToken];
    const said = await cli.cli(['explain', id, ...flags]);
    expect(said.code).toBe(0);
    expect(said.stdout).toMatch(/^ {2}state {5}failed: node-failed; last on broken$/m);
    expect(said.stdout).toMatch(/^ {2}gate {6}node-failed since \+/m);
    expect(said.stdout).toMatch(/^ {2}node {6}broken: attempt 1 failed \(server-error\)$/m);
    expect(said.stdout).toMatch(/^ {2}unblock {3}A healthy node/m);
    expect(Math.max(...said.stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    const json = await cli.cli(['explain', id, '--json', ...flags]);
    expect(JSON.parse(json.stdout)).toMatchObject({ id, state: 'failed', reason: 'node-failed' });
    const unknown = await cli.cli(['explain', 'nothing', ...flags]);
    expect([unknown.code, unknown.stdout]).toEqual([1, '']);
    expect(unknown.stderr).toContain('There is no request of this id');
  });
});
