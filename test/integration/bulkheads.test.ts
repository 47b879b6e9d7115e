/** Node groups with shares over real sockets: what is closed waits, what is kept is free, and both are explained. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CaseBench, createCaseBench, nodeAt, within } from '../support/case-bench.ts';
import { call, chat } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

/** Holds what is asked for the first model, and answers all else at once. */
function hangingFor(model: string): { readonly script: NodeScript; release(): void; readonly held: number } {
  const held: (() => void)[] = [];
  return {
    script: (res, { body }) => {
      const answer = (): void => sendJson(res, 200, completion('hello'));
      if ((JSON.parse(body) as { model: string }).model === model) held.push(answer);
      else answer();
    },
    release: () => {
      for (const answer of held.splice(0)) answer();
    },
    get held() {
      return held.length;
    },
  };
}

const models = [{ model: 'stuck' }, { model: 'quick' }];
const stuck = { model: 'stuck', headers: { 'x-spillway-deadline-ms': '60000' } };
const nodes = { labels: { pool: 'a' } };

describe('a group with a greatest share for one model', () => {
  test('keeps the other slots for the others while all that the model has started hangs', async () => {
    const hanging = hangingFor('stuck');
    const node = await bench.node(hanging.script, ['stuck', 'quick']);
    const started = await bench.gateway({
      nodes: [nodeAt('one', node, { slots: 4, models, labels: { pool: 'a' } })],
      groups: [{ name: 'a', nodes, shares: [{ model: 'stuck', max: 0.5 }] }],
      gates: { 'flow-wait': 'off' },
    });
    const submit = vi.spyOn(started.gateway, 'submit');
    for (let i = 0; i < 4; i++) expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
    const pending = Array.from({ length: 6 }, () => chat(started.dataUrl, stuck));
    await vi.waitUntil(() => submit.mock.results.length === 10 && hanging.held === 2, { timeout: 20_000 });
    for (let i = 0; i < 20; i++) expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
    expect(hanging.held).toBe(2);

    const waiting = submit.mock.results[9]?.value.publicId as string;
    const url = `${started.adminUrl}/spillway/v1/requests/${waiting}`;
    expect((await call(url, { token: started.adminToken })).json).toMatchObject({
      state: 'queued',
      gates: [{ gate: 'bulkhead', detail: 'Group a: model stuck holds 2 of its at most 2 of 4 slots' }],
      nodes: [{ id: 'one', eligible: false, reasons: ['bulkhead'] }],
    });

    for (const wave of [2, 2, 2]) {
      await vi.waitUntil(() => hanging.held === wave, { timeout: 20_000 });
      hanging.release();
    }
    for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
  });
});

describe('a group with a least share for one model', () => {
  test('keeps it free while another model asks for everything', async () => {
    const hanging = hangingFor('stuck');
    const node = await bench.node(hanging.script, ['stuck', 'quick']);
    const started = await bench.gateway({
      nodes: [nodeAt('one', node, { slots: 4, models, labels: { pool: 'a' } })],
      groups: [{ name: 'a', nodes, shares: [{ model: 'quick', min: 0.5 }] }],
      gates: { 'flow-wait': 'off' },
    });
    for (let i = 0; i < 4; i++) expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
    const pending = Array.from({ length: 6 }, () => chat(started.dataUrl, stuck));
    await within(5_000, 'what may not run waits', () => started.gateway.queue().depth === 4);
    expect(hanging.held).toBe(2);
    for (let i = 0; i < 20; i++) expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
    for (const wave of [2, 2, 2]) {
      await within(5_000, 'the next ones run', () => hanging.held === wave);
      hanging.release();
    }
    for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
  });
});

describe('control endpoints', () => {
  test('answer while every slot hangs and the queue is full', async () => {
    const hanging = hangingFor('stuck');
    const node = await bench.node(hanging.script, ['stuck', 'quick']);
    const bounds = { tasksMax: 3, classShareMax: 1, tenantShareMax: 1 };
    const started = await bench.gateway({
      nodes: [nodeAt('one', node, { slots: 2, models })],
      gates: { 'flow-wait': 'off' },
      bounds,
    });
    for (let i = 0; i < 4; i++) expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
    const pending = Array.from({ length: 5 }, () => chat(started.dataUrl, stuck));
    await within(5_000, 'the queue is full', () => started.gateway.queue().depth === bounds.tasksMax);
    expect((await chat(started.dataUrl, stuck)).headers['x-spillway-reason']).toBe('queue-full');
    const admin = { token: started.adminToken };
    const paths = ['/livez', '/readyz', '/metrics', '/spillway/v1/queue', '/spillway/v1/nodes'];
    const answers = [
      call(`${started.dataUrl}/v1/models`),
      ...paths.map((path) => call(`${started.adminUrl}${path}`, admin)),
    ];
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(started.gateway.queue().depth, 'nobody who waits had to leave for that').toBe(bounds.tasksMax);
    for (const wave of [2, 2, 1]) {
      await within(5_000, 'the next ones run', () => hanging.held === wave);
      hanging.release();
    }
    for (const answer of await Promise.all(pending)) expect(answer.status).toBe(200);
  });
});

describe('a reserved group', () => {
  test('refuses who has no other node, at once and with the reason', async () => {
    const node = await bench.node((res) => sendJson(res, 200, completion('hello')), ['stuck', 'quick']);
    const started = await bench.gateway({
      nodes: [nodeAt('one', node, { models, labels: { pool: 'a' } })],
      groups: [{ name: 'a', nodes, reservedFor: { models: ['quick'] } }],
    });
    const refused = await chat(started.dataUrl, {
      model: 'stuck',
      headers: { 'x-spillway-deadline-ms': '2000' },
    });
    expect(refused.status).toBe(503);
    expect(refused.headers['x-spillway-reason']).toBe('no-node');
    expect(refused.headers['x-should-retry']).toBe('false');
    expect(JSON.stringify(refused.json)).toContain('reserved to others');
    expect((await chat(started.dataUrl, { model: 'quick' })).status).toBe(200);
  });
});
