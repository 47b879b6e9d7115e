/** The console's files over real sockets: under which policy they come, and that nothing else does. */
import { connect } from 'node:net';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { buildConsole } from '../../scripts/build-console.ts';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { type CaseBench, createCaseBench } from '../support/case-bench.ts';
import { call } from './cli-fixture.ts';

let bench: CaseBench;
let started: StartedGateway;

beforeAll(() => buildConsole());

beforeEach(async () => {
  bench = createCaseBench();
  started = await bench.gateway({});
});

afterEach(() => bench.end());

const at = (path: string): string => `${started.adminUrl}/console${path}`;

async function scriptPath(): Promise<string> {
  const page = await call(at(''));
  return /src="\/console(\/assets\/[^"]+\.js)"/.exec(page.text)?.[1] ?? '';
}

/** A target that a client of ours would not send. */
function rawTarget(target: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(started.adminUrl).port), '127.0.0.1', () =>
      socket.write(`GET ${target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`),
    );
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(text));
  });
}

test.each(['', '/', '/index.html'])(
  'the page is open at /console%s, under a policy without inline script',
  async (path) => {
    const page = await call(at(path));
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    );
    expect(page.headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    });
    expect(page.text).not.toMatch(/<script(?![^>]*\ssrc=)|\sstyle=|\son\w+=/);
  },
);

test('a file whose name has a hash is kept for ever, the page is asked for again', async () => {
  const script = await call(at(await scriptPath()));
  expect(script.headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
  });
  const page = await call(at(''));
  const headers = { 'if-none-match': String(page.headers.etag) };
  expect([(await call(at(''), { headers })).status, (await call(at(''), { headers })).text]).toEqual([
    304,
    '',
  ]);
  const head = await call(at(''), { method: 'HEAD' });
  expect([head.status, head.text, head.headers['content-length']]).toEqual([
    200,
    '',
    String(Buffer.byteLength(page.text)),
  ]);
});

test.each([
  '/console/../package.json',
  '/console/..%2f..%2fpackage.json',
  '/console/%2e%2e/%2e%2e/package.json',
  '/console/..\\..\\package.json',
  '/console//etc/passwd',
  '/console/assets/',
  '/console/.built-from',
  '/console/assets/../index.html',
  '/console/%00index.html',
])('%s is no file of the console', async (target) => {
  const answer = await rawTarget(target);
  expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
  expect(answer).not.toMatch(/spillway",|root:|<!doctype/i);
});

test('is read, not written to', async () => {
  const answer = await call(at(''), { method: 'POST', body: {} });
  expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, HEAD']);
});

test('a foreign name for this machine is refused while there are no keys', async () => {
  expect((await call(at(''), { headers: { host: 'evil.example' } })).status).toBe(403);
});
