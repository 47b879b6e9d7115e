/**
 * The answer on a quick connection: head and body joined in one string and written once at the end of the event loop's
 * turn. An answer without a length is sent in chunks. Values of headers are checked as node's own server does.
 */
import { STATUS_CODES } from 'node:http';
import type { Bytes } from '../../base/units.ts';
import type { ClientResponse } from '../exchange/client-response.ts';
import { type BatchedWrite, writeAtTurnEnd } from '../exchange/write-batch.ts';
import type { QuickConnection } from './quick-connection.ts';

/** Larger parts are written as they are, beside the text instead of inside it. */
const JOINED_BYTES_MAX = 16_384;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: everything that is one byte in UTF-8.
const ASCII = /^[\x00-\x7f]*$/;
const KEPT = 'connection: keep-alive\r\nkeep-alive: timeout=75\r\n';
const CLOSED = 'connection: close\r\n';

const statusLines = new Map<number, string>();

function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
    // Bounded by the three digits of a status.
    statusLines.set(status, line);
  }
  return line;
}

/** How heads end, by what becomes of the connection and how the body is sent. */
type Endings = Readonly<Record<'kept' | 'closed', Readonly<Record<'whole' | 'chunked', string>>>>;

let endings: Endings = endingsAt(0);
let endingsSecond = 0;

/** With the date header; made once per second. */
function endingsNow(): Endings {
  const second = Math.floor(Date.now() / 1_000);
  if (second !== endingsSecond) {
    endingsSecond = second;
    endings = endingsAt(second);
  }
  return endings;
}

function endingsAt(second: number): Endings {
  const dateLine = `date: ${new Date(second * 1_000).toUTCString()}\r\n`;
  const ending = (line: string): Endings['kept'] => ({
    whole: `${dateLine}${line}\r\n`,
    chunked: `${dateLine}${line}transfer-encoding: chunked\r\n\r\n`,
  });
  return { kept: ending(KEPT), closed: ending(CLOSED) };
}

export class QuickResponse implements ClientResponse, BatchedWrite {
  readonly #connection: QuickConnection;
  /** Text that holds bytes, one per character, until the end of the turn. */
  #text = '';
  #isWaiting = false;
  #isChunked = false;
  #closes = false;
  #isEnded = false;
  /** The writer was told to wait. */
  #isFull = false;
  #onClose: (() => void) | undefined;
  #onDrain: (() => void) | undefined;
  isSent = false;

  constructor(connection: QuickConnection) {
    this.#connection = connection;
  }

  closeAfter(): void {
    this.#closes = true;
  }

  writeHead(status: number, headers: readonly string[]): void {
    let text = statusLine(status);
    let hasLength = false;
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const name = headers[i] as string;
      const value = headers[i + 1] as string;
      if (!VALUE.test(value)) throw new TypeError(`The value of the header ${name} cannot be sent`);
      if (name === 'content-length') hasLength = true;
      text += `${name}: ${value}\r\n`;
    }
    this.#isChunked = !hasLength && status !== 204 && status !== 304;
    this.#text += text + this.#ending();
  }

  sendLines(status: number, lines: string, body: string): void {
    if (this.#isEnded || this.#connection.isGone) return;
    this.#text = statusLine(status) + lines + this.#ending() + body;
    this.#isEnded = true;
    this.#later();
  }

  #ending(): string {
    if (this.#connection.isClosing) this.#closes = true;
    const all = endingsNow();
    return (this.#closes ? all.closed : all.kept)[this.#isChunked ? 'chunked' : 'whole'];
  }

  write(chunk: Uint8Array | string): boolean {
    if (this.#isEnded || this.#connection.isGone) return true;
    if (chunk.length > 0) this.#add(chunk);
    this.#later();
    const { socket } = this.#connection;
    this.#isFull = socket.writableLength + this.#text.length >= socket.writableHighWaterMark;
    return !this.#isFull;
  }

  end(chunk?: Uint8Array | string): void {
    if (this.#isEnded || this.#connection.isGone) return;
    if (chunk !== undefined && chunk.length > 0) this.#add(chunk);
    if (this.#isChunked) this.#text += '0\r\n\r\n';
    this.#isEnded = true;
    this.#later();
  }

  /** At the end of the turn. */
  flush(): void {
    this.#isWaiting = false;
    if (this.#connection.isGone) return;
    this.#push();
    const { socket } = this.#connection;
    if (this.#isEnded) {
      if (socket.writableLength === 0) this.#sent();
      // Called after everything before it has left.
      else socket.write('', () => this.#sent());
    } else if (this.#isFull && !socket.writableNeedDrain) this.drained();
  }

  destroy(): void {
    this.#connection.destroy();
  }

  /** See the spool: the handle's own queue shrinks while a slow reader takes a large write. */
  pendingBytes(): Bytes {
    const { socket } = this.#connection;
    const { _handle: handle } = socket as { _handle?: { writeQueueSize?: number } | null };
    return this.#text.length + socket.writableLength + (handle?.writeQueueSize ?? 0);
  }

  onClose(listener: () => void): void {
    this.#onClose = listener;
  }

  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  drained(): void {
    this.#isFull = false;
    this.#onDrain?.();
  }

  /** The connection is closed. */
  left(): void {
    this.#text = '';
    const listener = this.#onClose;
    this.#onClose = undefined;
    listener?.();
  }

  #later(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    writeAtTurnEnd(this);
  }

  #add(chunk: Uint8Array | string): void {
    if (typeof chunk === 'string') {
      const text = ASCII.test(chunk) ? chunk : Buffer.from(chunk).toString('latin1');
      this.#text += this.#isChunked ? `${text.length.toString(16)}\r\n${text}\r\n` : text;
      return;
    }
    const bytes = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#isChunked) this.#text += `${bytes.length.toString(16)}\r\n`;
    if (bytes.length <= JOINED_BYTES_MAX) this.#text += bytes.toString('latin1');
    else {
      const { socket } = this.#connection;
      socket.cork();
      this.#push();
      socket.write(bytes);
      socket.uncork();
    }
    if (this.#isChunked) this.#text += '\r\n';
  }

  #push(): void {
    if (this.#text === '') return;
    const text = this.#text;
    this.#text = '';
    this.#connection.socket.write(text, 'latin1');
  }

  #sent(): void {
    if (this.isSent || this.#connection.isGone) return;
    this.isSent = true;
    const listener = this.#onClose;
    this.#onClose = undefined;
    listener?.();
    this.#connection.answered(this.#closes ? 'closes' : 'keeps');
  }
}
