/** TLS for clients: served by certificate files, refused clearly where it cannot be. */
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { connect as connectTls, getCACertificates, setDefaultCACertificates } from 'node:tls';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StartedGateway } from '../../src/apps/gateway/start-gateway.ts';
import { StartError } from '../../src/apps/gateway/state-folder.ts';
import { type CertificateFiles, makeCertificate } from '../support/certificate.ts';
import { type CaseBench, createCaseBench, nodeAt } from '../support/case-bench.ts';
import { chat, createFixture, type Fixture } from './cli-fixture.ts';
import { completion, type NodeScript, sendJson, streamWords } from './edge-fixture.ts';

let bench: CaseBench;
let fixture: Fixture;
let files: CertificateFiles;
let trusted: readonly string[];

beforeEach(() => {
  bench = createCaseBench();
  fixture = createFixture();
  files = makeCertificate(fixture.folder);
  trusted = getCACertificates('default');
});

afterEach(async () => {
  setDefaultCACertificates([...trusted]);
  await bench.end();
  await fixture.end();
});

const CHAT = { model: 'tiny', messages: [{ role: 'user' as const, content: 'hi' }] };

const answers: NodeScript = (res, seen) =>
  seen.body.includes('"stream":true')
    ? streamWords(res, ['hel', 'lo'])
    : sendJson(res, 200, completion('hello'));

async function start(server: Readonly<Record<string, unknown>> = {}): Promise<StartedGateway> {
  const node = await bench.node(answers);
  return bench.gateway({ nodes: [nodeAt('one', node)], server: { port: 0, tls: files, ...server } });
}

/** A GET over TLS that trusts the test's own authority. */
function get(url: string, token: string): Promise<{ readonly status: number; readonly body: string }> {
  const options = {
    ca: readFileSync(files.cert),
    headers: { authorization: `Bearer ${token}` },
    agent: false,
  };
  return new Promise((resolve, reject) => {
    request(url, options, (res) => {
      textOf(res).then((body) => resolve({ status: res.statusCode ?? 0, body }), reject);
    })
      .on('error', reject)
      .end();
  });
}

/** What a server says to bytes of a client that speaks something else, until it closes. */
function said(port: number, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
  });
}

describe('a gateway with certificate files', () => {
  test('serves the official client over TLS, whole answers and streams', async () => {
    const started = await start();
    expect(started.dataUrl).toMatch(/^https:/);
    const client = new OpenAI({ baseURL: `${started.dataUrl}/v1`, apiKey: 'any', maxRetries: 0 });
    await expect(client.chat.completions.create(CHAT), 'an authority nobody knows').rejects.toThrow();
    setDefaultCACertificates([...trusted, readFileSync(files.cert, 'utf8')]);
    const whole = await client.chat.completions.create(CHAT);
    expect(whole.choices[0]?.message.content).toBe('hello');
    let text = '';
    for await (const chunk of await client.chat.completions.create({ ...CHAT, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe('hello');
  });

  test('serves the admin plane over TLS, on the data port and on a port of its own', async () => {
    const shared = await start();
    expect((await get(`${shared.adminUrl}/spillway/v1/queue`, shared.adminToken)).status).toBe(200);
    const apart = await start({ adminPort: 0 });
    expect(apart.adminUrl).not.toBe(apart.dataUrl);
    expect((await get(`${apart.adminUrl}/spillway/v1/queue`, apart.adminToken)).status).toBe(200);
    const { code, stdout, stderr } = await fixture.cli([
      'nodes',
      '--json',
      '--url',
      apart.adminUrl,
      '--token',
      apart.adminToken,
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('--cacert');
    const flags = ['--url', apart.adminUrl, '--token', apart.adminToken, '--cacert', files.cert];
    const told = await fixture.cli(['nodes', '--json', ...flags]);
    expect(JSON.parse(told.stdout)).toMatchObject({ nodes: [{ id: 'one' }] });
  });

  test('refuses plain HTTP and garbage on its port, and serves on', async () => {
    const started = await start();
    const port = Number(new URL(started.dataUrl).port);
    for (const bytes of [
      'GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n',
      '\x16\x03\x01\x00\x05garbage',
      'x'.repeat(50),
    ]) {
      const received = await said(port, bytes);
      expect(received, 'no answer in plain text, no trace of our insides').not.toMatch(
        /HTTP\/1\.1 200|\.ts:|Error/,
      );
    }
    expect((await get(`${started.dataUrl}/livez`, '')).status).toBe(200);
  });

  test('cuts a handshake that never ends', async () => {
    const started = await start({ headersMs: 200 });
    expect(await said(Number(new URL(started.dataUrl).port), '')).toBe('');
    expect((await get(`${started.dataUrl}/livez`, '')).status).toBe(200);
  });

  test('does not speak versions of TLS that are broken', async () => {
    const started = await start();
    const port = Number(new URL(started.dataUrl).port);
    const failed = await new Promise<Error | undefined>((resolve) => {
      const socket = connectTls({
        port,
        host: '127.0.0.1',
        rejectUnauthorized: false,
        maxVersion: 'TLSv1.1',
      });
      socket.on('secureConnect', () => resolve(undefined));
      socket.on('error', resolve);
    });
    expect(failed).toBeInstanceOf(Error);
  });
});

describe('certificate files that cannot serve', () => {
  const other = (): CertificateFiles => makeCertificate(fixture.folder, 'other');
  const fileWith = (name: string, text: string): string => {
    const path = join(fixture.folder, name);
    writeFileSync(path, text);
    return path;
  };

  test.each([
    [
      'are not there',
      () => ({ cert: join(fixture.folder, 'nothing'), key: files.key }),
      'cert',
      /readable file/,
    ],
    ['hold no certificate', () => ({ cert: fileWith('c', 'hello'), key: files.key }), 'cert', /PEM form/],
    ['hold no key', () => ({ cert: files.cert, key: fileWith('k', 'hello') }), 'key', /PEM form/],
    ['hold the key of another', () => ({ cert: files.cert, key: other().key }), 'key', /of the certificate/],
  ] as const)(
    'that %s end the start with a clear error, and leave nothing running',
    async (_title, tls, part, rule) => {
      const paths = tls();
      const failed = await bench
        .gateway({ server: { port: 0, tls: paths } })
        .catch((error: unknown) => error);
      expect(failed).toBeInstanceOf(StartError);
      expect(String(failed)).toContain(`server.tls.${part} ${paths[part]}`);
      const yaml = `server: { port: 0, tls: { cert: ${paths.cert}, key: ${paths.key} } }\n`;
      const config = fileWith('tls.yaml', yaml);
      for (const args of [
        ['check', config],
        ['serve', '--config', config],
      ]) {
        const { code, stdout, stderr } = await fixture.cli(args);
        expect([code, stdout]).toEqual([2, '']);
        expect(stderr).toMatch(new RegExp(`tls\\.yaml:1:\\d+: server\\.tls\\.${part}: .*${rule.source}`));
        expect(stderr).not.toContain('BEGIN');
      }
    },
  );

  test('do not hinder a gateway without TLS', async () => {
    const node = await bench.node(answers);
    const started = await bench.gateway({ nodes: [nodeAt('one', node)] });
    expect((await chat(started.dataUrl, { model: 'tiny' })).status).toBe(200);
  });
});
