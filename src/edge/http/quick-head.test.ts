import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readQuickHead } from './quick-head.ts';

const PATH = '/v1/chat/completions';
const find = (url: string): string | undefined => (url === PATH ? PATH : undefined);
const HEAD_BYTES_MAX = 16_384;

function read(text: string): ReturnType<typeof readQuickHead> {
  return readQuickHead(Buffer.from(text, 'latin1'), HEAD_BYTES_MAX, find);
}

function post(...lines: readonly string[]): string {
  return `POST ${PATH} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
}

describe('readQuickHead', () => {
  it('reads a usual head: names in lower case, values without padding', () => {
    const head = post('Host: localhost', 'X-Empty:', 'Accept: \t a b  ', 'Content-Length: 12');
    expect(read(`${head}{"body":true}`)).toEqual({
      url: PATH,
      rawHeaders: ['host', 'localhost', 'x-empty', '', 'accept', 'a b', 'content-length', '12'],
      contentLength: 12,
      bodyStart: head.length,
    });
  });

  it.each([
    ['cut off', `POST ${PATH} HTTP/1.1\r\nhost: localhost\r\n`],
    ['of another method', post('content-length: 5').replace('POST', 'PUT')],
    ['of HTTP/1.0', post('content-length: 5').replace('1.1', '1.0')],
    ['with another path', post('content-length: 5').replace('chat', 'cat')],
    ['with a second space', post('content-length: 5').replace('POST ', 'POST  ')],
    ['without a length', post('host: localhost')],
    ['without a body', post('content-length: 0')],
    ['with two lengths', post('content-length: 5', 'content-length: 5')],
    ['with a list of lengths', post('content-length: 5, 5')],
    ['with a signed length', post('content-length: +5')],
    ['with a length of sixteen digits', post('content-length: 0000000000000005')],
    ['with a transfer coding', post('content-length: 5', 'transfer-encoding: chunked')],
    ['with an expectation', post('content-length: 5', 'expect: 100-continue')],
    ['with an upgrade', post('content-length: 5', 'upgrade: h2c')],
    ['that asks to close', post('content-length: 5', 'connection: close')],
    ['with hop-by-hop names', post('content-length: 5', 'connection: keep-alive, x-a')],
    ['with a folded line', post('content-length: 5', 'x: a', ' b')],
    ['with a space before a colon', post('content-length : 5')],
    ['with a name that is no token', post('content-length: 5', 'x(y): 1')],
    ['with an empty name', post('content-length: 5', ': 1')],
    ['with a line without a colon', post('content-length: 5', 'nothing')],
    ['with a bare line feed', post('content-length: 5', 'x: 1\ny: 2')],
    ['with a bare carriage return', post('content-length: 5', 'x: 1\ry: 2')],
    ['with a null', post('content-length: 5', 'x: 1\0')],
    ['larger than the limit', post('content-length: 5', `x: ${'y'.repeat(HEAD_BYTES_MAX)}`)],
  ])('leaves a head %s to the other parser', (_title, text) => {
    expect(read(`${text}hello`)).toBeUndefined();
  });
});

describe('readQuickHead beside the other parser', () => {
  /** Node's own: what it made of the last request, or that it refused it. */
  let seen: { rawHeaders: string[]; body: string } | undefined;
  const server = createServer({ requireHostHeader: false }, (req, res) => {
    let body = '';
    req.setEncoding('latin1').on('data', (part: string) => {
      body += part;
    });
    req.on('end', () => {
      seen = { rawHeaders: req.rawHeaders, body };
      res.end();
    });
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  function judge(text: string): Promise<typeof seen> {
    seen = undefined;
    return new Promise((resolve) => {
      const { port } = server.address() as AddressInfo;
      const socket = connect(port, '127.0.0.1', () => socket.write(text, 'latin1'));
      socket.on('data', () => socket.destroy());
      socket.on('error', () => {});
      socket.on('close', () => resolve(seen));
    });
  }

  const line = fc.oneof(
    fc.constantFrom(
      'content-length: 5',
      'Content-Length:5',
      'content-length: 5 ',
      'host: a',
      'connection: Keep-Alive',
      'x: a\tb',
      'x:\xe9',
      'te: trailers',
      'transfer-encoding: chunked',
      'content-length: 05',
    ),
    fc
      .tuple(fc.constantFrom('x', 'x-y', 'X_z', 'content-length', ' x', 'x '), fc.string({ maxLength: 6 }))
      .map(([name, value]) => `${name}:${value}`),
    fc.constantFrom('x: a\nb: c', 'x: a\rb', 'x: \x01', 'nothing', ''),
  );

  it('accepts nothing that it refuses, and reads what both accept alike', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 5 }), async (lines) => {
        const text = post(...lines);
        const quick = read(`${text}hello`);
        if (quick === undefined) return;
        const other = await judge(
          `${text}${'hello'.padEnd(quick.contentLength, '.').slice(0, quick.contentLength)}`,
        );
        expect(other, 'accepted by both').toBeDefined();
        expect(other?.rawHeaders.map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text))).toEqual(
          quick.rawHeaders,
        );
        expect(other?.body.length).toBe(quick.contentLength);
      }),
      { numRuns: 300 },
    );
  });
});
