/** The wire contract of the data plane: what a node sees, what a client sees, streams and their commitment. */
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  DONE,
  delta,
  type Edge,
  type EdgeOptions,
  type NodeScript,
  openRaw,
  ROLE,
  rawPost,
  SOON,
  sendJson,
  startEdge,
  startNode,
  streamHead,
  streamWords,
  type TestNode,
  USAGE,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let node: TestNode;
const PATH = '/v1/chat/completions';

async function start(script: NodeScript, options: EdgeOptions = {}): Promise<void> {
  node = await startNode(script);
  edge = await startEdge({ nodes: [node], ...options });
}

function post(body: unknown, headers: Record<string, string> = {}, path: string = PATH): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${edge.url}${path}`, { method: 'POST', body: text, headers });
}

afterEach(async () => {
  await edge.close();
  expect(edge.gateway.breaches).toEqual([]);
  expect(edge.gateway.results.length, 'one end per assignment').toBe(edge.gateway.assignments);
  expect(edge.plane.server.listening).toBe(false);
});

const ok: NodeScript = (res) => sendJson(res, 200, completion('fine'));

describe('what a node sees', () => {
  it('is the body byte for byte, odd spacing, unicode and unknown members included', async () => {
    await start(ok);
    const body = `{ "model" : "tiny",\n\t"messages":[{"role":"user","content":"ä \\u0041 \\"q\\" 𝄞"}] , "x_unknown": {"a":[1,2e3,null]} }`;
    await post(body);
    expect(node.seen[0]?.body).toBe(body);
    expect(node.seen[0]?.headers['content-length']).toBe(String(Buffer.byteLength(body)));
  });

  it('is the canonical name of an alias, and nothing else changes', async () => {
    await start(ok);
    await post(
      '{"temperature":0.5,"model":"gpt-alias","messages":[{"role":"user","content":"my \\"model\\""}],"n":1}',
    );
    expect(node.seen[0]?.body).toBe(
      '{"temperature":0.5,"model":"tiny","messages":[{"role":"user","content":"my \\"model\\""}],"n":1}',
    );
    expect(edge.gateway.specs[0]?.model).toBe('tiny');
  });

  it("is the node's own name of the model", async () => {
    await start(ok);
    edge.gateway.upstreamModel = 'TheBloke/tiny-GGUF';
    await post(CHAT);
    expect(JSON.parse(node.seen[0]?.body ?? '')).toEqual({ ...CHAT, model: 'TheBloke/tiny-GGUF' });
  });

  it.each([
    ['first', { service_tier: 'flex', priority: 3, ...CHAT }],
    ['last', { ...CHAT, priority: 3, service_tier: 'flex' }],
    ['between', { model: 'tiny', priority: 3, messages: CHAT.messages, service_tier: 'flex', n: 1 }],
  ])('holds no class hint, wherever it stood: %s', async (_title, body) => {
    await start(ok);
    await post(body);
    const { service_tier: _tier, priority: _priority, ...rest } = body as Record<string, unknown>;
    expect(JSON.parse(node.seen[0]?.body ?? '')).toEqual(rest);
  });

  it('is asked for usage in a stream, keeping what the client chose besides', async () => {
    await start((res) => streamWords(res, ['x']));
    await (await post({ ...CHAT, stream: true, stream_options: { include_obfuscation: false } })).text();
    await (await post({ ...CHAT, stream: true, stream_options: null })).text();
    expect(node.seen.map((row) => JSON.parse(row.body).stream_options)).toEqual([
      { include_obfuscation: false, include_usage: true },
      { include_usage: true },
    ]);
  });

  it('has none of the credentials, cookies and control headers of the client', async () => {
    await start(ok, { nodeHeaders: ['authorization', 'Bearer node-key'], basePath: '/base/' });
    await post(CHAT, {
      authorization: 'Bearer client-key',
      'x-api-key': 'client-key',
      cookie: 'session=1',
      'x-spillway-class': 'low',
      'x-spillway-deadline-ms': '9000',
      'x-forwarded-for': '10.0.0.1',
      'x-stainless-lang': 'js',
      traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      'x-request-id': 'mine-1',
    });
    const seen = node.seen[0];
    expect(seen?.url).toBe('/base/v1/chat/completions');
    expect(seen?.headers.authorization).toBe('Bearer node-key');
    expect(seen?.headers.traceparent).toMatch(/^00-/);
    expect(seen?.headers['x-request-id']).toBe('mine-1');
    expect(JSON.stringify(seen)).not.toContain('client-key');
    for (const name of ['cookie', 'x-api-key', 'x-spillway-class', 'x-forwarded-for', 'x-stainless-lang']) {
      expect(seen?.headers[name], name).toBeUndefined();
    }
  });
});

describe('what a client sees', () => {
  it('is where its request ran, and nothing of the node that is not allowed', async () => {
    await start((res) =>
      sendJson(res, 200, completion('fine'), {
        'x-spillway-id': 'forged',
        'x-should-retry': 'true',
        'retry-after': '1',
        'set-cookie': 'a=b',
        server: 'uvicorn',
        'openai-processing-ms': '5',
      }),
    );
    const answer = await post(CHAT, { 'x-request-id': 'mine-2' });
    const headers = Object.fromEntries(answer.headers);
    expect(headers).toMatchObject({
      'x-spillway-id': 'req_1',
      'x-request-id': 'mine-2',
      'x-spillway-class': 'normal',
      'x-spillway-attempts': '1',
      'x-spillway-node': 'n0',
      'openai-processing-ms': '5',
    });
    expect(headers['x-spillway-queue-ms']).toMatch(/^\d+$/);
    expect(headers['x-spillway-overhead-us']).toMatch(/^\d+$/);
    for (const name of ['x-should-retry', 'retry-after', 'set-cookie', 'server']) {
      expect(headers[name], name).toBeUndefined();
    }
  });

  it('is its own id only when that is a plain one', async () => {
    await start(ok);
    const answer = await post(CHAT, { 'x-request-id': 'a b<script>' });
    expect(answer.headers.get('x-request-id')).toBe('req_1');
  });

  it('is a refusal with its reason, id and the time already waited', async () => {
    await start(ok);
    edge.gateway.isHolding = true;
    const waiting = post(CHAT);
    await until(() => edge.gateway.live === 1);
    edge.gateway.finish({ kind: 'evicted', reason: 'wait-expired', hint: SOON });
    const answer = await waiting;
    expect(answer.status).toBe(429);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'x-spillway-reason': 'wait-expired',
      'x-spillway-id': 'req_1',
      'x-spillway-attempts': '0',
    });
    expect(await answer.json()).toMatchObject({ error: { code: 'overloaded', retry_after_ms: 2_000 } });
  });

  it('is 503 for overload where the configuration says so', async () => {
    await start(ok, { config: { server: { overloadStatus: 503 } } });
    edge.gateway.isHolding = true;
    const waiting = post(CHAT);
    await until(() => edge.gateway.live === 1);
    edge.gateway.finish({ kind: 'rejected', reason: 'queue-full', hint: SOON });
    expect((await waiting).status).toBe(503);
  });

  it('is a hint not to retry, and the true estimate, when that is beyond a minute', async () => {
    await start(ok);
    edge.gateway.isHolding = true;
    const waiting = post(CHAT);
    await until(() => edge.gateway.live === 1);
    edge.gateway.finish({
      kind: 'rejected',
      reason: 'queue-full',
      hint: { retryable: true, afterUs: 300_000_000 },
    });
    const answer = await waiting;
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(answer.headers.get('x-should-retry')).toBe('false');
    expect(await answer.json()).toMatchObject({ error: { retry_after_ms: 300_000 } });
  });

  it('is counted by class, model and outcome, once per request', async () => {
    await start(ok);
    await post(CHAT);
    await post('{');
    await until(() => edge.metricCalls.filter(([name]) => name === 'requestEnded').length === 2);
    const ended = edge.metricCalls
      .filter(([name]) => name === 'requestEnded')
      .map((call) => call.slice(0, 4));
    expect(ended).toEqual([
      ['requestEnded', 'normal', 'tiny', 'served'],
      ['requestEnded', '', '', 'bad-request'],
    ]);
    expect(edge.metricCalls).toContainEqual(['tokens', 'output', 'tiny', 3]);
    expect(edge.gateway.learned.length).toBe(1);
  });
});

describe('needs of a request', () => {
  it('are read from images, tools, schema and length', async () => {
    await start(ok);
    const image = `data:image/png;base64,${'A'.repeat(40_000)}`;
    await post({
      model: 'tiny',
      max_tokens: 50,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what' },
            { type: 'image_url', image_url: { url: image } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'f' } }],
      response_format: { type: 'json_schema', json_schema: { name: 's', schema: {} } },
    });
    const spec = edge.gateway.specs[0];
    expect(spec?.needs.capabilities).toEqual(['json-schema', 'tools', 'vision']);
    expect(spec?.needs.contextTokens, 'the picture is not prompt text').toBeLessThan(200);
    expect(spec?.bytes).toBeGreaterThan(40_000);
  });

  it('include the length of an embedding', async () => {
    await start((res) => sendJson(res, 200, { object: 'list', data: [] }));
    await post({ model: 'embed', input: ['a', 'b'], dimensions: 384 }, {}, '/v1/embeddings');
    expect(edge.gateway.specs[0]?.needs.embeddingSize).toBe(384);
  });
});

describe('a stream that waits', () => {
  const config = { server: { earlyCommitMs: 40, keepAliveCommentMs: 30 } };

  it('commits after a while, shows that it lives in comments only, and then flows', async () => {
    await start((res) => streamWords(res, ['late']), { config });
    edge.gateway.isHolding = true;
    const answer = await post({ ...CHAT, stream: true });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(answer.headers.get('x-spillway-node'), 'no node is known yet').toBeNull();
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = Buffer.from((await reader.read()).value as Uint8Array).toString();
    expect(first).toMatch(/^: waiting/);
    edge.gateway.release();
    let rest = '';
    for (let part = await reader.read(); !part.done; part = await reader.read())
      rest += Buffer.from(part.value).toString();
    const events = rest.replaceAll(/: waiting[^\n]*\n\n/g, '');
    expect(events).toBe(`${ROLE}${delta({ content: 'late' })}${delta({}, 'stop')}${DONE}`);
  });

  it('is told of an error inside the stream, without goodbye', async () => {
    await start((res) => streamWords(res, ['never']), { config });
    edge.gateway.isHolding = true;
    const answer = await post({ ...CHAT, stream: true });
    edge.gateway.finish({ kind: 'evicted', reason: 'wait-expired', hint: SOON });
    const text = await answer.text();
    expect(text).toMatch(/data: \{"error":\{.*"reason":"wait-expired".*\}\}\n\n$/);
    expect(text).not.toContain('[DONE]');
  });

  it('may still be retried on another node until the first content byte', async () => {
    let calls = 0;
    let breakFirst = (): void => {};
    const script: NodeScript = (res) => {
      if (++calls === 2) {
        streamWords(res, ['second']);
        return;
      }
      streamHead(res);
      res.write(ROLE);
      breakFirst = () => res.destroy();
    };
    node = await startNode(script);
    const other = await startNode(script);
    edge = await startEdge({ nodes: [node, other], config });
    const answer = await post({ ...CHAT, stream: true });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let text = Buffer.from((await reader.read()).value as Uint8Array).toString();
    expect(text).toMatch(/^: waiting/);
    breakFirst();
    for (let part = await reader.read(); !part.done; part = await reader.read())
      text += Buffer.from(part.value).toString();
    expect(text).toContain('second');
    expect(text.match(/"role":"assistant"/g)?.length, 'the failed node left no trace').toBe(1);
    expect(text).toContain(DONE);
  });

  it('gets a refusal of the node for its own fault inside the stream', async () => {
    await start(
      (res) => sendJson(res, 400, { error: { message: 'too long', type: 'x', param: null, code: null } }),
      { config },
    );
    edge.gateway.isHolding = true;
    const answer = await post({ ...CHAT, stream: true });
    edge.gateway.release();
    const text = await answer.text();
    expect(text).toContain('data: {"error":{"message":"too long"');
    expect(text).not.toContain('[DONE]');
    expect(edge.gateway.results).toEqual([{ kind: 'declined' }]);
  });

  it('commits early although a whole answer that waits as long does not', async () => {
    await start(ok, { config });
    edge.gateway.isHolding = true;
    const whole = post(CHAT);
    await until(() => edge.gateway.live === 1);
    const stream = await post({ ...CHAT, stream: true });
    expect(stream.status, 'later than the other, and committed').toBe(200);
    edge.gateway.finish({ kind: 'evicted', reason: 'evicted', hint: SOON });
    expect((await whole).status).toBe(429);
    await stream.text();
  });
});

describe('a slow reader', () => {
  const EVENT = delta({ content: 'z'.repeat(60_000) });
  const EVENTS = 300;

  /** Writes far more than a connection holds, as fast as it is taken, and tells when it is through. */
  function flood(): { script: NodeScript; finished: Promise<void> } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const script: NodeScript = (res) => {
      streamHead(res);
      let left = EVENTS;
      const more = (): void => {
        while (left > 0) {
          left--;
          if (!res.write(EVENT)) {
            res.once('drain', more);
            return;
          }
        }
        res.write(delta({}, 'stop'));
        res.end(USAGE + DONE, () => resolve());
      };
      more();
    };
    return { script, finished: promise };
  }

  it('does not hold the node: the answer is spooled, the node is released at its own end', async () => {
    const { script, finished } = flood();
    await start(script, { config: { server: { spoolBytesMax: 64e6, spoolBytesTotalMax: 64e6 } } });
    const socket = connect(edge.port, '127.0.0.1', () =>
      socket.write(rawPost(PATH, JSON.stringify({ ...CHAT, stream: true }))),
    );
    socket.pause();
    await finished;
    await until(() => edge.gateway.results.length === 1);
    expect(edge.gateway.results[0]?.kind, 'released before the client has read').toBe('ok');
    let bytes = 0;
    socket.on('data', (chunk) => {
      bytes += chunk.length;
    });
    socket.resume();
    await until(() => bytes > EVENT.length * EVENTS);
    socket.destroy();
  });

  it('beyond the bound pauses the node, and goes on when it reads again', async () => {
    const { script } = flood();
    await start(script, { config: { server: { spoolBytesMax: 200_000, spoolBytesTotalMax: 64e6 } } });
    const answer = await post({ ...CHAT, stream: true });
    const spooled = (): number =>
      Math.max(
        0,
        ...edge.metricCalls.filter(([name]) => name === 'spoolBytes').map((call) => call[1] as number),
      );
    await until(() => spooled() > 200_000);
    const text = await answer.text();
    expect(text.endsWith(DONE)).toBe(true);
    expect(spooled(), 'the bound holds, but for what was on its way').toBeLessThan(4e6);
    await until(() => edge.gateway.results.length === 1);
    expect(edge.gateway.results[0]?.kind).toBe('ok');
  });

  it('that reads nothing for too long is cut, and the node is stopped', async () => {
    const { script } = flood();
    await start(script, {
      config: { server: { spoolBytesMax: 100_000, spoolBytesTotalMax: 64e6, stallMs: 150 } },
    });
    const socket = connect(edge.port, '127.0.0.1', () =>
      socket.write(rawPost(PATH, JSON.stringify({ ...CHAT, stream: true }))),
    );
    socket.on('error', () => {});
    socket.pause();
    await node.aborted(0);
    expect(edge.metricCalls).toContainEqual(['slowReaderCut']);
    await until(() => edge.gateway.live === 0);
    socket.destroy();
  });

  it('is bounded together with all others', async () => {
    const { script } = flood();
    await start(script, {
      config: { server: { spoolBytesMax: 64e6, spoolBytesTotalMax: 300_000, stallMs: 300 } },
    });
    const sockets = await Promise.all(
      [1, 2, 3].map(async () => {
        const socket = await openRaw(edge.port, rawPost(PATH, JSON.stringify({ ...CHAT, stream: true })));
        socket.pause();
        return socket;
      }),
    );
    await until(() => edge.metricCalls.filter(([name]) => name === 'slowReaderCut').length === 3);
    const totals = edge.metricCalls
      .filter(([name]) => name === 'spoolBytes')
      .map((call) => call[1] as number);
    expect(Math.max(...totals)).toBeLessThan(8e6);
    expect(totals.at(-1), 'nothing stays counted').toBe(0);
    for (const socket of sockets) socket.destroy();
  });
});
