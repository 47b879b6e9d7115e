/** A node's bad answer never becomes a clean success: another node is tried, or the client is told. */
import { createServer, type Server as NetServer, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  DONE,
  delta,
  type Edge,
  type EdgeOptions,
  listen,
  type NodeScript,
  ROLE,
  sendJson,
  startEdge,
  startNode,
  streamHead,
  streamWords,
  type TestNode,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let closers: (() => void)[] = [];

const PATH = '/v1/chat/completions';
const GOOD: NodeScript = (res, seen) => {
  if (JSON.parse(seen.body).stream === true) streamWords(res, ['good']);
  else sendJson(res, 200, completion('good'));
};

function post(stream: boolean): Promise<Response> {
  return fetch(`${edge.url}${PATH}`, { method: 'POST', body: JSON.stringify({ ...CHAT, stream }) });
}

/** A node that answers each connection with the given bytes and then ends it. */
async function rawNode(bytes: string, end: 'end' | 'reset'): Promise<TestNode> {
  const server: NetServer = createServer((socket: Socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(bytes, 'latin1', () => (end === 'end' ? socket.end() : socket.resetAndDestroy()));
    });
  });
  const port = await listen(server);
  closers.push(() => server.close());
  const node = await startNode(() => {});
  return { ...node, url: `http://127.0.0.1:${port}`, port };
}

/** The first attempt goes to the bad node, the second to the good one. */
async function startPair(bad: TestNode, options: EdgeOptions = {}): Promise<void> {
  const good = await startNode(GOOD);
  // Task 1, attempt 1 goes to index 1.
  edge = await startEdge({ ...options, nodes: [good, bad] });
}

async function startAlone(bad: TestNode, options: EdgeOptions = {}): Promise<void> {
  edge = await startEdge({ ...options, nodes: [bad] });
}

afterEach(async () => {
  await edge.close();
  for (const close of closers) close();
  closers = [];
  expect(edge.gateway.breaches).toEqual([]);
  expect(edge.gateway.results.length, 'one end per assignment').toBe(edge.gateway.assignments);
});

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const SSE_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';

const BAD_ANSWERS: readonly [string, boolean, string, 'end' | 'reset'][] = [
  ['a connection that is reset', false, '', 'reset'],
  ['a connection that is closed without an answer', false, '', 'end'],
  ['a garbage status line', false, 'ELEPHANT\r\n\r\n', 'end'],
  ['a body shorter than its content-length', false, `${HEAD}content-length: 500\r\n\r\n{"a":1}`, 'end'],
  ['two content-lengths', false, `${HEAD}content-length: 7\r\ncontent-length: 8\r\n\r\n{"a":1}`, 'end'],
  [
    'content-length and chunked at once',
    false,
    `${HEAD}content-length: 7\r\ntransfer-encoding: chunked\r\n\r\n{"a":1}`,
    'end',
  ],
  [
    'a chunked body without its last chunk',
    false,
    `${HEAD}transfer-encoding: chunked\r\n\r\n7\r\n{"a":1}\r\n`,
    'end',
  ],
  ['200 with nothing', false, `${HEAD}content-length: 0\r\n\r\n`, 'end'],
  [
    '200 with a web page',
    false,
    'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 6\r\n\r\n<html>',
    'end',
  ],
  [
    'a JSON answer cut before its end, without any length',
    false,
    `${HEAD}connection: close\r\n\r\n{"choices":[{"mess`,
    'end',
  ],
  [
    'a redirect',
    false,
    'HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n',
    'end',
  ],
  [
    'an answer that is compressed though nobody asked',
    false,
    `${HEAD}content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}`,
    'end',
  ],
  ['a JSON answer to a stream', true, `${HEAD}content-length: 2\r\n\r\n{}`, 'end'],
  ['an empty event stream', true, SSE_HEAD, 'end'],
  ['an event stream of garbage', true, `${SSE_HEAD}hello, this is no event\n\n`, 'end'],
  ['an event stream of broken JSON', true, `${SSE_HEAD}data: {"choices":[{"del\n\n`, 'end'],
  ['an event stream that only announces a role', true, `${SSE_HEAD}${ROLE}`, 'end'],
  ['an event stream with nothing but its goodbye', true, `${SSE_HEAD}${DONE}`, 'end'],
  ['an error event before content', true, `${SSE_HEAD}${ROLE}data: {"error":{"message":"boom"}}\n\n`, 'end'],
  ['a stream that is reset before content', true, `${SSE_HEAD}${ROLE}`, 'reset'],
];

describe('before a content byte reached the client, another node is tried after', () => {
  it.each(BAD_ANSWERS)('%s', async (_title, stream, bytes, end) => {
    await startPair(await rawNode(bytes, end));
    const answer = await post(stream);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    expect(text).toContain('good');
    expect(text).not.toContain('"error"');
    expect(edge.gateway.results[0]).toMatchObject({ kind: 'failed', retryable: true });
    expect(answer.headers.get('x-spillway-attempts')).toBe('2');
  });
});

describe('when no other node is left, the client gets a typed 502 after', () => {
  it.each(BAD_ANSWERS)('%s', async (_title, stream, bytes, end) => {
    await startAlone(await rawNode(bytes, end));
    const answer = await post(stream);
    expect(answer.status).toBe(502);
    expect(answer.headers.get('x-spillway-reason')).toBe('node-failed');
    expect(await answer.json()).toMatchObject({ error: { code: 'node_failed', reason: 'node-failed' } });
  });
});

describe('a node that refuses', () => {
  it.each([
    [429, 'refused'],
    [503, 'refused'],
    [500, 'server-error'],
    [401, 'server-error'],
    [404, 'server-error'],
  ])('with %i is left for another one', async (status, failure) => {
    const bad = await startNode((res) => sendJson(res, status, { error: 'no' }, { 'retry-after': '7' }));
    await startPair(bad);
    const answer = await post(false);
    expect(answer.status).toBe(200);
    expect(edge.gateway.results[0]).toEqual({
      kind: 'failed',
      failure,
      retryable: true,
      nodeRetryAfterUs: 7_000_000,
    });
  });

  it('for a reason in the request itself is the answer, status and body as they came', async () => {
    const body = { error: { message: 'too hot', type: 'x', param: 'temperature', code: null } };
    const bad = await startNode((res) =>
      sendJson(res, 422, body, { 'retry-after': '9', 'set-cookie': 'a=b' }),
    );
    await startPair(bad);
    const answer = await post(false);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toEqual(body);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(answer.headers.get('set-cookie')).toBeNull();
    expect(edge.gateway.results).toEqual([{ kind: 'declined' }]);
  });
});

describe('after content reached the client', () => {
  it.each([
    ['a reset', `${SSE_HEAD}${delta({ content: 'half' })}`, 'reset'],
    ['an end without goodbye or finish', `${SSE_HEAD}${delta({ content: 'half' })}`, 'end'],
    [
      'an error event',
      `${SSE_HEAD}${delta({ content: 'half' })}data: {"error":{"message":"boom"}}\n\n${DONE}`,
      'end',
    ],
    ['garbage', `${SSE_HEAD}${delta({ content: 'half' })}what is this\n\n`, 'end'],
    ['half an event', `${SSE_HEAD}${delta({ content: 'half' })}data: {"choices":[{"delta":{"con`, 'end'],
  ] as const)('%s becomes an error inside the stream, without goodbye', async (_title, bytes, end) => {
    await startPair(await rawNode(bytes, end));
    const answer = await post(true);
    expect(answer.status).toBe(200);
    const text = await answer.text();
    expect(text).toContain('half');
    expect(text).toContain('data: {"error":');
    expect(text).not.toContain('[DONE]');
    expect(text, 'the node may not speak for the gateway').not.toContain('boom');
    expect(edge.gateway.results).toMatchObject([{ kind: 'failed', retryable: false }]);
  });

  it('a whole answer too large to hold is cut, so that half a document is not taken for a whole one', async () => {
    const big = `{"data":"${'x'.repeat(400_000)}`;
    await startPair(await rawNode(`${HEAD}content-length: 900000\r\n\r\n${big}`, 'end'));
    const answer = await post(false);
    await expect(answer.text()).rejects.toThrow();
    expect(edge.gateway.results).toMatchObject([{ kind: 'failed', retryable: false }]);
  });
});

describe('a node that ends well in its own way', () => {
  it('with a finish reason and no goodbye is a success, and the goodbye is added', async () => {
    const events = `${delta({ content: 'all' })}${delta({}, 'stop')}`;
    await startAlone(await rawNode(`${SSE_HEAD}${events}`, 'end'));
    const text = await (await post(true)).text();
    expect(text).toBe(`${events}${DONE}`);
    expect(edge.gateway.results).toEqual([{ kind: 'ok' }]);
  });

  it('with CRLF line ends and comments is understood', async () => {
    const events = `: ping\r\n\r\n${delta({ content: 'all' })}${DONE}`.replaceAll(/\r?\n/g, '\r\n');
    await startAlone(await rawNode(`${SSE_HEAD}${events}`, 'end'));
    expect(await (await post(true)).text()).toContain('"all"');
    expect(edge.gateway.results).toEqual([{ kind: 'ok' }]);
  });

  it('in pieces cut anywhere arrives byte for byte', async () => {
    const events = `${ROLE}${delta({ content: 'ä€𝄞' })}${delta({ content: 'two' })}${delta({}, 'stop')}${DONE}`;
    const bytes = Buffer.from(events);
    const node = await startNode((res) => {
      streamHead(res);
      let at = 0;
      const step = (): void => {
        if (at >= bytes.length) {
          res.end();
          return;
        }
        res.write(bytes.subarray(at, at + 7));
        at += 7;
        setImmediate(step);
      };
      step();
    });
    await startAlone(node);
    expect(await (await post(true)).text()).toBe(events);
    await until(() => edge.gateway.results.length === 1);
    expect(edge.gateway.results).toMatchObject([{ kind: 'ok' }]);
  });
});
