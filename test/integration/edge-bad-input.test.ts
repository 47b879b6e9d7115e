/** Bad input of every kind: a typed refusal in the wire's own shape; nothing lost, nothing gained, no stack trace. */
import { gzipSync } from 'node:zlib';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  CHAT,
  completion,
  type Edge,
  type EdgeOptions,
  openRaw,
  rawExchange,
  rawPost,
  sendJson,
  startEdge,
  startNode,
  type TestNode,
  until,
} from './edge-fixture.ts';

let edge: Edge;
let node: TestNode;
const PATH = '/v1/chat/completions';
const WHOLE = JSON.stringify(CHAT);

async function start(options: EdgeOptions = {}): Promise<void> {
  node = await startNode((res) => sendJson(res, 200, completion('fine')));
  edge = await startEdge({ nodes: [node], ...options });
}

function post(
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
  path: string = PATH,
): Promise<Response> {
  return fetch(`${edge.url}${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

/** The refusal's own shape, and nothing of ours in it. */
async function expectRefusal(
  answer: Response,
  status: number,
  reason: string,
): Promise<{ message: string; param: unknown }> {
  const text = await answer.text();
  expect(text, 'no stack trace').not.toMatch(/\.ts:\d|\bat \w+ \(|node_modules/);
  expect(answer.status, text).toBe(status);
  expect(answer.headers.get('x-spillway-reason')).toBe(reason);
  const { error } = JSON.parse(text) as {
    error: { message: string; type: string; param: unknown; code: unknown };
  };
  expect(Object.keys(error)).toEqual(expect.arrayContaining(['message', 'type', 'param', 'code']));
  return error;
}

/** The same of a raw answer. */
function expectRawRefusal(text: string, status: number): void {
  expect(text.slice(0, 13)).toContain(` ${status}`);
  expect(text).toContain('x-spillway-reason: ');
  expect(text).toContain('"error":{"message":');
  expect(text).not.toMatch(/\.ts:\d|node_modules|HPE_/);
}

afterEach(async () => {
  await edge.close();
  expect(edge.gateway.breaches).toEqual([]);
});

describe('a body that is not a request', () => {
  beforeEach(() => start());

  it.each([
    ['cut off', '{"model": "tiny", "messages": [', 'position 31 (line 1, column 32)'],
    ['with a trailing comma', '{"model":"tiny",\n"messages":[],}', 'position 31 (line 2, column 15)'],
    ['of plain words', 'hello', 'position 0 (line 1, column 1)'],
    ['that is empty', '', 'the body is empty'],
    ['that is a list', '[1]', 'must be a JSON object'],
    ['of deep nesting', '['.repeat(100_000), 'position 100000'],
  ])('%s is refused with its place', async (_title, body, message) => {
    const error = await expectRefusal(await post(body), 400, 'bad-request');
    expect(error.message).toContain(message);
  });

  it('that is no UTF-8 is refused', async () => {
    await expectRefusal(await post(Uint8Array.of(0x7b, 0xff, 0xfe, 0x7d)), 400, 'bad-request');
  });

  it.each([
    ['model', { messages: CHAT.messages }],
    ['model', { ...CHAT, model: 7 }],
    ['model', { ...CHAT, model: '' }],
    ['model', { ...CHAT, model: 'x'.repeat(5_000) }],
    ['messages', { model: 'tiny' }],
    ['messages', { model: 'tiny', messages: [] }],
    ['messages', { model: 'tiny', messages: {} }],
    ['messages', { model: 'tiny', messages: ['hi'] }],
    ['stream', { ...CHAT, stream: 'yes' }],
    ['stream_options', { ...CHAT, stream: true, stream_options: 3 }],
    ['max_tokens', { ...CHAT, max_tokens: -1 }],
    ['max_tokens', { ...CHAT, max_tokens: 1.5 }],
    ['max_completion_tokens', { ...CHAT, max_completion_tokens: '9' }],
  ])('with a wrong %s names it', async (param, body) => {
    const error = await expectRefusal(await post(JSON.stringify(body)), 400, 'bad-request');
    expect(error.param).toBe(param);
    expect(edge.gateway.specs).toEqual([]);
  });

  it.each([
    ['/v1/embeddings', 'input', { model: 'embed' }],
    ['/v1/embeddings', 'input', { model: 'embed', input: '' }],
    ['/v1/embeddings', 'dimensions', { model: 'embed', input: 'x', dimensions: 'many' }],
    ['/v1/completions', 'prompt', { model: 'tiny', prompt: 7 }],
    ['/v1/images/generations', 'prompt', { model: 'paint' }],
    ['/v1/images/generations', 'size', { model: 'paint', prompt: 'x', size: 'huge' }],
    ['/v1/images/generations', 'n', { model: 'paint', prompt: 'x', n: 0 }],
    ['/v1/images/generations', 'stream', { model: 'paint', prompt: 'x', stream: true }],
  ])('for %s with a wrong %s names it', async (path, param, body) => {
    const error = await expectRefusal(await post(JSON.stringify(body), {}, path), 400, 'bad-request');
    expect(error.param).toBe(param);
  });

  it('for an unknown model is refused as not found', async () => {
    const error = await expectRefusal(
      await post(JSON.stringify({ ...CHAT, model: 'nope' })),
      404,
      'unknown-model',
    );
    expect(error.message).toContain("'nope'");
  });
});

describe('a size that is too large', () => {
  const server = { bodyBytesMax: 2_000, headerBytesMax: 4_096 };
  beforeEach(() => start({ config: { server } }));

  it('by content-length is refused before the body is sent', async () => {
    const socket = await openRaw(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n`,
    );
    const text = await new Promise<string>((resolve) =>
      socket.once('data', (chunk) => resolve(String(chunk))),
    );
    expectRawRefusal(text, 413);
    expect(text).toContain('connection: close');
    socket.destroy();
  });

  it('by chunks is refused while it is read', async () => {
    const chunk = `400\r\n${'x'.repeat(1_024)}\r\n`;
    const text = await rawExchange(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(4)}`,
    );
    expectRawRefusal(text, 413);
  });

  it('after compression is never unpacked: an encoded body is refused', async () => {
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(1_000_000)));
    const error = await expectRefusal(await post(bomb, { 'content-encoding': 'gzip' }), 400, 'bad-request');
    expect(error.message).toContain('content-encoding');
  });

  it('of the headers is refused as 431', async () => {
    const text = await rawExchange(edge.port, rawPost(PATH, WHOLE, `x-pad: ${'y'.repeat(10_000)}\r\n`));
    expectRawRefusal(text, 431);
  });

  it('that only waits for permission is refused without it', async () => {
    const text = await rawExchange(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nconnection: close\r\ncontent-length: 5000\r\n\r\n`,
    );
    expect(text).not.toContain('100 Continue');
    expectRawRefusal(text, 413);
  });
});

describe('a body that waits for permission', () => {
  it('and is welcome gets it, and is served', async () => {
    await start();
    const socket = await openRaw(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: ${WHOLE.length}\r\n\r\n`,
    );
    let text = '';
    socket.on('data', (chunk) => {
      if (text === '') socket.write(WHOLE);
      text += chunk;
    });
    await until(() => text.includes('fine'));
    expect(text).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    socket.destroy();
  });
});

describe('two ways to read the length of a request', () => {
  beforeEach(() => start());
  const smuggled = 'GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n';

  it.each([
    [
      'content-length and transfer-encoding',
      'content-length: 5\r\ntransfer-encoding: chunked\r\n',
      `0\r\n\r\n${smuggled}`,
    ],
    [
      'transfer-encoding and content-length',
      'transfer-encoding: chunked\r\ncontent-length: 5\r\n',
      `0\r\n\r\n${smuggled}`,
    ],
    ['two content-lengths', 'content-length: 5\r\ncontent-length: 6\r\n', `hello${smuggled}`],
    ['a list of content-lengths', 'content-length: 5, 5\r\n', `hello${smuggled}`],
    ['a negative content-length', 'content-length: -1\r\n', smuggled],
    ['a content-length with a plus', 'content-length: +5\r\n', `hello${smuggled}`],
    ['a hexadecimal content-length', 'content-length: 0x5\r\n', `hello${smuggled}`],
    [
      'an encoding that is not chunked at its end',
      'transfer-encoding: chunked, identity\r\n',
      `0\r\n\r\n${smuggled}`,
    ],
    ['an unknown transfer-encoding', 'transfer-encoding: xchunked\r\n', `0\r\n\r\n${smuggled}`],
    ['a space before the colon', 'content-length : 5\r\n', `hello${smuggled}`],
    ['a folded header', 'transfer-encoding:\r\n chunked\r\n', `0\r\n\r\n${smuggled}`],
    [
      'a chunk size that is no number',
      'transfer-encoding: chunked\r\n',
      `zz\r\nhello\r\n0\r\n\r\n${smuggled}`,
    ],
    [
      'a chunk that is longer than it says',
      'transfer-encoding: chunked\r\n',
      `2\r\nhello\r\n0\r\n\r\n${smuggled}`,
    ],
    ['a bare line feed', 'x: 1\ntransfer-encoding: chunked\r\n', `0\r\n\r\n${smuggled}`],
  ])('%s: refused, and the connection ends with it', async (_title, headers, rest) => {
    const text = await rawExchange(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n${rest}`,
    );
    expectRawRefusal(text, 400);
    expect(text.match(/HTTP\/1\.1 /g)?.length, 'one answer for one request').toBe(1);
    expect(text).not.toContain('"object":"list"');
    expect(node.seen.length).toBe(0);
  });

  it.each([
    ['no Host', `POST ${PATH} HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`],
    ['two Hosts', rawPost(PATH, WHOLE, 'host: localhost\r\nconnection: close\r\n')],
    ['garbage instead of a request', 'ELEPHANT\r\n\r\n'],
    ['a line of another protocol', '\u0016\u0003\u0001\u0002\u0000\u0001'],
  ])('%s is refused', async (_title, bytes) => {
    expectRawRefusal(await rawExchange(edge.port, bytes), 400);
  });

  it('pipelined requests are answered in order', async () => {
    const second = rawPost(PATH, JSON.stringify({ ...CHAT, model: 'nope' }), 'connection: close\r\n');
    const text = await rawExchange(edge.port, rawPost(PATH, WHOLE) + second);
    expect(text.indexOf('200 OK')).toBeLessThan(text.indexOf('404 Not Found'));
    expect(text.indexOf('200 OK')).toBeGreaterThanOrEqual(0);
  });
});

describe('a deadline', () => {
  beforeEach(() => start());

  it.each([
    ['1e308'],
    ['-1'],
    ['NaN'],
    [''],
    ['Infinity'],
    ['0'],
    ['1.5'],
    ['0x10'],
    ['99999999999999'],
    ['5000, 9000'],
  ])('of "%s" is refused, and gains nothing', async (deadline) => {
    const answer = await post(WHOLE, { 'x-spillway-deadline-ms': deadline });
    await expectRefusal(answer, 400, 'bad-request');
    expect(edge.gateway.specs).toEqual([]);
  });

  it('of a whole number is taken', async () => {
    expect((await post(WHOLE, { 'x-spillway-deadline-ms': '5000' })).status).toBe(200);
    expect(edge.gateway.specs[0]).toMatchObject({ deadlineUs: 5_000_000, deadlineWished: true });
  });

  it('sent twice is refused', async () => {
    const twice = 'x-spillway-deadline-ms: 5000\r\nx-spillway-deadline-ms: 9000\r\nconnection: close\r\n';
    expectRawRefusal(await rawExchange(edge.port, rawPost(PATH, WHOLE, twice)), 400);
  });

  it('of a client library can only lower the default', async () => {
    await post(WHOLE, { 'x-stainless-timeout': '600' });
    await post(WHOLE, { 'x-stainless-timeout': '7' });
    await post(WHOLE, { 'x-stainless-read-timeout': 'NaN' });
    expect(edge.gateway.specs.map((spec) => spec.deadlineUs)).toEqual([30_000_000, 7_000_000, 30_000_000]);
  });

  it('by Prefer is taken when ours is absent', async () => {
    await post(WHOLE, { prefer: 'respond-async, wait=12' });
    await post(WHOLE, { prefer: 'wait=12', 'x-spillway-deadline-ms': '3000' });
    expect(edge.gateway.specs.map((spec) => spec.deadlineUs)).toEqual([12_000_000, 3_000_000]);
  });
});

describe('a path or method that is not served', () => {
  beforeEach(() => start());

  it('is refused as unknown', async () => {
    await expectRefusal(await post(WHOLE, {}, '/v1/nothing'), 404, 'unknown-path');
    await expectRefusal(await fetch(`${edge.url}/`), 404, 'unknown-path');
  });

  it('is refused as a wrong method', async () => {
    await expectRefusal(await fetch(`${edge.url}${PATH}`), 405, 'method-not-allowed');
    await expectRefusal(
      await fetch(`${edge.url}/v1/models`, { method: 'DELETE' }),
      405,
      'method-not-allowed',
    );
  });
});

describe('a gateway with keys', () => {
  const sha256 = createHash('sha256').update('secret-1').digest('hex');
  const tenants = [
    {
      id: 'acme',
      weight: 1,
      classCeiling: 'normal',
      classDefault: 'normal',
      nodeVisible: false,
      keys: [{ id: 'k1', sha256 }],
    },
  ];
  beforeEach(() => start({ config: { tenants } }));

  it.each([
    ['no key', {}],
    ['a wrong key', { authorization: 'Bearer nope' }],
    ['an empty key', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: 'Basic secret-1' }],
    ['a wrong x-api-key', { 'x-api-key': 'nope' }],
    ['a key of absurd length', { authorization: `Bearer ${'k'.repeat(2_000)}` }],
  ])('refuses %s before it reads the body', async (_title, headers) => {
    const error = await expectRefusal(
      await post(WHOLE, headers as Record<string, string>),
      401,
      'unauthenticated',
    );
    expect(error.message).not.toContain('nope');
    expect(node.seen).toEqual([]);
  });

  it.each([
    ['Bearer', { authorization: 'Bearer secret-1' }],
    ['bearer in lower case', { authorization: 'bearer secret-1' }],
    ['x-api-key', { 'x-api-key': 'secret-1' }],
  ])('takes a key by %s', async (_title, headers) => {
    const answer = await post(WHOLE, headers as Record<string, string>);
    expect(answer.status).toBe(200);
    expect(edge.gateway.specs[0]?.tenant).toBe('acme');
    expect(answer.headers.get('x-spillway-node')).toBeNull();
  });

  it('asks for a key for the list of models as well', async () => {
    await expectRefusal(await fetch(`${edge.url}/v1/models`), 401, 'unauthenticated');
  });

  it.each([
    ['x-spillway-class', { 'x-spillway-class': 'critical' }, {}],
    ['service_tier', {}, { service_tier: 'priority' }],
    ['priority in the body', {}, { priority: -5 }],
    ['an inference objective', { 'x-llm-d-inference-objective': 'critical' }, {}],
    ['RFC 9218 urgency', { priority: 'u=0' }, {}],
  ])('clamps a wish by %s to the ceiling', async (_title, headers, fields) => {
    await post(JSON.stringify({ ...CHAT, ...fields }), {
      authorization: 'Bearer secret-1',
      ...(headers as object),
    });
    expect(edge.gateway.specs[0]?.className).toBe('normal');
  });

  it.each([
    ['x-spillway-class', { 'x-spillway-class': 'low' }, {}],
    ['service_tier', {}, { service_tier: 'flex' }],
    ['priority in the body', {}, { priority: 5 }],
    ['an inference objective', { 'x-llm-d-inference-objective': 'low' }, {}],
    ['RFC 9218 urgency', { priority: 'u=7, i' }, {}],
  ])('follows a wish for less by %s', async (_title, headers, fields) => {
    await post(JSON.stringify({ ...CHAT, ...fields }), {
      authorization: 'Bearer secret-1',
      ...(headers as object),
    });
    expect(edge.gateway.specs[0]?.className).toBe('low');
  });

  it('ignores an unknown class, and counts it', async () => {
    const answer = await post(WHOLE, { authorization: 'Bearer secret-1', 'x-spillway-class': 'emperor' });
    expect(answer.headers.get('x-spillway-class')).toBe('normal');
    expect(edge.metricCalls).toContainEqual(['wishIgnored', 'class-unknown']);
  });

  it('takes new keys from a reload, and forgets old ones', async () => {
    const other = createHash('sha256').update('secret-2').digest('hex');
    const config = edge.gateway.config;
    const tenant = { ...(tenants[0] as (typeof tenants)[0]), keys: [{ id: 'k2', sha256: other }] };
    edge.gateway.config = { ...config, tenants: [tenant] };
    await expectRefusal(await post(WHOLE, { authorization: 'Bearer secret-1' }), 401, 'unauthenticated');
    expect((await post(WHOLE, { authorization: 'Bearer secret-2' })).status).toBe(200);
  });
});

describe('a gateway without keys', () => {
  beforeEach(() => start({ config: { server: { host: '0.0.0.0' } } }));

  it('listens on loopback whatever the configuration says', () => {
    expect(edge.plane.server.address()).toMatchObject({ address: '127.0.0.1' });
  });

  it.each([
    [
      'a foreign Host',
      `POST ${PATH} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    ],
    [
      'a Host that only begins well',
      `POST ${PATH} HTTP/1.1\r\nhost: localhost.evil.example\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
    ],
    ['a foreign Origin', rawPost(PATH, WHOLE, 'origin: https://evil.example\r\nconnection: close\r\n')],
    ['the Origin of a sandbox', rawPost(PATH, WHOLE, 'origin: null\r\nconnection: close\r\n')],
  ])('refuses %s, so that no web page reaches it', async (_title, bytes) => {
    expectRawRefusal(await rawExchange(edge.port, bytes), 403);
    expect(node.seen).toEqual([]);
  });

  it('serves pages of this machine', async () => {
    expect((await post(WHOLE, { origin: 'http://localhost:3000' })).status).toBe(200);
    expect(edge.gateway.specs[0]?.tenant).toBe('anonymous');
  });
});

describe('a gateway that is shutting down', () => {
  it('refuses from the head alone, with a time to come back', async () => {
    await start();
    edge.gateway.ready = false;
    const answer = await post('not even JSON');
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    await expectRefusal(answer, 503, 'shutting-down');
  });
});

describe('a slow client', () => {
  it('that sends its headers too slowly is cut with a typed refusal', async () => {
    await start({ config: { server: { headersMs: 200, requestMs: 400 } } });
    expectRawRefusal(await rawExchange(edge.port, `POST ${PATH} HTTP/1.1\r\nhost: loc`), 408);
  });

  it('that sends its body too slowly is cut with a typed refusal', async () => {
    await start({ config: { server: { headersMs: 200, requestMs: 300 } } });
    const text = await rawExchange(
      edge.port,
      `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{`,
    );
    expectRawRefusal(text, 408);
    expect(edge.gateway.specs).toEqual([]);
  });
});
