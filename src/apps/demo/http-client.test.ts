import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createHttpClient, type HttpClient, type HttpResult, parseAnswer } from './http-client.ts';

describe('parseAnswer', () => {
  it('reads a body of the announced length', () => {
    const parsed = parseAnswer('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok', false);
    expect(parsed).toMatchObject({ kind: 'answer', keepAlive: true, answer: { status: 200, body: 'ok' } });
    expect(parsed.kind === 'answer' && parsed.answer.headers.get('x-a')).toBe('b');
  });

  it('reads chunks', () => {
    const text = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n';
    expect(parseAnswer(text, false)).toMatchObject({ answer: { body: 'abcd' } });
  });

  it.each(['HTTP/1.1 200', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok', 'HTTP/1.1 200 OK\r\n\r\nhalf'])(
    'asks for more after %j',
    (text) => {
      expect(parseAnswer(text, false).kind).toBe('more');
    },
  );

  it('does not take a short body for an answer when the connection closed', () => {
    expect(parseAnswer('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok', true).kind).toBe('more');
  });

  it('reads to the end of the connection when no length is given', () => {
    expect(parseAnswer('HTTP/1.1 200 OK\r\n\r\nall', true)).toMatchObject({
      keepAlive: false,
      answer: { body: 'all' },
    });
  });

  it.each([
    'SMTP ready\r\n\r\n',
    'HTTP/1.1 200 OK\r\nnonsense\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n',
  ])('finds no HTTP in %j', (text) => {
    expect(parseAnswer(text, false).kind).toBe('invalid');
  });

  it('decodes UTF-8 bodies', () => {
    const bytes = Buffer.from('"é"', 'utf8');
    const text = `HTTP/1.1 200 OK\r\ncontent-length: ${bytes.length}\r\n\r\n${bytes.toString('latin1')}`;
    expect(parseAnswer(text, false)).toMatchObject({ answer: { body: '"é"' } });
  });
});

describe('httpClient', () => {
  let server: Server;
  let client: HttpClient;
  let connections = 0;

  async function serve(answer: (request: string) => string | undefined, connectionsMax = 10): Promise<void> {
    connections = 0;
    server = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      socket.on('data', (chunk) => {
        const text = answer(chunk.toString('latin1'));
        if (text === undefined) socket.destroy();
        else socket.write(text);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    client = createHttpClient({
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      connectionsMax,
    });
  }

  afterEach(() => {
    client.close();
    server.close();
  });

  const send = (timeoutMs = 5_000): Promise<HttpResult> =>
    new Promise((resolve) => client.send('GET / HTTP/1.1\r\n\r\n', timeoutMs, resolve));

  const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

  it('uses a connection again', async () => {
    await serve(() => OK);
    expect((await send()).kind).toBe('answer');
    expect((await send()).kind).toBe('answer');
    expect(connections).toBe(1);
  });

  it('opens another connection while one is in use', async () => {
    await serve(() => OK);
    await Promise.all([send(), send(), send()]);
    expect(connections).toBe(3);
  });

  it('closes the connection at the time-out', async () => {
    await serve(() => '');
    expect((await send(20)).kind).toBe('timed-out');
  });

  it('calls a reset connection broken', async () => {
    await serve(() => undefined);
    expect((await send()).kind).toBe('broken');
  });

  it('fails at once beyond the bound of its connections', async () => {
    await serve(() => '', 1);
    const first = send(100);
    expect(await send()).toMatchObject({ kind: 'broken', detail: 'no connection is left on this client' });
    expect((await first).kind).toBe('timed-out');
  });
});
