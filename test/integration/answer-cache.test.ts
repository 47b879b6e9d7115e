/** Remembered answers over real sockets: who shares them, which are remembered at all, and ordinary use of them. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import { ask, type CaseBench, createCaseBench, nodeAt, type Wish } from '../support/case-bench.ts';
import { type Answer, call } from './cli-fixture.ts';
import { completion, sendJson, type TestNode } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

interface Remembering {
  readonly started: StartedGateway;
  readonly node: TestNode;
  /** Requests that reached the node. */
  asked(): number;
}

/** A node that numbers its answers. */
async function remembering(change: ConfigInput = {}): Promise<Remembering> {
  let answers = 0;
  const node = await bench.node((res, seen) => {
    answers += 1;
    if (seen.url.endsWith('embeddings')) sendJson(res, 200, { data: [{ embedding: [1, 0, answers] }] });
    else sendJson(res, 200, completion(`answer ${answers}`));
  });
  const started = await bench.gateway({ nodes: [nodeAt('one', node)], cache: { mode: 'always' }, ...change });
  return { started, node, asked: () => answers };
}

function fixed(
  started: StartedGateway,
  body: Record<string, unknown> = {},
  wish: Wish = {},
): Promise<Answer> {
  return ask(started.dataUrl, { ...wish, body: { temperature: 0, ...body } });
}

const key = (tenant: string): Record<string, string> => ({ authorization: `Bearer key-of-${tenant}` });

function tenant(
  id: string,
  change: Record<string, unknown> = {},
): NonNullable<NonNullable<ConfigInput['tenants']>[number]> {
  return {
    id,
    keys: [{ id: `${id}-key`, sha256: createHash('sha256').update(`key-of-${id}`).digest('hex') }],
    ...change,
  };
}

describe('an answer that is always the same', () => {
  test('is given again with its age, without a node, where the configuration says always', async () => {
    const { started, asked } = await remembering();
    const first = await fixed(started);
    const again = await fixed(started, { user: 'somebody else', stream: false, metadata: { a: 1 } });
    expect(again.text).toBe(first.text);
    expect(again.headers['age']).toMatch(/^\d+$/);
    expect(again.headers['x-spillway-degraded']).toBeUndefined();
    expect(asked()).toBe(1);
    const id = encodeURIComponent(String(again.headers['x-spillway-id']));
    const told = await call(`${started.adminUrl}/spillway/v1/requests/${id}`, { token: started.adminToken });
    expect(told.json).toMatchObject({ state: 'served', attempts: 0, degraded: null });
  });

  test('is asked for again without a fixed seed or temperature, with tools, and with other parameters', async () => {
    const { started, asked } = await remembering();
    const twice = async (body: Record<string, unknown>): Promise<number> => {
      const before = asked();
      await fixed(started, body);
      await fixed(started, body);
      return asked() - before;
    };
    expect(await twice({ temperature: 0.7 })).toBe(2);
    expect(await twice({ temperature: 0.7, seed: 1 })).toBe(1);
    expect(await twice({ tools: [{ type: 'function', function: { name: 'pay' } }] })).toBe(2);
    expect(await twice({ max_tokens: 5 })).toBe(1);
    expect(await twice({ max_tokens: 6 })).toBe(1);
  });

  test('is asked for again once it is too old, and when the model has another revision', async () => {
    const { started, asked } = await remembering();
    await fixed(started);
    const { config } = started.gateway;
    const revised = [
      { id: 'tiny', aliases: [], profile: { kind: 'generic' as const, meanMs: 1 }, revision: 'b' },
    ];
    started.gateway.reconfigure({ ...config, scheduler: { ...config.scheduler, models: revised } });
    await fixed(started);
    expect(asked()).toBe(2);
    started.gateway.reconfigure({ ...config, cache: { ...config.cache, ttlMs: -1 } });
    await fixed(started);
    expect(asked()).toBe(3);
  });

  test('is remembered of embeddings, and compared when it is given fresh', async () => {
    const { started, asked } = await remembering({ cache: { mode: 'degrade', compareEvery: 1 } });
    const embed = (): Promise<Answer> =>
      call(`${started.dataUrl}/v1/embeddings`, {
        body: { model: 'tiny', input: 'text' },
        headers: { 'x-spillway-degrade': 'cache' },
      });
    await embed();
    await embed();
    expect(asked(), 'only under overload').toBe(2);
    const page = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
    expect(page.text).toContain('spillway_cache_agreement_total{type="embeddings",result="different"} 1');
  });

  test('is not remembered of a failure or of a lesser answer', async () => {
    const { started, node, asked } = await remembering();
    const script = node.script;
    node.script = (res, seen) =>
      seen.method === 'GET' ? script(res, seen) : sendJson(res, 400, { error: { message: 'no' } });
    expect((await fixed(started)).status).toBe(400);
    node.script = script;
    expect((await fixed(started)).status).toBe(200);
    expect(asked()).toBe(1);
  });
});

describe('tenants', () => {
  test('that differ in nothing else share nothing, unless both name the same pool', async () => {
    const { started, asked } = await remembering({
      tenants: [
        tenant('a'),
        tenant('b'),
        tenant('c', { cachePool: 'p' }),
        tenant('d', { cachePool: 'p' }),
        tenant('p'),
      ],
    });
    const of = (id: string): Promise<Answer> => fixed(started, {}, { headers: key(id) });
    const [a, b, c, d, p] = [await of('a'), await of('b'), await of('c'), await of('d'), await of('p')];
    expect(new Set([a?.text, b?.text, c?.text, p?.text]).size).toBe(4);
    expect(d?.text).toBe(c?.text);
    expect(asked()).toBe(4);
    expect((await of('b')).text).toBe(b?.text);
  });
});
