/** Lesser answers over real sockets: each rung of their order, how they are marked, and who never gets one. */
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import type { ConfigInput } from '../../src/core/config/index.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  queueDepth,
  type Wish,
  within,
} from '../support/case-bench.ts';
import { type Answer, call } from './cli-fixture.ts';
import { completion, type NodeSeen, sendJson, streamWords, type TestNode } from './edge-fixture.ts';

let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

/** A tenth of a second a token: a hundred tokens wait longer than the gate of a flow lets wait. */
const PROFILE = { kind: 'llm', fixedMs: 10, prefillMsPerToken: 0, decodeMsPerToken: 100 } as const;
const MODELS: NonNullable<ConfigInput['models']> = [
  {
    id: 'tiny',
    profile: PROFILE,
    variants: [{ model: 'small' }],
    quality: [{ name: 'draft', maxTokens: 10 }],
    default: { chat: 'We are busy.', completions: 'We are busy.' },
  },
  { id: 'small', profile: { ...PROFILE, decodeMsPerToken: 1 } },
];

interface Busy {
  readonly started: StartedGateway;
  /** Offers `tiny`, and answers only when it is let. */
  readonly slow: TestNode;
  /** Offers `small`. */
  readonly quick: TestNode;
  /** Answers everything that waits, and from now on at once. */
  release(): void;
  /** Fills the queue until a whole request of `low` is refused. */
  overload(): Promise<void>;
}

async function busy(change: ConfigInput = {}): Promise<Busy> {
  const held: (() => void)[] = [];
  let isHolding = false;
  const answerOf = (res: Parameters<TestNode['script']>[0], seen: NodeSeen) => (): void => {
    const isStream = (JSON.parse(seen.body) as { stream?: boolean }).stream === true;
    if (isStream) streamWords(res, ['whole ', 'answer']);
    else sendJson(res, 200, completion('whole answer'));
  };
  const slow = await bench.node((res, seen) => {
    if (isHolding) held.push(answerOf(res, seen));
    else answerOf(res, seen)();
  });
  const quick = await bench.node((res, seen) => {
    const isStream = (JSON.parse(seen.body) as { stream?: boolean }).stream === true;
    if (isStream) streamWords(res, ['less']);
    else sendJson(res, 200, completion('less'));
  });
  const nodes = [nodeAt('slow', slow), nodeAt('quick', quick, { models: [{ model: 'small' }] })];
  const started = await bench.gateway({ models: MODELS, nodes, gates: FIRST_ATTEMPTS, ...change });
  return {
    started,
    slow,
    quick,
    release() {
      isHolding = false;
      for (const answer of held.splice(0)) answer();
    },
    async overload() {
      isHolding = true;
      let refused: Answer | undefined;
      // How many fit depends on what the gateway has learned of the node.
      for (let sent = 1; refused === undefined; sent++) {
        expect(sent).toBeLessThan(1_000);
        void low(started).then((answer) => {
          refused ??= answer;
        });
        await within(
          5_000,
          'one more runs or waits, or is refused',
          async () => refused !== undefined || held.length + (await queueDepth(started)) === sent,
        );
      }
      expect(refused.headers['x-spillway-reason']).toBe('deadline-infeasible');
    },
  };
}

/** Every request here has the same body, and is meant as a first attempt. */
const FIRST_ATTEMPTS: NonNullable<ConfigInput['gates']> = { 'retry-shed': 'off' };
const HUNDRED = { max_tokens: 100 };
let asked = 0;
/** Where an answer that came at once has taught the gateway that its node is fast. */
const SHORT_GATE: ConfigInput = { admission: { flowWaitMsMax: 10 } };

/** Each of somebody else: the same body again would be a retry. What is remembered does not ask who it is. */
function low({ dataUrl }: { readonly dataUrl: string }, consent = '', wish: Wish = {}): Promise<Answer> {
  const headers: Record<string, string> = { ...wish.headers };
  if (consent !== '') headers['x-spillway-degrade'] = consent;
  return ask(dataUrl, {
    className: 'low',
    ...wish,
    headers,
    body: { ...HUNDRED, user: `somebody ${asked++}`, ...wish.body },
  });
}

async function explain(started: StartedGateway, answer: Answer): Promise<Record<string, unknown>> {
  const id = encodeURIComponent(String(answer.headers['x-spillway-id']));
  return (await call(`${started.adminUrl}/spillway/v1/requests/${id}`, { token: started.adminToken })).json;
}

async function metrics(started: StartedGateway): Promise<string> {
  return (await call(`${started.adminUrl}/metrics`, { token: started.adminToken })).text;
}

const degraded = (answer: Answer): unknown => answer.headers['x-spillway-degraded'];

describe('under overload, a request of a low class that consents', () => {
  test('gets an answer that was given before, with its age, although cheaper ones could be made', async () => {
    const { started, slow, overload } = await busy(SHORT_GATE);
    const wish: Wish = { body: { temperature: 0 } };
    const first = await low(started, 'cache, model', wish);
    expect(degraded(first)).toBeUndefined();
    await overload();
    const again = await low(started, 'cache, model, default', wish);
    expect(again.status).toBe(200);
    expect(degraded(again)).toBe('cache');
    expect(again.headers['age']).toMatch(/^\d+$/);
    expect(again.json).toEqual({ ...first.json, spillway: { degraded: 'cache' } });
    expect(
      slow.seen.filter(({ method }) => method === 'POST'),
      'the first one, and the one that runs',
    ).toHaveLength(2);
    expect(await explain(started, again)).toMatchObject({
      state: 'degraded',
      etaMs: 0,
      attempts: 0,
      degraded: {
        answer: 'cache',
        alternatives: [{ answer: 'cache', because: 'deadline-infeasible', verdict: 'taken' }],
      },
      unblock: 'Room for the whole request: it got cache instead of deadline-infeasible.',
    });
  });

  test('gets a cheaper model where nothing is remembered, under its own name at the node', async () => {
    const { started, quick, overload } = await busy();
    await overload();
    const answer = await low(started, 'quality, model, cache', { body: { temperature: 0 } });
    expect(answer.status).toBe(200);
    expect(degraded(answer)).toBe('model:small');
    expect(answer.json).toMatchObject({ spillway: { degraded: 'model:small' } });
    expect(JSON.parse(quick.seen.at(-1)?.body ?? '')).toMatchObject({ model: 'small', max_tokens: 100 });
    expect(await explain(started, answer)).toMatchObject({ state: 'degraded', node: 'quick', model: 'tiny' });
  });

  test('gets a lower quality where no cheaper model is taken, and the node is asked for less', async () => {
    const { started, slow, overload, release } = await busy();
    await overload();
    const waiting = low(started, 'quality');
    await within(5_000, 'the lesser one waits too', async () => (await queueDepth(started)) === 2);
    release();
    const answer = await waiting;
    expect(degraded(answer)).toBe('quality:draft');
    expect(answer.json).toMatchObject({ spillway: { degraded: 'quality:draft' } });
    expect(
      slow.seen.map(({ body }) => body).filter((body) => body.includes('"max_tokens":10,')),
    ).toHaveLength(1);
  });

  test('gets the configured answer last, and learns which others could not be given', async () => {
    const { started, quick, overload } = await busy();
    await overload();
    await started.gateway.setCordoned('quick', true);
    const answer = await low(started, 'model, default');
    expect(degraded(answer)).toBe('default');
    expect(answer.json).toMatchObject({
      choices: [{ message: { role: 'assistant', content: 'We are busy.' } }],
      spillway: { degraded: 'default' },
    });
    expect(await explain(started, answer)).toMatchObject({
      degraded: {
        answer: 'default',
        alternatives: [
          { answer: 'model:small', because: 'deadline-infeasible', verdict: 'no-node' },
          { answer: 'default', because: 'deadline-infeasible', verdict: 'taken' },
        ],
      },
    });
    expect(quick.seen.filter(({ method }) => method === 'POST')).toHaveLength(0);
  });

  test('is counted apart, by class and kind', async () => {
    const { started, overload } = await busy();
    await overload();
    await low(started, 'model');
    await low(started, 'default');
    const page = await metrics(started);
    expect(page).toContain('spillway_degraded_total{class="low",how="model"} 1');
    expect(page).toContain('spillway_degraded_total{class="low",how="default"} 1');
    expect(page).toContain('spillway_requests_total{class="low",model="tiny",outcome="degraded"} 2');
    expect(started.gateway.queue()).toMatchObject({ depth: 1, running: 1 });
  });
});

describe('nobody else gets a lesser answer', () => {
  test.each([
    ['without consent', ''],
    ['with none', 'model, default, none'],
    ['with a consent that the configuration cannot meet', 'cache, later'],
    ['with a word that nobody knows', 'anything'],
  ])('%s the refusal is what it was', async (_name, consent) => {
    const { started, overload } = await busy();
    await overload();
    const answer = await low(started, consent);
    expect(answer.status).toBe(429);
    expect(answer.headers['x-spillway-reason']).toBe('deadline-infeasible');
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    expect(degraded(answer)).toBeUndefined();
  });

  test('in the first class, unless the configuration names it', async () => {
    const { started, overload } = await busy();
    await overload();
    const wish: Wish = { className: 'critical', deadlineMs: 100 };
    expect((await low(started, 'model, default', wish)).status).toBe(429);
    started.gateway.reconfigure({
      ...started.gateway.config,
      scheduler: {
        ...started.gateway.config.scheduler,
        degrade: { ...started.gateway.config.scheduler.degrade, classes: ['critical'] },
      },
    });
    expect(degraded(await low(started, 'default', wish))).toBe('default');
    expect((await low(started, 'default')).status).toBe(429);
  });
});

describe('the official client', () => {
  const clientOf = (started: StartedGateway, consent: string): OpenAI =>
    new OpenAI({
      baseURL: `${started.dataUrl}/v1`,
      apiKey: 'any',
      maxRetries: 0,
      defaultHeaders: { 'x-spillway-class': 'low', 'x-spillway-degrade': consent },
    });
  const asked = { model: 'tiny', messages: [{ role: 'user' as const, content: 'hi' }], ...HUNDRED };
  type Marked = { spillway?: { degraded: string } };

  test.each(['model', 'default'])('reads a whole lesser answer (%s) and sees the mark', async (consent) => {
    const { started, overload } = await busy();
    await overload();
    const { data, response } = await clientOf(started, consent).chat.completions.create(asked).withResponse();
    expect(data.choices[0]?.message.content).toBe(consent === 'model' ? 'less' : 'We are busy.');
    expect((data as Marked).spillway?.degraded).toBe(response.headers.get('x-spillway-degraded'));
  });

  test.each(['model', 'default'])(
    'reads a lesser stream (%s) with the mark in its first chunk',
    async (consent) => {
      const { started, overload } = await busy();
      await overload();
      const stream = await clientOf(started, consent).chat.completions.create({ ...asked, stream: true });
      const marks: unknown[] = [];
      let text = '';
      for await (const chunk of stream) {
        marks.push((chunk as Marked).spillway?.degraded);
        text += chunk.choices[0]?.delta.content ?? '';
      }
      expect(text).toBe(consent === 'model' ? 'less' : 'We are busy.');
      expect(marks[0]).toBe(consent === 'model' ? 'model:small' : 'default');
      expect(marks.slice(1).every((mark) => mark === undefined)).toBe(true);
    },
  );

  test('reads a remembered stream byte for byte as it was, but for the mark', async () => {
    const { started, overload } = await busy(SHORT_GATE);
    const wish: Wish = { stream: true, body: { temperature: 0 } };
    const first = await low(started, 'cache', wish);
    await overload();
    const again = await low(started, 'cache', wish);
    expect(degraded(again)).toBe('cache');
    expect(again.text.replace('"spillway":{"degraded":"cache"},', '')).toBe(first.text);
    expect(again.headers['content-type']).toContain('text/event-stream');
  });
});

describe('a request that was let in', () => {
  test('gets the configured answer at its deadline, marked in the stream whose head is long gone', async () => {
    const { started, overload } = await busy({ server: { earlyCommitMs: 20, keepAliveCommentMs: 50 } });
    await overload();
    const answer = await low(started, 'default', {
      stream: true,
      deadlineMs: 400,
      className: 'normal',
      body: { max_tokens: 1 },
    });
    expect(answer.status).toBe(200);
    expect(degraded(answer)).toBeUndefined();
    expect(answer.text.startsWith(': ')).toBe(true);
    expect(answer.text).toContain('data: {"spillway":{"degraded":"default"},');
    expect(answer.text.endsWith('data: [DONE]\n\n')).toBe(true);
  });

  test.each([
    ['cache', 'cache'],
    ['default', 'default'],
    ['model', 'model:small'],
  ])('and whose node failed gets less by consent (%s)', async (consent, label) => {
    const { started, slow, quick } = await busy({ retry: { attemptsMax: 2 } });
    const wish: Wish = { body: { temperature: 0 } };
    expect((await low(started, 'cache', wish)).status).toBe(200);
    slow.script = (res, seen) =>
      seen.method === 'GET'
        ? sendJson(res, 200, { object: 'list', data: [{ id: 'tiny' }] })
        : sendJson(res, 500, { error: { message: 'broken' } });
    const answer = await low(started, consent, wish);
    expect(answer.status).toBe(200);
    expect(degraded(answer)).toBe(label);
    expect(quick.seen.filter(({ method }) => method === 'POST')).toHaveLength(consent === 'model' ? 1 : 0);
    expect(await explain(started, answer)).toMatchObject({
      failures: [{ node: 'slow', attempt: 1, failure: 'server-error' }],
      degraded: { answer: label, alternatives: [{ because: 'node-failed', verdict: 'taken' }] },
    });
    expect((await low(started)).status).toBe(502);
    await expectAllReleased(started);
  });
});

describe('a model that is switched off', () => {
  test('is refused, or replaced by consent, and is back when the configuration says so', async () => {
    const { started } = await busy();
    const { gateway } = started;
    const before = gateway.config;
    const models = before.scheduler.models.map((one) => (one.id === 'tiny' ? { ...one, off: true } : one));
    gateway.reconfigure({ ...before, scheduler: { ...before.scheduler, models } });
    const refused = await low(started);
    expect(refused.status).toBe(503);
    expect(refused.headers['x-spillway-reason']).toBe('no-node');
    expect(refused.text).toContain('the model is switched off by configuration');
    expect(degraded(await low(started, 'model'))).toBe('model:small');
    gateway.reconfigure(before);
    const back = await low(started, 'model');
    expect(back.status).toBe(200);
    expect(degraded(back)).toBeUndefined();
  });
});
