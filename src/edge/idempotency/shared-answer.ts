/**
 * One answer for several clients: the one whose request runs, and those who came with the same idempotency key meanwhile.
 * To the exchange it is one client's connection; everything it writes goes to all.
 *
 * Who joins gets a head of its own, what was written so far, and the rest as it comes. What was written is kept for that
 * up to a bound; beyond it nobody joins any more, and those who have go on.
 *
 * A client alone holds its node back when it reads slowly, as without a key. Beside others it must keep up by itself: it is
 * spooled within the bounds of all slow readers, and cut beyond them, so that nobody waits for somebody else's connection.
 * The exchange is told that its client has left when the last one has.
 */
import type { Bytes } from '../../base/units.ts';
import type { Outcome } from '../../core/request/outcome.ts';
import type { ClientResponse } from '../exchange/client-response.ts';
import type { ExchangeWatcher } from '../exchange/contract.ts';
import type { SlowReader, Spool } from '../exchange/spool.ts';
import type { Refusal } from '../outcomes/refusal.ts';

/** One of the clients. */
export interface Reader {
  readonly response: ClientResponse;
  /** The headers that it gets of the exchange's own ones. */
  headers(ofExchange: readonly string[]): readonly string[];
  /** A refusal as this client is told it: lines and body as the exchange rendered them, or its own. */
  refusal(
    refusal: Refusal | undefined,
    lines: string,
    body: string,
  ): { readonly lines: string; readonly body: string };
  /** Once: how it ended for this client, `cancelled` when it left before. */
  ended(outcome: Outcome): void;
}

/** Where what was written is accounted for. */
export interface Record {
  /** False when there is no room for that many bytes more: what was kept is thrown away. */
  grow(bytes: Bytes): boolean;
  /** The answer is whole and may be given again; undefined when it is none or was not kept. */
  finished(answer: StoredAnswer | undefined): void;
}

export interface StoredAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** What a part costs beside its bytes. */
const PART_BYTES: Bytes = 128;
/** What waits in a connection before its reader counts as slow. */
const PENDING_BYTES_NORMAL: Bytes = 65_536;
const CANCELLED: Outcome = Object.freeze({ kind: 'cancelled' });

interface Head {
  readonly status: number;
  readonly headers: readonly string[];
}

/** A client's place at the answer. Slow beside others, it is a slow reader of its own. */
class Seat implements SlowReader {
  readonly reader: Reader;
  readonly #leave: (seat: Seat) => void;
  listensToDrain = false;
  hasEnded = false;

  constructor(reader: Reader, leave: (seat: Seat) => void) {
    this.reader = reader;
    this.#leave = leave;
  }

  pendingBytes(): Bytes {
    return this.reader.response.pendingBytes();
  }

  room(): void {}

  cut(): void {
    this.reader.response.destroy();
    this.#leave(this);
  }

  end(outcome: Outcome): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.reader.ended(outcome);
  }
}

export class SharedAnswer implements ClientResponse, ExchangeWatcher {
  readonly #spool: Spool;
  readonly #record: Record;
  /** Those whose connections are open. */
  readonly #seats: Set<Seat> = new Set();
  /** Those who have not been told an end. */
  readonly #unended: Set<Seat> = new Set();
  #head: Head | undefined;
  /** Undefined once it is not kept any more. */
  #parts: Buffer[] | undefined = [];
  #refusal: Refusal | undefined;
  #state: 'open' | 'ended' | 'refused' | 'broken' = 'open';
  /** Whether the last one that left had everything. */
  #isSent = false;
  #onClose: (() => void) | undefined;
  #onDrain: (() => void) | undefined;

  constructor(spool: Spool, record: Record) {
    this.#spool = spool;
    this.#record = record;
  }

  get readers(): number {
    return this.#seats.size;
  }

  /** Only while its key is taken: then what was written is still kept. */
  join(reader: Reader): void {
    const seat = new Seat(reader, (left) => this.#left(left));
    this.#seats.add(seat);
    this.#unended.add(seat);
    reader.response.onClose(() => this.#left(seat));
    // From now on the first one keeps up by itself: the node does not wait for it any more.
    this.#onDrain?.();
    if (this.#head === undefined) return;
    reader.response.writeHead(this.#head.status, [...reader.headers(this.#head.headers)]);
    for (const part of this.#parts ?? []) this.#keepsUp(seat, reader.response.write(part));
    if (this.#state === 'ended') reader.response.end();
  }

  // The exchange's side.

  writeHead(status: number, headers: string[]): void {
    this.#head = { status, headers };
    for (const { reader } of this.#seats) reader.response.writeHead(status, [...reader.headers(headers)]);
  }

  sendLines(status: number, lines: string, body: string): void {
    this.#state = 'refused';
    for (const { reader } of [...this.#seats]) {
      const own = reader.refusal(this.#refusal, lines, body);
      reader.response.sendLines(status, own.lines, own.body);
    }
  }

  write(chunk: Uint8Array | string): boolean {
    this.#keep(chunk);
    const [only] = this.#seats;
    if (only !== undefined && this.#seats.size === 1) {
      this.#spool.forget(only);
      this.#listenToDrain(only);
      return only.reader.response.write(chunk);
    }
    for (const seat of [...this.#seats]) this.#keepsUp(seat, seat.reader.response.write(chunk));
    return true;
  }

  end(chunk?: Uint8Array | string): void {
    if (chunk !== undefined) this.#keep(chunk);
    this.#state = 'ended';
    for (const seat of [...this.#seats]) {
      seat.reader.response.end(chunk);
      this.#keepsUp(seat, seat.pendingBytes() <= PENDING_BYTES_NORMAL);
    }
  }

  destroy(): void {
    this.#state = 'broken';
    for (const { reader } of [...this.#seats]) reader.response.destroy();
  }

  get isSent(): boolean {
    return this.#isSent;
  }

  /** Of a client alone; several are counted one by one. */
  pendingBytes(): Bytes {
    const [only] = this.#seats;
    return only === undefined || this.#seats.size > 1 ? 0 : only.pendingBytes();
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
    for (const seat of this.#seats) this.#listenToDrain(seat);
  }

  refusedWith(refusal: Refusal): void {
    this.#refusal = refusal;
  }

  finished(outcome: Outcome): void {
    const isGood = outcome.kind === 'served' || outcome.kind === 'degraded';
    this.#record.finished(isGood ? this.#whole() : undefined);
    for (const seat of this.#unended) seat.end(outcome);
    this.#unended.clear();
  }

  #whole(): StoredAnswer | undefined {
    if (this.#head === undefined || this.#parts === undefined || this.#state !== 'ended') return undefined;
    const { status, headers } = this.#head;
    if (status >= 300) return undefined;
    return { status, headers, body: ownCopy(this.#parts) };
  }

  /** Comments of a stream that waits are no part of the answer. */
  #keep(chunk: Uint8Array | string): void {
    if (this.#parts === undefined || (typeof chunk === 'string' && chunk.startsWith(':'))) return;
    // A copy: a part of what came from the node's socket would hold all of it.
    const part = typeof chunk === 'string' ? Buffer.from(chunk, 'utf8') : Buffer.from(chunk);
    if (this.#record.grow(part.length + PART_BYTES)) this.#parts.push(part);
    else this.#parts = undefined;
  }

  /** A reader that falls behind the bounds is cut, unless the exchange looks after it because it is alone. */
  #keepsUp(seat: Seat, isWritten: boolean): void {
    if (isWritten || !this.#seats.has(seat)) return;
    if (this.#seats.size === 1 && this.#onClose !== undefined) return;
    this.#listenToDrain(seat);
    if (!this.#spool.note(seat)) seat.cut();
  }

  #listenToDrain(seat: Seat): void {
    if (seat.listensToDrain) return;
    seat.listensToDrain = true;
    seat.reader.response.onDrain(() => {
      this.#spool.forget(seat);
      this.#onDrain?.();
    });
  }

  #left(seat: Seat): void {
    if (!this.#seats.delete(seat)) return;
    this.#spool.forget(seat);
    if (this.#state === 'open') {
      this.#unended.delete(seat);
      seat.end(CANCELLED);
    }
    if (this.#seats.size > 0) return;
    this.#isSent = seat.reader.response.isSent;
    // What ends now has nothing to give to who comes next.
    if (this.#state !== 'ended') this.#record.finished(undefined);
    const listener = this.#onClose;
    this.#onClose = undefined;
    listener?.();
  }
}

/** Memory of its own: a part of a larger buffer would hold all of it as long as the answer is kept. */
function ownCopy(parts: readonly Buffer[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const copy = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) at += part.copy(copy, at);
  return copy;
}
