/** The client's side of an exchange: what of node's `ServerResponse` is used, so that tests can stand in for it. */
import type { ServerResponse } from 'node:http';
import type { Bytes } from '../../base/units.ts';
import { type BatchedWrite, writeAtTurnEnd } from './write-batch.ts';

const JOINED_BYTES_MAX = 16_384;

export interface ClientResponse {
  writeHead(status: number, headers: string[]): unknown;
  /**
   * A whole answer. The head comes as lines as they are on the wire, each with its end, and names the length; the body is
   * ASCII. Both are ours and known to be right: nothing is checked.
   */
  sendLines(status: number, lines: string, body: string): unknown;
  write(chunk: Uint8Array | string): boolean;
  end(chunk?: Uint8Array | string): unknown;
  destroy(): unknown;
  /** The connection took the last byte of the answer. */
  readonly isSent: boolean;
  /** Bytes that wait for the client, in the response and in its socket. */
  pendingBytes(): Bytes;
  /** Once: the connection closed, or the answer was sent whole. */
  onClose(listener: () => void): void;
  /** Each time everything that waited has been sent. */
  onDrain(listener: () => void): void;
}

export function wrapResponse(res: ServerResponse): ClientResponse {
  return new NodeClientResponse(res);
}

class NodeClientResponse implements ClientResponse, BatchedWrite {
  readonly #res: ServerResponse;
  /** The whole rest of the answer, until the end of the turn. */
  #lastText: string | undefined;
  /** The text holds bytes, one per character. */
  #isBytes = false;

  constructor(res: ServerResponse) {
    this.#res = res;
  }

  writeHead(status: number, headers: string[]): void {
    this.#res.writeHead(status, headers);
  }

  sendLines(status: number, lines: string, body: string): void {
    this.#res.writeHead(status, headersOf(lines));
    this.end(body);
  }

  write(chunk: Uint8Array | string): boolean {
    return this.#res.write(chunk);
  }

  end(chunk?: Uint8Array | string): void {
    if (chunk === undefined) this.#res.end();
    else if (chunk.length > JOINED_BYTES_MAX) this.#res.end(chunk);
    else {
      // One string with the head is one plain write; a buffer beside the head costs a vectored one, twice the price.
      this.#isBytes = typeof chunk !== 'string';
      this.#lastText = typeof chunk === 'string' ? chunk : latin1(chunk);
      writeAtTurnEnd(this);
    }
  }

  flush(): void {
    const text = this.#lastText as string;
    this.#lastText = undefined;
    this.#res.end(text, this.#isBytes ? 'latin1' : 'utf8');
  }

  destroy(): void {
    this.#res.destroy();
  }

  get isSent(): boolean {
    return this.#res.writableFinished;
  }

  /**
   * The stream counts a write as pending until the kernel took all of it; the handle's own queue shrinks meanwhile,
   * which is what tells a slow but steady reader from one that stalls.
   */
  pendingBytes(): Bytes {
    const socket = this.#res.socket as { _handle?: { writeQueueSize?: number } | null } | null;
    return this.#res.writableLength + (socket?._handle?.writeQueueSize ?? 0);
  }

  onClose(listener: () => void): void {
    this.#res.once('close', listener);
  }

  onDrain(listener: () => void): void {
    this.#res.on('drain', listener);
  }
}

function headersOf(lines: string): string[] {
  const headers: string[] = [];
  for (const line of lines.split('\r\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) headers.push(line.slice(0, colon), line.slice(colon + 2));
  }
  return headers;
}

function latin1(chunk: Uint8Array): string {
  const bytes = Buffer.isBuffer(chunk)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  return bytes.toString('latin1');
}
