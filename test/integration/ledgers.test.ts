/** The ledgers of a real gateway, as an operator reads them. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask, type CaseBench, createCaseBench, nodeAt, send, within } from '../support/case-bench.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { call } from './cli-fixture.ts';
import { completion, sendJson } from './edge-fixture.ts';

interface Ledgers {
  readonly refusals: {
    readonly classes: readonly {
      readonly class: string;
      readonly refused: number;
      readonly couldHaveServed: number;
      readonly pending: number;
      readonly byReason: Readonly<Record<string, number>>;
    }[];
    readonly examples: readonly {
      readonly id: string;
      readonly node: string;
      readonly refusedAt: number;
      readonly couldBeDoneAt: number;
      readonly deadlineAt: number;
    }[];
  };
  readonly eta: { readonly classes: readonly { readonly class: string; readonly dispatch: unknown }[] };
  readonly work: {
    readonly usefulSeconds: number;
    readonly wastedByCause: Readonly<Record<string, number>>;
  };
  readonly failures: readonly {
    readonly failure: string;
    readonly status: number | null;
    readonly pattern: string;
    readonly count: number;
    readonly node: string;
  }[];
}

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

async function read({ adminUrl, adminToken }: StartedGateway): Promise<Ledgers> {
  const answer = await call(`${adminUrl}/spillway/v1/ledgers`, { token: adminToken });
  expect(answer.status).toBe(200);
  return answer.json as unknown as Ledgers;
}

test('tell an operator that an idle fleet could have served what a stage set by hand refused', async () => {
  const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
  const started = await bench.gateway({ nodes: [nodeAt('one', node)] });
  const stage = { stage: 3, seconds: 60, why: 'a drill' };
  const set = await call(`${started.adminUrl}/spillway/v1/ladder`, {
    method: 'PUT',
    token: started.adminToken,
    body: JSON.stringify(stage),
    headers: { 'content-type': 'application/json' },
  });
  expect(set.status).toBe(200);
  // One in a hundred is let in at this stage, and the first of them is.
  await ask(started.dataUrl, { className: 'low' });
  const refused = await ask(started.dataUrl, { className: 'low', deadlineMs: 5_000 });
  expect(refused.headers['x-spillway-reason']).toBe('shed');
  const ledgers = await within(20_000, 'the refusal is judged', async () => {
    const now = await read(started);
    return now.refusals.examples.length > 0 && now;
  });
  expect(ledgers.refusals.classes.find((row) => row.class === 'low')).toMatchObject({
    refused: 1,
    couldHaveServed: 1,
    byReason: { shed: 1 },
  });
  const [example] = ledgers.refusals.examples;
  expect(example).toMatchObject({ node: 'one', id: refused.headers['x-spillway-id'] });
  expect(example?.couldBeDoneAt).toBeGreaterThan(example?.refusedAt ?? 0);
  expect(example?.couldBeDoneAt).toBeLessThanOrEqual(example?.deadlineAt ?? 0);
});

test('book what was served as useful, how far predictions were off, and what a broken node wasted', async () => {
  const node = await bench.node((res) => sendJson(res, 200, completion('hello')));
  const broken = await bench.node((res) => sendJson(res, 500, { error: 'broken' }));
  const started = await bench.gateway({
    nodes: [nodeAt('one', node), nodeAt('two', broken, { models: [{ model: 'broken' }] })],
  });
  const client = bench.client(started.dataUrl);
  for (let i = 0; i < 3; i++) expect((await send(client)).answer?.status).toBe(200);
  expect((await send(client, { model: 'broken' })).answer?.status).toBe(502);
  const { work, eta } = await read(started);
  expect(work.usefulSeconds).toBeGreaterThan(0);
  expect(work.wastedByCause['failed']).toBeGreaterThan(0);
  expect(eta.classes.find((row) => row.class === 'normal')?.dispatch).toMatchObject({ samples: 3 });
  const dump = await call(`${started.adminUrl}/spillway/v1/dump`, { token: started.adminToken });
  expect(dump.json).toMatchObject({ scheduler: { ledgers: { work: { byCause: {} } } } });
});

test('tell why attempts failed in the words of nodes, without what varies and what was quoted', async () => {
  let asked = 0;
  const full = await bench.node((res) => {
    asked += 1;
    sendJson(res, 500, {
      error: { message: `CUDA out of memory. Tried to allocate ${asked} GiB for "a secret"` },
    });
  });
  const page = await bench.node((res) => {
    res.writeHead(502, { 'content-type': 'text/html' });
    res.end('<html>bad gateway</html>');
  });
  const garbage = await bench.node((res) => res.end('no JSON'));
  const gone = await bench.node((res) => res.destroy());
  const started = await bench.gateway({
    nodes: [
      nodeAt('full', full, { models: [{ model: 'full' }] }),
      nodeAt('page', page, { models: [{ model: 'page' }] }),
      nodeAt('garbage', garbage, { models: [{ model: 'garbage' }] }),
      nodeAt('gone', gone, { models: [{ model: 'gone' }] }),
    ],
  });
  for (const model of ['full', 'full', 'page', 'garbage', 'gone']) await ask(started.dataUrl, { model });
  const failures = await within(10_000, 'five failures are told', async () => {
    const told = (await read(started)).failures;
    return told.reduce((sum, { count }) => sum + count, 0) >= 5 && told;
  });
  expect(failures[0]).toMatchObject({
    failure: 'server-error',
    status: 500,
    pattern: 'CUDA out of memory. Tried to allocate * GiB for *',
    count: 2,
    node: 'full',
  });
  const others = failures.slice(1).map(({ failure, status, node }) => [failure, status, node]);
  expect(others).toContainEqual(['server-error', 502, 'page']);
  expect(others).toContainEqual(['protocol', 200, 'garbage']);
  expect(others).toContainEqual(['reset', null, 'gone']);
  expect(JSON.stringify(failures)).not.toContain('secret');
});
