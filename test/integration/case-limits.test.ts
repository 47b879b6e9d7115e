/**
 * Limits that do not hold, or never open again (publicly reported as BerriAI/litellm#18730: calls at the same time all pass a
 * limit on tokens; BerriAI/litellm#39309: a refused call is counted; BerriAI/litellm#27955: streams that are cut are counted
 * as running for ever). Over real sockets: what gets through, what comes back, what clients are told and do.
 */
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '../../src/adapters/config-file/index.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { type ConfigInput, resolveConfig } from '../../src/core/config/index.ts';
import type { WireLimiter } from '../../src/edge/admin/limits.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  isServed,
  nodeAt,
  open,
  send,
  type Wish,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import {
  completion,
  delta,
  type NodeScript,
  ROLE,
  sendJson,
  streamHead,
  streamWords,
  type TestNode,
} from './edge-fixture.ts';

const CALLS = 1_000;
/** A rate at which nothing comes back while a test looks. */
const STILL = { requestsPerMinute: 1, requestsBurst: 100, tokensPerMinute: 1, tokensBurst: 10_000 };
const US_PER_MIN = 60_000_000;
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

interface World {
  readonly started: StartedGateway;
  readonly node: TestNode;
}

/** One node with room for everybody, and nothing else that would refuse. */
function configOf(node: TestNode, input: ConfigInput): ConfigInput {
  return {
    nodes: [nodeAt('n0', node, { slots: 2_000 })],
    models: [{ id: 'tiny', profile: { kind: 'generic', meanMs: 5 } }],
    health: { slowStartTasks: 0 },
    gates: { 'flow-wait': 'off' },
    ...input,
  };
}

async function start(script: NodeScript, input: ConfigInput): Promise<World> {
  const node = await bench.node(script);
  return { node, started: await bench.gateway(configOf(node, input)) };
}

/** Requests for work that have reached the node. */
function workOf({ node }: World): number {
  return node.seen.filter(({ method }) => method === 'POST').length;
}

/** An answer without a count of tokens, so that what was reserved is what is paid. */
const PLAIN: NodeScript = (res) => sendJson(res, 200, { ...(completion('ok') as object), usage: undefined });

async function limitersOf({ started }: World): Promise<readonly WireLimiter[]> {
  const answer = await call(`${started.adminUrl}/spillway/v1/limits`, { token: started.adminToken });
  expect(answer.status).toBe(200);
  return answer.json['limits'] as readonly WireLimiter[];
}

async function limiterOf(world: World, name = 'anonymous'): Promise<WireLimiter> {
  const row = (await limitersOf(world)).find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`Nothing is limited by the name ${name}`);
  return row;
}

/** Requests and tokens left, tokens reserved, requests held. */
async function leftOf(world: World): Promise<readonly number[]> {
  const { requests, tokens, concurrency } = await limiterOf(world);
  return [requests?.remaining ?? -1, tokens?.remaining ?? -1, tokens?.reserved ?? -1, concurrency.now];
}

interface Ends {
  readonly served: number;
  readonly limited: number;
  readonly others: number;
}

/** All at once, each over a connection of its own. */
async function together({ started }: World, wish: Wish): Promise<Ends> {
  const client = bench.client(started.dataUrl);
  const sent = await Promise.all(Array.from({ length: CALLS }, () => send(client, wish)));
  const served = sent.filter(isServed).length;
  const limited = sent.filter(
    ({ answer }) => answer?.headers.get('x-spillway-reason') === 'rate-limited',
  ).length;
  return { served, limited, others: CALLS - served - limited };
}

describe('a thousand parallel calls', () => {
  it('get a limit of 100 requests, and never one more', async () => {
    const world = await start(PLAIN, { tenantLimits: { requestsPerMinute: 1, requestsBurst: 100 } });
    expect(await together(world, {})).toEqual({ served: 100, limited: 900, others: 0 });
    expect(workOf(world)).toBe(100);
    await expectAllReleased(world.started);
  });

  it('get no more of a limit of 100 requests per minute than its burst and what came back meanwhile', async () => {
    const world = await start(PLAIN, { tenantLimits: { requestsPerMinute: 100 } });
    const startedAt = world.started.gateway.now();
    const { served, others } = await together(world, {});
    const refilled = ((world.started.gateway.now() - startedAt) * 100) / US_PER_MIN;
    expect(served).toBeGreaterThanOrEqual(100);
    expect(served).toBeLessThanOrEqual(100 + refilled);
    expect(others).toBe(0);
  });

  it('get a limit of 10,000 tokens, and not one token more', async () => {
    const world = await start(PLAIN, { tenantLimits: { tokensPerMinute: 1, tokensBurst: 10_000 } });
    const { served, others } = await together(world, { body: { max_tokens: 150 } });
    const { tokens } = await limiterOf(world);
    const left = tokens?.remaining ?? -1;
    const each = (10_000 - left) / served;
    expect(others).toBe(0);
    expect(each, 'every call counted the same').toBe(Math.round(each));
    expect(each).toBeGreaterThan(150);
    expect(left, 'and one more would not have fitted').toBeLessThan(each);
    expect(tokens?.reserved).toBe(0);
  });

  it('get a concurrency of 16 at the same time, and never one more', async () => {
    let running = 0;
    let most = 0;
    const script: NodeScript = (res) => {
      running += 1;
      most = Math.max(most, running);
      setImmediate(() => {
        running -= 1;
        sendJson(res, 200, completion('ok'));
      });
    };
    const world = await start(script, { tenantLimits: { concurrency: 16 } });
    const { served, limited, others } = await together(world, {});
    expect(most).toBeLessThanOrEqual(16);
    expect(served).toBeGreaterThanOrEqual(16);
    expect({ ended: served + limited, others }).toEqual({ ended: CALLS, others: 0 });
    expect((await limiterOf(world)).concurrency).toEqual({ limit: 16, now: 0 });
  });
});

describe('what comes back', () => {
  /** Holds whole answers for ever, and streams as many words as the last message says. */
  const script: NodeScript = (res, seen) => {
    const { stream, words } = JSON.parse(seen.body) as { stream?: boolean; words?: number };
    if (stream !== true) return;
    streamHead(res);
    res.write(ROLE);
    for (let i = 0; i < (words ?? 0); i++) res.write(delta({ content: 'word ' }));
  };
  const WHOLE = [100, 10_000, 0, 0];

  it('is everything, after an abort in the queue', async () => {
    const world = await start(script, {});
    const nodes = [nodeAt('n0', world.node, { slots: 1 })];
    const queueing = {
      ...world,
      started: await bench.gateway(configOf(world.node, { nodes, tenantLimits: STILL })),
    };
    const first = await open(queueing.started.dataUrl, { body: { max_tokens: 400 } });
    await within(5_000, 'the first runs', () => workOf(world) === 1);
    const [, tokensBefore, reservedBefore] = await leftOf(queueing);
    const second = await open(queueing.started.dataUrl, { body: { max_tokens: 400 } });
    await within(5_000, 'the second waits', () => queueing.started.gateway.queue().depth === 1);
    expect((await leftOf(queueing))[3]).toBe(2);
    second.destroy();
    await within(5_000, 'the second has left', () => queueing.started.gateway.queue().depth === 0);
    expect(await leftOf(queueing)).toEqual([99, tokensBefore, reservedBefore, 1]);
    first.destroy();
    await expectAllReleased(queueing.started);
    expect(await leftOf(queueing)).toEqual(WHOLE);
  });

  it('is everything, after an abort before the first byte', async () => {
    const world = await start(script, { tenantLimits: STILL });
    for (const stream of [false, true]) {
      const socket = await open(world.started.dataUrl, { stream, body: { max_tokens: 400 } });
      await within(5_000, 'it runs', () => workOf(world) === (stream ? 2 : 1));
      expect((await leftOf(world))[0]).toBe(99);
      socket.destroy();
      await within(5_000, 'it has left', async () => (await leftOf(world))[3] === 0);
      expect(await leftOf(world)).toEqual(WHOLE);
    }
    await expectAllReleased(world.started);
  });

  it('is the output that was not passed on, after an abort in the middle of a stream', async () => {
    const world = await start(script, { tenantLimits: STILL });
    const wish = { stream: true, body: { max_tokens: 400, words: 7 } };
    const socket = await open(world.started.dataUrl, wish);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    await within(5_000, 'seven words came', () => text.split('word ').length === 8);
    const [, , reserved = 0] = await leftOf(world);
    socket.destroy();
    await within(5_000, 'it has left', async () => (await leftOf(world))[3] === 0);
    const promptTokens = reserved - 400;
    expect(promptTokens).toBeGreaterThan(10);
    expect(await leftOf(world)).toEqual([99, 10_000 - promptTokens - 7, 0, 0]);
    await expectAllReleased(world.started);
  });

  it('is what the node did not use, after an answer with its own count', async () => {
    const world = await start((res) => sendJson(res, 200, completion('ok')), { tenantLimits: STILL });
    expect((await ask(world.started.dataUrl, { body: { max_tokens: 400 } })).status).toBe(200);
    expect(await leftOf(world)).toEqual([99, 10_000 - 12, 0, 0]);
  });

  it('is the place of a stream that was cut, so that the next one runs', async () => {
    const world = await start(script, { tenantLimits: { concurrency: 1 } });
    for (let round = 1; round <= 3; round++) {
      const socket = await open(world.started.dataUrl, { stream: true, body: { words: 3 } });
      await new Promise((resolve) => socket.once('data', resolve));
      expect((await ask(world.started.dataUrl)).headers['x-spillway-reason']).toBe('rate-limited');
      socket.destroy();
      await within(5_000, 'the place is free', async () => (await limiterOf(world)).concurrency.now === 0);
    }
    expect(workOf(world)).toBe(3);
  });

  it('is nothing of a refused request, since nothing was taken for it', async () => {
    const world = await start(script, { tenantLimits: { ...STILL, requestsBurst: 2, concurrency: 1 } });
    const first = await open(world.started.dataUrl, { stream: true, body: { words: 1 } });
    await new Promise((resolve) => first.once('data', resolve));
    for (let i = 0; i < 5; i++) expect((await ask(world.started.dataUrl)).status).toBe(429);
    first.destroy();
    await within(5_000, 'the place is free', async () => (await limiterOf(world)).concurrency.now === 0);
    const second = await open(world.started.dataUrl, { stream: true, body: { words: 1 } });
    await within(5_000, 'the second request of two runs', () => workOf(world) === 2);
    second.destroy();
  });

  it('is everything, when the same step refuses for another reason', async () => {
    const world = await start(PLAIN, { tenantLimits: STILL });
    expect((await ask(world.started.dataUrl, { deadlineMs: 1 })).headers['x-spillway-reason']).toBe(
      'too-slow',
    );
    expect(await leftOf(world)).toEqual(WHOLE);
  });

  it('leaves nothing reserved after 600 that leave at any time', async () => {
    let calls = 0;
    const ends: NodeScript = (res, seen) => {
      calls += 1;
      if (calls % 3 !== 1) script(res, seen);
      else if (seen.body.includes('"stream":true')) streamWords(res, ['a', 'b']);
      else sendJson(res, 200, completion('ok'));
    };
    const limits = {
      requestsPerMinute: 1,
      requestsBurst: 10_000,
      tokensPerMinute: 1,
      tokensBurst: 1_000_000,
    };
    const world = await start(ends, { tenantLimits: limits, classes: [{ name: 'normal', limits }] });
    expect((await ask(world.started.dataUrl)).status, 'the node has shown itself').toBe(200);
    const sockets = await Promise.all(
      Array.from({ length: 600 }, (_, i) =>
        open(world.started.dataUrl, {
          stream: i % 2 === 0,

          body: { max_tokens: 90, words: i % 4 },
        }),
      ),
    );
    for (const [index, socket] of sockets.entries()) {
      if (index % 4 === 0) socket.destroy();
      else if (index % 4 === 1) setTimeout(() => socket.destroy(), index % 50);
    }
    await within(30_000, 'a good part has reached the node', () => calls > 200);
    for (const socket of sockets) socket.destroy();
    await expectAllReleased(world.started);
    const [tenant, ofClass] = await limitersOf(world);
    expect(tenant).toMatchObject({ concurrency: { now: 0 }, tokens: { reserved: 0 } });
    expect({ ...ofClass, scope: 'tenant', name: tenant?.name }, 'every ledger says the same').toMatchObject({
      requests: { remaining: tenant?.requests?.remaining },
      tokens: { remaining: tenant?.tokens?.remaining, reserved: 0 },
      concurrency: { now: 0 },
    });
    const used = 10_000 - (tenant?.requests?.remaining ?? 0);
    expect(used, 'each request counts once at most').toBeLessThanOrEqual(601);
  });
});

describe('the official client', () => {
  const KEY = 'sk-acme';
  const acme = (limits: NonNullable<ConfigInput['tenantLimits']>): ConfigInput['tenants'] => [
    { id: 'acme', limits, keys: [{ id: 'k', sha256: sha256Hex(KEY) }] },
    { id: 'free', keys: [{ id: 'f', sha256: sha256Hex('sk-free') }] },
  ];
  const clientOf = ({ started }: World, maxRetries: number, apiKey = KEY): OpenAI =>
    new OpenAI({ baseURL: `${started.dataUrl}/v1`, apiKey, maxRetries });
  const CHAT = {
    model: 'tiny',
    messages: [{ role: 'user' as const, content: 'Say hello' }],
    max_tokens: 100,
  };

  it('reads what is left of its tenant’s limits from an answer and from a stream', async () => {
    const tenants = acme({ requestsPerMinute: 60, tokensPerMinute: 6_000 });
    const world = await start(
      (res, seen) => {
        if (!seen.body.includes('"stream":true')) return PLAIN(res, seen);
        streamHead(res);
        res.end(`${ROLE}${delta({ content: 'a' })}${delta({}, 'stop')}data: [DONE]\n\n`);
      },
      { tenants },
    );
    const { response } = await clientOf(world, 0).chat.completions.create(CHAT).withResponse();
    const told = (name: string): string | null => response.headers.get(`x-ratelimit-${name}`);
    expect([told('limit-requests'), told('remaining-requests')]).toEqual(['60', '59']);
    expect(told('reset-requests')).toMatch(/^0\.\d+s$|^1s$/);
    expect(told('limit-tokens')).toBe('6000');
    expect(Number(told('remaining-tokens'))).toBeLessThan(5_900);
    expect(told('reset-tokens')).toMatch(/^1(\.\d+)?s$/);
    const streamed = await clientOf(world, 0)
      .chat.completions.create({ ...CHAT, stream: true })
      .withResponse();
    expect(streamed.response.headers.get('x-ratelimit-remaining-requests')).toMatch(/^5[89]$/);
    for await (const _ of streamed.data);
    const free = await clientOf(world, 0, 'sk-free').chat.completions.create(CHAT).withResponse();
    expect(free.response.headers.get('x-ratelimit-limit-requests')).toBeNull();
  });

  it('gets a rate-limit error that names the limit, with the headers of what refused', async () => {
    const models = [{ id: 'tiny', limits: { requestsPerMinute: 1, requestsBurst: 1 } }];
    const world = await start(PLAIN, { tenants: acme({ requestsPerMinute: 60 }), models });
    const client = clientOf(world, 0);
    await client.chat.completions.create(CHAT);
    const failure: unknown = await client.chat.completions.create(CHAT).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.RateLimitError);
    const { code, message, headers } = failure as InstanceType<typeof OpenAI.RateLimitError>;
    expect(code).toBe('rate_limit_exceeded');
    expect(message).toContain('model tiny: 1 request per minute');
    expect(headers.get('x-ratelimit-limit-requests')).toBe('1');
    expect(headers.get('x-ratelimit-remaining-requests')).toBe('0');
    expect(headers.get('x-ratelimit-reset-requests')).toMatch(/^(59(\.\d+)?s|1m0s)$/);
  });

  it('waits for as long as it is told, and then gets through at its first retry', async () => {
    // The client's own wait before a first retry is half a second at most: three times that shows whose it was.
    const world = await start(PLAIN, { tenants: acme({ requestsPerMinute: 40, requestsBurst: 1 }) });
    const client = clientOf(world, 1);
    await client.chat.completions.create(CHAT);
    await client.chat.completions.create(CHAT);
    expect(workOf(world)).toBe(2);
    const refused = world.started.gateway.gates().find(({ gate }) => gate === 'limits')?.refused;
    expect(refused, 'refused once, and not again').toBe(1);
  });

  it('does not come back with a request that is larger than the limit can ever be', async () => {
    const world = await start(PLAIN, { tenants: acme({ tokensPerMinute: 500 }) });
    const asked = clientOf(world, 5).chat.completions.create({ ...CHAT, max_tokens: 501 });
    const failure: unknown = await asked.catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.RateLimitError);
    expect((failure as Error).message).toContain('at most 500 tokens at once');
    expect(world.started.gateway.gates().find(({ gate }) => gate === 'limits')?.refused).toBe(1);
  });
});

describe('a change of the configuration', () => {
  it('fills no bucket, and its limits hold at once', async () => {
    const world = await start(PLAIN, { tenantLimits: STILL });
    const { gateway, dataUrl } = world.started;
    for (let i = 0; i < 3; i++) await ask(dataUrl);
    const changed = (tenantLimits: NonNullable<ConfigInput['tenantLimits']>): void => {
      const server = { port: gateway.config.server.port, drainMs: 100 };
      const resolved = resolveConfig({ ...configOf(world.node, { tenantLimits }), server });
      if (resolved.kind === 'issues') throw new Error(JSON.stringify(resolved.issues));
      gateway.reconfigure(resolved.config);
    };
    changed({ ...STILL, requestsBurst: 1_000 });
    expect((await leftOf(world))[0]).toBe(97);
    changed({ ...STILL, requestsBurst: 2 });
    expect((await leftOf(world))[0]).toBe(2);
    expect([(await ask(dataUrl)).status, (await ask(dataUrl)).status, (await ask(dataUrl)).status]).toEqual([
      200, 200, 429,
    ]);
    changed({});
    expect((await ask(dataUrl)).status).toBe(200);
  });
});
