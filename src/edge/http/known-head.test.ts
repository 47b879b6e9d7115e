import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { scanHead } from './head.ts';
import { type KnownHead, knowHead, recallHead } from './known-head.ts';
import { readQuickHead } from './quick-head.ts';

const PATH = '/v1/chat/completions';
const HEAD_BYTES_MAX = 16_384;
const find = (url: string): string | undefined => (url === PATH ? PATH : undefined);

function post(...lines: readonly string[]): Buffer {
  return Buffer.from(
    `POST ${PATH} HTTP/1.1\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\nhello`,
    'latin1',
  );
}

function known(...lines: readonly string[]): KnownHead {
  const bytes = post(...lines);
  const quick = readQuickHead(bytes, HEAD_BYTES_MAX, find);
  const head = quick === undefined ? undefined : knowHead(bytes, quick);
  if (head === undefined) throw new Error('Not a usual head');
  return head;
}

describe('recallHead', () => {
  it('recalls the same head with another length', () => {
    const head = known('host: a', 'Content-Length: \t5 ', 'authorization: Bearer k');
    const again = post('host: a', 'Content-Length: \t1234 ', 'authorization: Bearer k');
    expect(recallHead(head, again, HEAD_BYTES_MAX)).toEqual({
      contentLength: 1_234,
      bodyStart: again.length - 'hello'.length,
    });
    expect(head.head.authorization).toBe('Bearer k');
    expect(head.head.contentLength).toBe('1234');
  });

  it.each([
    ['with another credential', ['content-length: 5', 'authorization: Bearer x']],
    ['that goes on', ['content-length: 5', 'authorization: Bearer k', 'x: 1']],
    ['that ends before', ['content-length: 5']],
    ['without digits', ['content-length: ', 'authorization: Bearer k']],
    ['with a length of zero', ['content-length: 0', 'authorization: Bearer k']],
    ['with a signed length', ['content-length: +5', 'authorization: Bearer k']],
    ['with a length of sixteen digits', ['content-length: 1000000000000005', 'authorization: Bearer k']],
    ['with a header instead of the length', ['content-length: 5\r\nx: 5', 'authorization: Bearer k']],
  ])('does not recall a head %s', (_title, lines) => {
    const head = known('content-length: 5', 'authorization: Bearer k');
    expect(recallHead(head, post(...lines), HEAD_BYTES_MAX)).toBeUndefined();
  });

  it('does not recall a head that is larger than the limit, or not whole', () => {
    const head = known('content-length: 5', 'x: y');
    const again = post('content-length: 5', 'x: y');
    expect(recallHead(head, again, again.length - 6)).toBeUndefined();
    expect(recallHead(head, again.subarray(0, again.length - 7), HEAD_BYTES_MAX)).toBeUndefined();
  });

  it('reads what it recalls as the reader of unknown heads does', () => {
    const line = fc.constantFrom(
      'content-length: 5',
      'content-length:17 ',
      'content-length: 05',
      'x-note: content-length: 9',
      'host: a',
      'accept: b',
      'connection: close',
    );
    const lines = fc.array(line, { maxLength: 4 });
    fc.assert(
      fc.property(lines, lines, (first, second) => {
        const bytes = post(...first);
        const quick = readQuickHead(bytes, HEAD_BYTES_MAX, find);
        const head = quick === undefined ? undefined : knowHead(bytes, quick);
        const next = post(...second);
        const recalled = head === undefined ? undefined : recallHead(head, next, HEAD_BYTES_MAX);
        if (head === undefined || recalled === undefined) return;
        const read = readQuickHead(next, HEAD_BYTES_MAX, find);
        expect(read, 'accepted by both').toBeDefined();
        expect(recalled).toEqual({ contentLength: read?.contentLength, bodyStart: read?.bodyStart });
        expect(head.head).toEqual(scanHead(read?.rawHeaders ?? []));
      }),
      { numRuns: 1_000 },
    );
  });
});
