/** Idempotency keys over real connections: one run, however often it is asked for. */
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { GatewayOverrides } from '../../src/core/config/index.ts';
import {
  CHAT,
  completion,
  DONE,
  delta,
  type Edge,
  type NodeScript,
  openRaw,
  rawPost,
  ROLE,
  sendJson,
  startEdge,
  startNode,
  streamHead,
  streamWords,
  type TestNode,
  until,
  USAGE,
} from './edge-fixture.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface World {
  readonly edge: Edge;
  readonly node: TestNode;
}

async function worldOf(script: NodeScript, config: GatewayOverrides = {}): Promise<World> {
  const node = await startNode(script);
  const edge = await startEdge({ nodes: [node], config });
  closers.push(() => edge.close());
  return { edge, node };
}

interface Wish {
  readonly key?: string;
  readonly body?: unknown;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function post({ edge }: World, wish: Wish = {}): Promise<Answer> {
  const { key = 'key-1', body = CHAT, path = '/v1/chat/completions', headers = {} } = wish;
  const answer = await fetch(`${edge.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key, ...headers },
    body: JSON.stringify(body),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const effects = ({ edge }: World): unknown[] =>
  edge.metricCalls.filter(([name]) => name === 'keyed').map(([, effect]) => effect);
const howOf = ({ headers }: Answer): string | null => headers.get('x-spillway-idempotency');

/** A node that answers when it is told to. */
function heldNode(): { readonly script: NodeScript; release(): void } {
  const held: (() => void)[] = [];
  return {
    script: (res) => held.push(() => sendJson(res, 200, completion('hello'))),
    release: () => {
      for (const answer of held.splice(0)) answer();
    },
  };
}

const STREAM = { ...CHAT, stream: true };

describe('a request whose key is taken', () => {
  it('joins the one that runs: one task, one call, the same answer under an id of its own', async () => {
    const { script, release } = heldNode();
    const world = await worldOf(script);
    const first = post(world);
    await until(() => world.node.seen.length === 1);
    const others = [post(world, { headers: { 'x-request-id': 'mine' } }), post(world)];
    await until(() => effects(world).length === 2);
    release();
    const answers = await Promise.all([first, ...others]);
    for (const { status, text } of answers) {
      expect(status).toBe(200);
      expect(text).toBe(answers[0]?.text);
    }
    expect(world.edge.gateway.specs).toHaveLength(1);
    expect(world.node.seen).toHaveLength(1);
    expect(answers.map(howOf)).toEqual([null, 'joined', 'joined']);
    const ids = answers.map(({ headers }) => headers.get('x-spillway-id'));
    expect(new Set(ids).size).toBe(3);
    expect(answers[1]?.headers.get('x-spillway-original-id')).toBe(ids[0]);
    expect(answers[1]?.headers.get('x-request-id')).toBe('mine');
    expect(answers[1]?.headers.get('x-spillway-node'), 'only what is true for it').toBeNull();
    await until(() => world.edge.gateway.joined.length === 2);
    expect(world.edge.gateway.joined[0]).toMatchObject({ outcome: { kind: 'served' }, model: 'tiny' });
  });

  it('gets the stored answer once that has ended', async () => {
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')));
    const first = await post(world);
    const second = await post(world);
    expect(howOf(second)).toBe('replayed');
    expect(second.text).toBe(first.text);
    expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'));
    expect(second.headers.get('x-spillway-original-id')).toBe(first.headers.get('x-spillway-id'));
    expect(world.node.seen).toHaveLength(1);
    expect(world.edge.gateway.specs).toHaveLength(1);
  });

  it('joins a stream in the middle and gets all of it, and whoever comes later gets the same bytes', async () => {
    let goOn = (): void => {};
    const world = await worldOf((res) => {
      streamHead(res);
      res.write(ROLE + delta({ content: 'one' }));
      goOn = () => {
        res.write(delta({ content: ' two' }) + delta({}, 'stop') + USAGE);
        res.end(DONE);
      };
    });
    const first = fetch(`${world.edge.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': 'key-1' },
      body: JSON.stringify(STREAM),
    });
    const reader = (await first).body?.getReader();
    const opening = new TextDecoder().decode((await reader?.read())?.value);
    expect(opening).toContain('one');
    const joined = post(world, { body: STREAM });
    await until(() => effects(world).length === 1);
    goOn();
    let whole = opening;
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read())
      whole += new TextDecoder().decode(part.value);
    const answer = await joined;
    expect(answer.text).toBe(whole);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(answer.text.endsWith(DONE)).toBe(true);
    const replayed = await post(world, { body: STREAM });
    expect(howOf(replayed)).toBe('replayed');
    expect(replayed.text).toBe(whole);
  });

  it('by another body or another path is refused with 422, by another tenant is not taken at all', async () => {
    const key = (secret: string): { id: string; sha256: string } => ({
      id: secret,
      sha256: createHash('sha256').update(secret).digest('hex'),
    });
    const tenant = (id: string): NonNullable<GatewayOverrides['tenants']>[number] => ({
      id,
      weight: 1,
      classCeiling: 'critical',
      classDefault: 'normal',
      nodeVisible: true,
      keys: [key(id)],
    });
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')), {
      tenants: [tenant('ada'), tenant('bob')],
    });
    const as = (name: string, wish: Wish = {}): Promise<Answer> =>
      post(world, { ...wish, headers: { authorization: `Bearer ${name}` } });
    expect((await as('ada')).status).toBe(200);
    const other = await as('ada', { body: { ...CHAT, messages: [{ role: 'user', content: 'Bye' }] } });
    expect(other.status).toBe(422);
    expect(other.headers.get('x-spillway-reason')).toBe('idempotency-mismatch');
    expect(other.headers.get('x-should-retry')).toBe('false');
    expect(JSON.parse(other.text).error).toMatchObject({ code: 'idempotency_mismatch' });
    const path = await as('ada', { path: '/v1/completions', body: { model: 'tiny', prompt: 'x' } });
    expect(path.status).toBe(422);
    const bob = await as('bob');
    expect([bob.status, howOf(bob)]).toEqual([200, null]);
    expect(world.node.seen).toHaveLength(2);
  });

  it('gets a lesser answer too, marked as the first one’s was', async () => {
    const models = [
      { id: 'tiny', aliases: [], profile: { kind: 'generic', meanMs: 1 }, default: { chat: 'Later.' } },
    ] as const;
    const world = await worldOf(() => {}, { scheduler: { models } });
    world.edge.gateway.isHolding = true;
    const consenting = { headers: { 'x-spillway-degrade': 'default' } };
    const both = [post(world, consenting), post(world, consenting)];
    await until(() => effects(world).length === 1);
    for (const { listener } of world.edge.gateway.tasks.values()) listener.degraded?.(0);
    world.edge.gateway.finish({ kind: 'degraded', alternative: 0 });
    const answers = [...(await Promise.all(both)), await post(world, consenting)];
    expect(answers.map(howOf)).toEqual([null, 'joined', 'replayed']);
    for (const { status, headers, text } of answers) {
      expect([status, headers.get('x-spillway-degraded')]).toEqual([200, 'default']);
      expect(text).toBe(answers[0]?.text);
    }
  });

  it('after another one gets what is there even if the fleet refuses everything now', async () => {
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')));
    await post(world);
    world.edge.gateway.nodeIds.length = 0;
    expect((await post(world)).status).toBe(200);
    expect((await post(world, { key: 'key-2' })).status).toBe(503);
  });
});

describe('what is no answer', () => {
  it('a refusal is told to all who joined, each with a wait of its own, and the next one runs', async () => {
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')));
    world.edge.gateway.isHolding = true;
    const all = Array.from({ length: 6 }, () => post(world));
    await until(() => effects(world).length === 5);
    world.edge.gateway.finish({
      kind: 'rejected',
      reason: 'queue-full',
      hint: { retryable: true, afterUs: 20_000_000 },
    });
    const answers = await Promise.all(all);
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 429));
    const waits = answers.map(({ headers }) => Number(headers.get('retry-after-ms')));
    expect(new Set(waits).size).toBeGreaterThan(3);
    for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(20_000);
    expect(world.edge.gateway.joined.map(({ outcome }) => outcome.kind)).toEqual(
      Array.from({ length: 5 }, () => 'rejected'),
    );
    world.edge.gateway.isHolding = false;
    expect((await post(world)).status).toBe(200);
    expect(world.edge.gateway.specs).toHaveLength(2);
  });

  it.each([
    ['a failure', 500, 502],
    ['a request that the node judged wrong', 422, 422],
  ])('%s is told to who joined, and not stored', async (_, nodeStatus, status) => {
    let count = 0;
    const world = await worldOf((res) => {
      count += 1;
      if (count === 1) sendJson(res, nodeStatus, { error: { message: 'no' } });
      else sendJson(res, 200, completion('hello'));
    });
    const answers = await Promise.all([post(world), post(world)]);
    expect(answers.map((answer) => answer.status)).toEqual([status, status]);
    expect(world.node.seen).toHaveLength(1);
    expect((await post(world)).status).toBe(200);
  });

  it('a stream that broke is not stored either', async () => {
    let count = 0;
    const world = await worldOf((res) => {
      count += 1;
      if (count > 1) return streamWords(res, ['all']);
      streamHead(res);
      res.write(ROLE + delta({ content: 'half' }));
      setImmediate(() => res.destroy());
    });
    const broken = await post(world, { body: STREAM });
    expect(broken.text).toContain('"error"');
    const again = await post(world, { body: STREAM });
    expect(howOf(again)).toBeNull();
    expect(again.text.endsWith(DONE)).toBe(true);
  });
});

describe('a client that leaves', () => {
  const text = (key: string): string =>
    rawPost('/v1/chat/completions', JSON.stringify(CHAT), `idempotency-key: ${key}\r\n`);

  it('does not end the work while others wait for it', async () => {
    const { script, release } = heldNode();
    const world = await worldOf(script);
    const first = await openRaw(world.edge.port, text('key-1'));
    await until(() => world.node.seen.length === 1);
    const second = post(world);
    await until(() => effects(world).length === 1);
    first.destroy();
    const third = post(world);
    await until(() => effects(world).length === 2);
    release();
    expect((await second).status).toBe(200);
    expect((await third).status).toBe(200);
    expect(world.edge.gateway.outcomes).toEqual([{ kind: 'served' }]);
  });

  it('ends it when it was the last one, and the key is free at once', async () => {
    const { script, release } = heldNode();
    const world = await worldOf(script);
    const first = await openRaw(world.edge.port, text('key-1'));
    await until(() => world.node.seen.length === 1);
    const second = await openRaw(world.edge.port, text('key-1'));
    await until(() => effects(world).length === 1);
    first.destroy();
    second.destroy();
    await until(() => world.edge.gateway.outcomes.length === 1);
    expect(world.edge.gateway.outcomes).toEqual([{ kind: 'cancelled' }]);
    const again = post(world);
    await until(() => world.node.seen.length === 2);
    release();
    expect(howOf(await again)).toBeNull();
    expect(world.edge.gateway.breaches).toEqual([]);
  });
});

describe('at its bounds', () => {
  it('an answer that is too large is given and not kept: a repeat runs again', async () => {
    const world = await worldOf((res) => sendJson(res, 200, completion('x'.repeat(4_000))), {
      idempotency: { answerBytesMax: 2_000 },
    });
    const first = await post(world);
    const second = await post(world);
    expect([first.status, second.status, howOf(second)]).toEqual([200, 200, null]);
    expect(world.node.seen).toHaveLength(2);
    expect(effects(world)).toEqual(['unkept', 'unkept']);
  });

  it('where all keys run the next one runs without being remembered', async () => {
    const { script, release } = heldNode();
    const world = await worldOf(script, { idempotency: { entriesMax: 1 } });
    const all = [post(world)];
    await until(() => world.node.seen.length === 1);
    all.push(post(world, { key: 'key-2' }), post(world, { key: 'key-2' }));
    await until(() => world.node.seen.length === 3);
    release();
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(effects(world)).toEqual(['unkept', 'unkept']);
  });

  it('only so many wait for one answer, and more are refused with a time', async () => {
    const { script, release } = heldNode();
    const world = await worldOf(script, { idempotency: { joinersMax: 1 } });
    const first = post(world);
    await until(() => world.node.seen.length === 1);
    const second = post(world);
    await until(() => effects(world).length === 1);
    let third: Answer | undefined;
    void post(world).then((answer) => {
      third = answer;
    });
    await until(() => third !== undefined);
    expect([third?.status, third?.headers.get('x-spillway-reason')]).toEqual([429, 'queue-full']);
    expect(Number(third?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    release();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
  });

  it.each([
    ['empty', ''],
    ['too long', 'k'.repeat(256)],
    ['with a space', 'a b'],
  ])('a key that is %s is a bad request', async (_, key) => {
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')));
    const answer = await post(world, { key });
    expect([answer.status, answer.headers.get('x-spillway-reason')]).toEqual([400, 'bad-request']);
  });

  it('the header is ignored where no keys are kept', async () => {
    const world = await worldOf((res) => sendJson(res, 200, completion('hello')), {
      idempotency: { entriesMax: 0 },
    });
    await post(world);
    await post(world, { key: '' });
    expect(world.node.seen).toHaveLength(2);
  });
});
