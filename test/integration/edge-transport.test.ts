/** The HTTP transport over real sockets: order of callbacks, keep-alive, limits, faults, certificates. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHttpTransport } from '../../src/adapters/transport-http/index.ts';
import type { NodeEndpoint, NodeRequest, NodeTransport } from '../../src/ports/node-transport.ts';
import { listen, until } from './edge-fixture.ts';

let transport: NodeTransport;
let server: Server;
let port: number;
let sockets: Socket[];
let requests: string[];
/** What the server does with each request that has arrived whole. */
let answer: (socket: Socket, request: string) => void;

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

beforeEach(async () => {
  transport = createHttpTransport({ connectMs: 2_000 });
  sockets = [];
  requests = [];
  answer = (socket) => socket.write(OK);
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: (\d+)/.exec(text)?.[1] ?? 0);
      if (text.length < end + 4 + length) return;
      requests.push(text);
      const request = text;
      text = '';
      answer(socket, request);
    });
  });
  port = await listen(server);
});

afterEach(async () => {
  await transport.shutdown();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

function open(extra: Partial<NodeEndpoint> = {}): void {
  transport.open({ id: 'n', url: `http://127.0.0.1:${port}`, headers: [], ...extra });
}

interface Told {
  readonly events: string[];
  body: string;
  headers: readonly string[];
  detail: string;
  readonly ended: Promise<string>;
  readonly call: ReturnType<NodeTransport['send']>;
}

const REQUEST: NodeRequest = {
  method: 'POST',
  path: '/v1/x',
  headers: ['content-type', 'application/json'],
  body: [Buffer.from('{"a":'), Buffer.from('1}')],
  headersMs: 5_000,
  idleMs: 5_000,
};

/** Sends, and writes down what the handler is told in which order. `wantsMore` answers each chunk. */
function send(request: Partial<NodeRequest> = {}, nodeId = 'n', wantsMore: () => boolean = () => true): Told {
  const { promise, resolve } = Promise.withResolvers<string>();
  const told = {
    events: [] as string[],
    body: '',
    headers: [] as readonly string[],
    detail: '',
    ended: promise,
  };
  const call = transport.send(
    nodeId,
    { ...REQUEST, ...request },
    {
      onSent: () => void told.events.push('sent'),
      onHead: (status, headers) => {
        told.events.push(`head ${status}`);
        told.headers = headers;
      },
      onData: (chunk) => {
        told.body += Buffer.from(chunk).toString('latin1');
        return wantsMore();
      },
      onEnd: () => {
        told.events.push('end');
        resolve('end');
      },
      onFault: (fault, detail) => {
        told.events.push(fault);
        told.detail = detail;
        resolve(fault);
      },
    },
  );
  expect(told.events, 'no end in the turn of send').not.toContain('end');
  return Object.assign(told, { call });
}

describe('a request', () => {
  it('leaves with the endpoint base path and headers, its body in order, and one length', async () => {
    open({ url: `http://127.0.0.1:${port}/base/`, headers: ['authorization', 'Bearer k'] });
    const told = send();
    expect(await told.ended).toBe('end');
    expect(told.events).toEqual(['sent', 'head 200', 'end']);
    expect(told.body).toBe('ok');
    expect(requests[0]).toBe(
      `POST /base/v1/x HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer k\r\ncontent-type: application/json\r\ncontent-length: 7\r\n\r\n{"a":1}`,
    );
  });

  it('with a large body arrives byte for byte', async () => {
    open();
    const body = Buffer.alloc(3_000_000, 'abcdefghi');
    expect(await send({ body: [body] }).ended).toBe('end');
    expect(requests[0]?.endsWith(body.toString('latin1'))).toBe(true);
  });

  it('uses a kept connection again, and a new one while that is busy', async () => {
    open();
    await send().ended;
    await send().ended;
    expect(sockets.length).toBe(1);
    await Promise.all([send().ended, send().ended]);
    expect(sockets.length).toBe(2);
  });

  it('does not follow a redirect', async () => {
    open();
    answer = (socket) =>
      socket.write('HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n');
    const told = send();
    expect(await told.ended).toBe('end');
    expect(told.events).toEqual(['sent', 'head 307', 'end']);
  });

  it('can be sent again from inside the end of another', async () => {
    open();
    await send().ended.then(() => send().ended);
    expect(requests.length).toBe(2);
  });
});

describe('a connection', () => {
  it.each([
    ['says that it closes', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
    [
      'announces a keep-alive of one second',
      'HTTP/1.1 200 OK\r\nkeep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nok',
    ],
  ])('is not used again when the node %s', async (_title, text) => {
    open();
    answer = (socket) => socket.write(text);
    await send().ended;
    await send().ended;
    expect(sockets.length).toBe(2);
  });

  it('that the node closes while it is idle is not used again', async () => {
    open();
    await send().ended;
    const closed = new Promise((resolve) => sockets[0]?.once('close', resolve));
    sockets[0]?.end();
    await closed;
    expect(await send().ended).toBe('end');
    expect(sockets.length).toBe(2);
  });

  it('on which the node speaks without being asked is closed', async () => {
    open();
    await send().ended;
    const closed = new Promise((resolve) => sockets[0]?.once('close', resolve));
    sockets[0]?.write(OK);
    await closed;
    const told = send();
    answer = (socket) => socket.write(OK.replace('ok', 'no'));
    await told.ended;
    expect(told.body, 'the answer to its own request').toBe('no');
  });

  it('is closed in the turn of an abort, and the fault says so', async () => {
    open();
    answer = () => {};
    const told = send();
    await until(() => requests.length === 1);
    const closed = new Promise((resolve) => sockets[0]?.once('close', resolve));
    told.call.abort();
    told.call.abort();
    expect(await told.ended).toBe('aborted');
    await closed;
    expect(told.events).toEqual(['sent', 'aborted']);
  });

  it('keeps the old endpoint for a call under way when the node is opened anew or closed', async () => {
    open();
    let finish = (): void => {};
    answer = (socket) => {
      finish = () => socket.write(OK);
    };
    const told = send();
    await until(() => requests.length === 1);
    open({ url: 'http://127.0.0.1:1' });
    transport.close('n');
    finish();
    expect(await told.ended).toBe('end');
    expect(await send().ended).toBe('connect');
  });

  it('ends with the transport, and its call is told', async () => {
    open();
    answer = () => {};
    const told = send();
    await until(() => requests.length === 1);
    await transport.shutdown();
    expect(await told.ended).toBe('aborted');
  });

  it('is paused by a handler that wants no more, and goes on by resume', async () => {
    open();
    const total = 20_000_000;
    let isDrained = false;
    answer = (socket) => {
      answer = (other) => other.write(OK);
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
      socket.write('x'.repeat(total), () => {
        isDrained = true;
      });
    };
    let isOpen = false;
    const told = send({}, 'n', () => isOpen);
    await until(() => told.body.length > 0);
    const atPause = told.body.length;
    await send().ended;
    expect(told.body.length, 'nothing came while paused').toBe(atPause);
    expect(isDrained).toBe(false);
    isOpen = true;
    told.call.resume();
    expect(await told.ended).toBe('end');
    expect(told.body.length).toBe(total);
  });
});

describe('a fault', () => {
  it.each([
    ['connect', 'an unknown node', (): Told => send({}, 'nobody')],
    ['connect', 'a port that refuses', (): Told => (open({ url: 'http://127.0.0.1:1' }), send())],
    ['connect', 'a URL that is none', (): Told => (open({ url: 'not a url' }), send())],
    ['connect', 'a scheme that is not HTTP', (): Told => (open({ url: 'ftp://127.0.0.1' }), send())],
    [
      'connect',
      'a header that would split the request',
      (): Told => (open({ headers: ['x', 'a\r\nb: c'] }), send()),
    ],
    [
      'connect',
      'a certificate that cannot be read',
      (): Told => (open({ url: 'https://127.0.0.1', tls: { ca: '/nowhere' } }), send()),
    ],
  ] as const)('is %s for %s', async (fault, _title, start) => {
    const told = start();
    expect(await told.ended).toBe(fault);
    expect(told.events).toEqual([fault]);
  });

  it.each([
    ['reset', 'a node that closes without a word', (socket: Socket): void => void socket.end()],
    ['reset', 'a node that resets', (socket: Socket): void => void socket.resetAndDestroy()],
    ['protocol', 'garbage', (socket: Socket): void => void socket.write('ELEPHANT\r\n\r\n')],
    [
      'protocol',
      'a short body',
      (socket: Socket): void => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi'),
    ],
    [
      'reset',
      'a reset in the body',
      (socket: Socket): void =>
        void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi', () =>
          setImmediate(() => socket.resetAndDestroy()),
        ),
    ],
  ] as const)('is %s for %s', async (fault, _title, script) => {
    open();
    answer = script;
    expect(await send().ended).toBe(fault);
  });

  it('is a timeout for a node that never answers', async () => {
    open();
    answer = () => {};
    expect(await send({ headersMs: 100 }).ended).toBe('timeout');
  });

  it('is a timeout for a node that falls silent in its answer', async () => {
    open();
    answer = (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi');
    const told = send({ idleMs: 100 });
    expect(await told.ended).toBe('timeout');
    expect(told.events).toEqual(['sent', 'head 200', 'timeout']);
  });

  it('is connect for a connection that is not made in time', async () => {
    await transport.shutdown();
    transport = createHttpTransport({ connectMs: 100 });
    // A TLS handshake that the other side never answers.
    open({ url: `https://127.0.0.1:${port}` });
    expect(await send().ended).toBe('connect');
  });

  it('is connect beyond the bound of connections', async () => {
    open();
    answer = () => {};
    const told = Array.from({ length: 1_024 }, (): Told => send());
    const beyond = send();
    expect(await beyond.ended).toBe('connect');
    expect(beyond.detail).toContain('1024');
    for (const { call } of told) call.abort();
    await Promise.all(told.map((row) => row.ended));
    answer = (socket) => socket.write(OK);
    expect(await send().ended, 'the room is back').toBe('end');
  });
});

describe('certificates', () => {
  const folder = mkdtempSync(join(tmpdir(), 'transport-tls-'));
  const file = (name: string): string => join(folder, name);

  function makeCertificates(): void {
    const openssl = (...args: string[]): void =>
      void execFileSync('openssl', args, { stdio: 'ignore', cwd: folder });
    openssl(
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      'ca.key',
      '-out',
      'ca.pem',
      '-subj',
      '/CN=ca',
      '-days',
      '2',
    );
    for (const name of ['server', 'client']) {
      openssl(
        'req',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:P-256',
        '-nodes',
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.csr`,
        '-subj',
        `/CN=${name}`,
        '-addext',
        'subjectAltName=IP:127.0.0.1',
      );
      openssl(
        'x509',
        '-req',
        '-in',
        `${name}.csr`,
        '-CA',
        'ca.pem',
        '-CAkey',
        'ca.key',
        '-CAcreateserial',
        '-out',
        `${name}.pem`,
        '-days',
        '2',
        '-copy_extensions',
        'copyall',
      );
    }
  }

  it('of both sides are checked: mTLS with files', async () => {
    makeCertificates();
    const tls = createTlsServer(
      {
        key: readFileSync(file('server.key')),
        cert: readFileSync(file('server.pem')),
        ca: readFileSync(file('ca.pem')),
        requestCert: true,
        rejectUnauthorized: true,
      },
      (_req, res) => res.end('secret'),
    );
    const tlsPort = await listen(tls);
    const url = `https://127.0.0.1:${tlsPort}`;
    open({ url, tls: { ca: file('ca.pem'), cert: file('client.pem'), key: file('client.key') } });
    const told = send();
    expect(await told.ended).toBe('end');
    expect(told.body).toBe('secret');
    open({ url });
    expect(await send().ended, 'a server nobody vouches for').toBe('connect');
    open({ url, tls: { ca: file('ca.pem') } });
    expect(await send().ended, 'no certificate of our own').not.toBe('end');
    tls.closeAllConnections();
    await new Promise((resolve) => tls.close(resolve));
    rmSync(folder, { recursive: true });
  });
});
