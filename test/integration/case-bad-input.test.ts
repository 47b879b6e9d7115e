/**
 * Bad input through the whole gateway: a typed refusal in the wire's own shape, nothing lost, nothing gained, no stack
 * trace; and a node's bad answer never becomes a clean success. The many spellings of each kind are in
 * `edge-bad-input.test.ts` and `edge-bad-node.test.ts`; wrong configuration is in `cli-commands.test.ts`.
 */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import {
  ask,
  type CaseBench,
  createCaseBench,
  expectAllReleased,
  nodeAt,
  within,
} from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';
import {
  CHAT,
  completion,
  DONE,
  type NodeScript,
  rawExchange,
  ROLE,
  sendJson,
  streamHead,
  streamWords,
  type TestNode,
} from './edge-fixture.ts';

const PATH = '/v1/chat/completions';
const WHOLE = JSON.stringify(CHAT);
const KEY = 'secret-1';
let bench: CaseBench;

beforeEach(() => {
  bench = createCaseBench();
});

afterEach(() => bench.end());

const posts = (node: TestNode): number => node.seen.filter((row) => row.method === 'POST').length;

describe('bad input', () => {
  let node: TestNode;
  let started: StartedGateway;

  beforeEach(async () => {
    node = await bench.node((res) => sendJson(res, 200, completion('fine')));
    const sha256 = createHash('sha256').update(KEY).digest('hex');
    started = await bench.gateway({
      nodes: [nodeAt('one', node)],
      tenants: [{ id: 'acme', classCeiling: 'normal', keys: [{ id: 'k1', sha256 }] }],
      server: { bodyBytesMax: 2_000, headerBytesMax: 4_096 },
    });
  });

  /** Sends bytes as they are and returns all that comes back. */
  const exchange = (bytes: string): Promise<string> =>
    rawExchange(Number(new URL(started.dataUrl).port), bytes);
  const head = (lines: string): string =>
    `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEY}\r\nconnection: close\r\n${lines}\r\n`;
  const whole = (body: string, lines = ''): string =>
    `${head(`content-length: ${Buffer.byteLength(body)}\r\n${lines}`)}${body}`;
  const bomb = gzipSync(Buffer.alloc(1_000_000)).toString('latin1');

  it.each<[string, number, () => string]>([
    ['malformed JSON', 400, () => whole('{"model": "tiny",')],
    ['a wrong type', 400, () => whole(JSON.stringify({ ...CHAT, messages: 3 }))],
    ['an unknown model', 404, () => whole(JSON.stringify({ ...CHAT, model: 'nope' }))],
    ['an oversize body', 413, () => whole('x'.repeat(3_000))],
    [
      'an oversize body in chunks',
      413,
      () => `${head('transfer-encoding: chunked\r\n')}bb8\r\n${'x'.repeat(3_000)}\r\n0\r\n\r\n`,
    ],
    [
      'a compressed bomb',
      400,
      () => `${head(`content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n`)}${bomb}`,
    ],
    ['an oversize header', 431, () => whole(WHOLE, `x-pad: ${'y'.repeat(10_000)}\r\n`)],
    [
      'two lengths',
      400,
      () =>
        `${head('content-length: 5\r\ntransfer-encoding: chunked\r\n')}0\r\n\r\nGET /v1/models HTTP/1.1\r\n\r\n`,
    ],
    ['a deadline of 1e308', 400, () => whole(WHOLE, 'x-spillway-deadline-ms: 1e308\r\n')],
    ['a deadline of -1', 400, () => whole(WHOLE, 'x-spillway-deadline-ms: -1\r\n')],
    ['a deadline of NaN', 400, () => whole(WHOLE, 'x-spillway-deadline-ms: NaN\r\n')],
    ['an empty deadline', 400, () => whole(WHOLE, 'x-spillway-deadline-ms: \r\n')],
    ['a wrong key', 401, () => whole(WHOLE).replace(KEY, 'nope')],
  ])('%s is a typed refusal, no node is called, nothing is kept', async (_title, status, bytes) => {
    const text = await exchange(bytes());
    expect(text.match(/HTTP\/1\.1 /g)?.length, 'one answer').toBe(1);
    expect(text).toContain(`HTTP/1.1 ${status}`);
    expect(text).toMatch(/^x-spillway-reason: [a-z-]+\r$/m);
    expect(text).toContain('{"error":{"message":');
    expect(text).not.toMatch(/\.ts:\d|node_modules|\bat \w+ \(/);
    expect(posts(node)).toBe(0);
    const good = await ask(started.dataUrl, { headers: { authorization: `Bearer ${KEY}` } });
    expect(good.status, 'the next one is served').toBe(200);
    await expectAllReleased(started);
  });

  it.each<[string, Record<string, string>, string]>([
    ['unknown', { 'x-spillway-class': 'emperor' }, 'normal'],
    ['above the ceiling', { 'x-spillway-class': 'critical' }, 'normal'],
    ['above the ceiling by another road', { priority: 'u=0' }, 'normal'],
  ])('a class that is %s gains nothing', async (_title, headers, className) => {
    const answer = await ask(started.dataUrl, { headers: { authorization: `Bearer ${KEY}`, ...headers } });
    expect([answer.status, answer.headers['x-spillway-class']]).toEqual([200, className]);
  });

  it('of a client that stops in the middle of its body keeps nothing', async () => {
    const half = head(`content-length: ${WHOLE.length}\r\n`) + WHOLE.slice(0, 20);
    const port = Number(new URL(started.dataUrl).port);
    const { promise, resolve } = Promise.withResolvers<void>();
    const leaving = connect(port, '127.0.0.1', () => leaving.write(half, () => leaving.end()));
    leaving.on('error', () => undefined).on('close', () => resolve());
    leaving.resume();
    await promise;
    expect(posts(node)).toBe(0);
    await expectAllReleased(started);
  });
});

describe('a bad answer of a node', () => {
  const BAD: readonly (readonly [string, boolean, NodeScript])[] = [
    ['a reset before anything', false, (res) => res.destroy()],
    [
      'a reset after the head',
      true,
      (res) => {
        streamHead(res);
        res.write(ROLE, () => res.destroy());
      },
    ],
    [
      'a short body',
      false,
      (res) => {
        res.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
        res.write(JSON.stringify(completion('half')).slice(0, 80), () => res.destroy());
      },
    ],
    [
      'garbage in a stream',
      true,
      (res) => {
        streamHead(res);
        res.end('data: {{{\n\ndata: [DONE]\n\n');
      },
    ],
    [
      'a stream that ends without a finish',
      true,
      (res) => {
        streamHead(res);
        res.end(ROLE);
      },
    ],
    [
      'a stream that is done with nothing in it',
      true,
      (res) => {
        streamHead(res);
        res.end(DONE);
      },
    ],
    ['200 with nothing', false, (res) => res.end()],
    [
      '200 with nothing where a stream was asked',
      true,
      (res) => {
        streamHead(res);
        res.end();
      },
    ],
    ['200 with a page', false, (res) => res.end('<html>welcome</html>')],
    [
      'half a document that looks whole',
      false,
      (res) => res.end(JSON.stringify(completion('x')).slice(0, -20)),
    ],
  ];

  it.each(BAD)('%s is 502 when no other node is left', async (_title, stream, script) => {
    const node = await bench.node(script);
    const started = await bench.gateway({ nodes: [nodeAt('bad', node)] });
    const answer = await ask(started.dataUrl, { stream });
    expect([answer.status, answer.headers['x-spillway-reason']]).toEqual([502, 'node-failed']);
    await expectAllReleased(started);
    const page = await call(`${started.adminUrl}/metrics`, { token: started.adminToken });
    expect(page.text).not.toMatch(/outcome="served"/);
  });

  it.each(BAD)('%s is tried again on another node', async (_title, stream, script) => {
    let misbehave: (() => void) | undefined;
    const bad = await bench.node((res, seen) => {
      misbehave = () => script(res, seen);
    });
    const good = await bench.node((res) => {
      if (!stream) sendJson(res, 200, completion('good'));
      else streamWords(res, ['good']);
    });
    const started = await bench.gateway({ nodes: [nodeAt('bad', bad), nodeAt('good', good)] });
    await started.gateway.setCordoned('good', true);
    const answer = ask(started.dataUrl, { stream });
    await within(5_000, 'the bad node has it', () => misbehave !== undefined);
    await started.gateway.setCordoned('good', false);
    misbehave?.();
    const { status, text } = await answer;
    expect(status).toBe(200);
    expect(text).toContain('good');
    expect(text).not.toContain('half');
    await expectAllReleased(started);
  });
});
