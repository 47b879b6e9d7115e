/** Several clients at one answer, with connections that write down what they get. */
import { describe, expect, test } from 'vitest';
import { NO_RETRY, type Outcome } from '../../core/request/outcome.ts';
import { NO_METRICS } from '../../ports/metrics-sink.ts';
import type { ClientResponse } from '../exchange/client-response.ts';
import { Spool } from '../exchange/spool.ts';
import { type Reader, SharedAnswer, type StoredAnswer } from './shared-answer.ts';

const SPOOL_BYTES_MAX = 1_000;
const SERVED: Outcome = { kind: 'served' };

class Client implements ClientResponse, Reader {
  readonly response: ClientResponse = this;
  readonly got: string[] = [];
  outcome: Outcome | undefined;
  pending = 0;
  #onClose = (): void => {};
  #onDrain = (): void => {};

  writeHead(status: number): void {
    this.got.push(String(status));
  }
  sendLines(status: number, _lines: string, body: string): void {
    this.got.push(`${status} ${body}`);
  }
  write(chunk: Uint8Array | string): boolean {
    this.got.push(String(Buffer.from(chunk as Uint8Array)));
    return this.pending === 0;
  }
  end(chunk?: Uint8Array | string): void {
    if (chunk !== undefined) this.write(chunk);
    this.got.push('end');
  }
  destroy(): void {
    this.got.push('cut');
    this.close();
  }
  readonly isSent = true;
  pendingBytes(): number {
    return this.pending;
  }
  onClose(listener: () => void): void {
    this.#onClose = listener;
  }
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }
  close(): void {
    const told = this.#onClose;
    this.#onClose = () => {};
    told();
  }
  drain(): void {
    this.pending = 0;
    this.#onDrain();
  }

  headers(ofExchange: readonly string[]): readonly string[] {
    return ofExchange;
  }
  refusal(_refusal: unknown, lines: string, body: string): { lines: string; body: string } {
    return { lines, body };
  }
  ended(outcome: Outcome): void {
    expect(this.outcome, 'one end').toBeUndefined();
    this.outcome = outcome;
  }
}

class World {
  readonly spool: Spool;
  readonly answer: SharedAnswer;
  readonly stored: (StoredAnswer | undefined)[] = [];
  room = 10_000;
  closed = 0;
  drained = 0;

  constructor() {
    const limits = {
      spoolBytesMax: SPOOL_BYTES_MAX,
      spoolBytesTotalMax: 10 * SPOOL_BYTES_MAX,
      stallMs: 1_000,
    };
    this.spool = new Spool(
      () => limits,
      () => 0,
      NO_METRICS,
    );
    this.answer = new SharedAnswer(this.spool, {
      grow: (bytes) => (this.room -= bytes) >= 0,
      finished: (answer) => void this.stored.push(answer),
    });
  }

  join(): Client {
    const client = new Client();
    this.answer.join(client);
    return client;
  }

  /** As an exchange does at its start. */
  listen(): void {
    this.answer.onClose(() => (this.closed += 1));
    this.answer.onDrain(() => (this.drained += 1));
  }
}

describe('SharedAnswer', () => {
  test('gives who joins what was written so far, and the rest as it comes', () => {
    const world = new World();
    const first = world.join();
    world.listen();
    world.answer.writeHead(200, []);
    world.answer.write(Buffer.from('a'));
    world.answer.write(Buffer.from('b'));
    const second = world.join();
    world.answer.write(Buffer.from('c'));
    world.answer.end(Buffer.from('d'));
    const third = world.join();
    const whole = ['200', 'a', 'b', 'c', 'd', 'end'];
    expect([first.got, second.got, third.got]).toEqual([whole, whole, whole]);
    world.answer.finished(SERVED);
    expect(world.stored.map((one) => one?.body.toString())).toEqual(['abcd']);
    for (const client of [first, second, third]) expect(client.outcome).toEqual(SERVED);
  });

  test('keeps no comments of a stream that waits, and gives them to those who wait', () => {
    const world = new World();
    const first = world.join();
    world.answer.writeHead(200, []);
    world.answer.write(': waiting\n\n');
    const second = world.join();
    world.answer.end(Buffer.from('data: 1\n\n'));
    world.answer.finished(SERVED);
    expect(first.got).toEqual(['200', ': waiting\n\n', 'data: 1\n\n', 'end']);
    expect(second.got).toEqual(['200', 'data: 1\n\n', 'end']);
    expect(world.stored[0]?.body.toString()).toBe('data: 1\n\n');
  });

  test('stores nothing that was refused, failed, was declined, broke, or found no room', () => {
    const ends: ((world: World) => void)[] = [
      ({ answer }) => {
        answer.finished({ kind: 'rejected', reason: 'queue-full', hint: NO_RETRY });
        answer.sendLines(429, '', 'full');
      },
      ({ answer }) => {
        answer.writeHead(200, []);
        answer.write(Buffer.from('half'));
        answer.finished({ kind: 'failed', reason: 'node-failed', hint: NO_RETRY });
        answer.end('data: error\n\n');
      },
      ({ answer }) => {
        answer.writeHead(200, []);
        answer.end(Buffer.from('{}'));
        answer.finished({ kind: 'failed', reason: 'node-timeout', hint: NO_RETRY });
      },
      ({ answer }) => {
        answer.writeHead(400, []);
        answer.end(Buffer.from('{}'));
        answer.finished(SERVED);
      },
      ({ answer }) => {
        answer.writeHead(200, []);
        answer.write(Buffer.alloc(20_000));
        answer.end();
        answer.finished(SERVED);
      },
    ];
    for (const end of ends) {
      const world = new World();
      world.join();
      end(world);
      expect(world.stored).toEqual([undefined]);
    }
  });

  test('goes on when the first one leaves, and ends when the last one does: nobody joins it then', () => {
    const world = new World();
    const first = world.join();
    world.listen();
    const second = world.join();
    first.close();
    expect(first.outcome).toEqual({ kind: 'cancelled' });
    expect(world.closed).toBe(0);
    world.answer.writeHead(200, []);
    world.answer.write(Buffer.from('a'));
    expect(second.got).toEqual(['200', 'a']);
    second.close();
    expect(world.closed).toBe(1);
    expect(world.stored, 'its key is free at once').toEqual([undefined]);
  });
});

describe('a slow reader of a SharedAnswer', () => {
  test('alone holds the node back, as without a key', () => {
    const world = new World();
    const only = world.join();
    world.listen();
    world.answer.writeHead(200, []);
    only.pending = 5_000;
    expect(world.answer.write(Buffer.from('a'))).toBe(false);
    expect(world.answer.pendingBytes()).toBe(5_000);
    only.drain();
    expect(world.drained).toBe(1);
    expect(only.got).not.toContain('cut');
  });

  test('beside others is cut beyond its bound, and nobody waits for it', () => {
    const world = new World();
    const slow = world.join();
    world.listen();
    const quick = world.join();
    world.answer.writeHead(200, []);
    slow.pending = SPOOL_BYTES_MAX;
    expect(world.answer.write(Buffer.from('a'))).toBe(true);
    expect(slow.got, 'within its bound it is spooled').not.toContain('cut');
    slow.pending = SPOOL_BYTES_MAX + 1;
    expect(world.answer.write(Buffer.from('b'))).toBe(true);
    expect(slow.got).toContain('cut');
    world.answer.end(Buffer.from('c'));
    expect(quick.got).toEqual(['200', 'a', 'b', 'c', 'end']);
    expect(world.spool.totalBytes).toBe(0);
  });

  test('lets the node go on once somebody joins it', () => {
    const world = new World();
    const slow = world.join();
    world.listen();
    world.answer.writeHead(200, []);
    slow.pending = SPOOL_BYTES_MAX;
    expect(world.answer.write(Buffer.from('a'))).toBe(false);
    world.join();
    expect(world.drained).toBe(1);
    expect(world.answer.write(Buffer.from('b'))).toBe(true);
  });
});
