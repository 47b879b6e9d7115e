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
