import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ResponseParser } from './response-parser.ts';

interface Heard {
  readonly heads: [number, readonly string[]][];
  body: string;
  ends: number;
  fault: string;
  keepsAlive: boolean;
  isIdle: boolean;
}

/** Feeds the text in pieces cut at the given places, and closes the connection after it when asked. */
function hear(text: string, cuts: readonly number[] = [], closes = false): Heard {
  const heads: [number, readonly string[]][] = [];
  let body = '';
  let ends = 0;
  const parser = new ResponseParser({
    head: (status, headers) => void heads.push([status, headers]),
    data: (view) => {
      body += view.toString('latin1');
    },
    end: () => {
      ends++;
    },
  });
  const bytes = Buffer.from(text, 'latin1');
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    // A fresh copy that is spoilt afterwards: the parser may not keep views of it.
    const piece = Buffer.from(bytes.subarray(from, to));
    if (piece.length > 0) parser.push(piece);
    piece.fill(0x58);
    from = to;
  }
  if (closes && ends === 0) parser.close();
  const { fault, keepsAlive, isIdle } = parser;
  return { heads, body, ends, fault, keepsAlive, isIdle };
}

const GOOD: readonly [string, string, string, boolean][] = [
  ['a length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello', false],
  ['an empty length', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', '', false],
  ['no reason phrase', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok', 'ok', false],
  [
    'chunks',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n',
    'hello world',
    false,
  ],
  [
    'chunk extensions and trailers',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\nA;x="1"\r\n0123456789\r\n0\r\nx-sum: 1\r\n\r\n',
    '0123456789',
    false,
  ],
  ['an end by closing', 'HTTP/1.0 200 OK\r\n\r\nall that comes', 'all that comes', true],
  ['no content', 'HTTP/1.1 204 No Content\r\n\r\n', '', false],
  [
    'an interim head before it',
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nx',
    'x',
    false,
  ],
  [
    'empty and padded values',
    'HTTP/1.1 200 OK\r\nx-a:\r\nx-b: \t v \r\ncontent-length: 1\r\n\r\nx',
    'x',
    false,
  ],
];

const BAD: readonly [string, string][] = [
  ['a garbage status line', 'ELEPHANT\r\n\r\n'],
  ['another version', 'HTTP/2 200\r\n\r\n'],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
  ['a status beyond 599', 'HTTP/1.1 999 OK\r\n\r\n'],
  ['an upgrade', 'HTTP/1.1 101 Switching\r\n\r\n'],
  ['a bare line feed', 'HTTP/1.1 200 OK\r\nx: 1\ncontent-length: 1\r\n\r\nx'],
  ['a folded header', 'HTTP/1.1 200 OK\r\nx: 1\r\n 2\r\n\r\n'],
  ['a space before the colon', 'HTTP/1.1 200 OK\r\ncontent-length : 1\r\n\r\nx'],
  ['a stray carriage return', 'HTTP/1.1 200 OK\r\nx: 1\r\r\ncontent-length: 1\r\n\r\nx'],
  ['a header without a colon', 'HTTP/1.1 200 OK\r\nnonsense\r\n\r\n'],
  ['a nameless header', 'HTTP/1.1 200 OK\r\n: 1\r\n\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\nx'],
  ['a list of lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\nx'],
  ['a signed length', 'HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\nx'],
  [
    'a length and a coding',
    'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  ['two codings', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
  ['a chunk size that is no number', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
  ['an empty chunk size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n'],
  ['a signed chunk size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n'],
  ['a huge chunk size', `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'f'.repeat(20)}\r\n`],
  [
    'a chunk ended by a line feed',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n',
  ],
  [
    'a chunk longer than it says',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n',
  ],
  [
    'an endless chunk extension',
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;${'x'.repeat(5_000)}`,
  ],
  ['an endless head', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(70_000)}`],
  [
    'endless trailers',
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${'x: y\r\n'.repeat(12_000)}`,
  ],
  ['endless interim heads', 'HTTP/1.1 103 Early\r\n\r\n'.repeat(20)],
  ['bytes after the end', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n'],
];

describe('ResponseParser', () => {
  it.each(GOOD)('takes a response with %s', (_title, text, body, closes) => {
    const heard = hear(text, [], closes);
    expect(heard).toMatchObject({ body, ends: 1, fault: '', isIdle: true });
    expect(heard.heads.length).toBe(1);
  });

  it.each(BAD)('refuses %s', (_title, text) => {
    const heard = hear(text);
    expect(heard.fault).not.toBe('');
    expect(heard.ends).toBe(0);
  });

  it.each([
    ['nothing at all', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\ncont'],
    ['a body shorter than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell'],
    ['chunks without the last one', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n'],
    ['chunks cut before the empty line', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n'],
  ])('a connection closed after %s is a fault', (_title, text) => {
    const heard = hear(text, [], true);
    expect(heard.fault).not.toBe('');
    expect(heard.ends).toBe(0);
  });

  it.each(GOOD)('hears the same of %s however the bytes are cut', (_title, text, _body, closes) => {
    const whole = hear(text, [], closes);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), (cuts) => {
        expect(hear(text, cuts, closes)).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });

  it('refuses the same garbage however the bytes are cut', () => {
    // Bytes that come apart from the response before them are the connection's to refuse: nothing was asked.
    const within = BAD.filter(([title]) => title !== 'bytes after the end');
    fc.assert(
      fc.property(fc.constantFrom(...within), fc.array(fc.nat(), { maxLength: 6 }), ([, text], cuts) => {
        const { fault, body } = hear(text, cuts, true);
        expect(fault).not.toBe('');
        expect(text).toContain(body);
      }),
      { numRuns: 200 },
    );
  });

  it('never throws, and never both ends and fails, on any bytes', () => {
    const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
    const text = fc.oneof(
      noise,
      fc.tuple(fc.constantFrom(...GOOD), noise).map(([[, good], tail]) => good.slice(0, -3) + tail),
    );
    fc.assert(
      fc.property(text, fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => {
        const heard = hear(bytes, cuts, true);
        expect(heard.ends === 0 || heard.fault === '').toBe(true);
        expect(heard.ends).toBeLessThanOrEqual(1);
      }),
      { numRuns: 500 },
    );
  });

  it('knows when the connection may be used again', () => {
    expect(hear('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n').keepsAlive).toBe(true);
    expect(hear('HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 0\r\n\r\n').keepsAlive).toBe(false);
    expect(hear('HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n').keepsAlive).toBe(false);
    expect(hear('HTTP/1.1 200 OK\r\n\r\nx', [], true).keepsAlive).toBe(false);
  });
});
