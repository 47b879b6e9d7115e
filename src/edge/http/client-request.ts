/**
 * A client's request and the way to answer it, whichever of the two readers took it off the wire: the quick one (see
 * `quick-connection.ts`) or node's own server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Bytes } from '../../base/units.ts';
import { type ClientResponse, wrapResponse } from '../exchange/client-response.ts';
import { type RequestHead, scanHead } from './head.ts';

export interface BodyBudget {
  /** Bytes of bodies being read now. */
  bytes: Bytes;
  readonly bytesMax: Bytes;
}

export type BodyRefusal = 'too-large' | 'self-protection';

export interface BodyReader {
  /** The whole body. Called once, or `refused`, or neither when the client left. */
  complete(body: Buffer): void;
  refused(reason: BodyRefusal): void;
}

/** What a connection remembers between its requests, so that the same credentials are not looked up again. */
export interface PeerMemory {
  authorization: string;
  apiKey: string;
  /** The rules that gave the answer; others may give another one. */
  rules: unknown;
  tenant: unknown;
}

export interface ClientRequest {
  readonly method: string;
  /** The request target as it came. */
  readonly url: string;
  /** 0 or 1, of HTTP/1.x. */
  readonly minorVersion: number;
  /** Lent until the body is whole; not to be changed. */
  readonly head: RequestHead;
  readonly remoteAddress: string | undefined;
  readonly memory: PeerMemory;
  /** The client's connection is closed. */
  readonly isGone: boolean;
  /** Too much of a body is still to come for the connection to be kept after an answer now. */
  readonly hasUnreadBody: boolean;
  writeContinue(): void;
  /** Under two bounds: one per body, and one for all that are being read. */
  readBody(bytesMax: Bytes, budget: BodyBudget, reader: BodyReader): void;
  /** A whole answer in one write; `body` is ASCII, and its length is added. With `closes` the connection ends after it. */
  reply(status: number, headers: string[], body: string, after: 'keeps' | 'closes'): void;
  /** For an answer that is not known yet. */
  response(): ClientResponse;
}

const NO_BODY: Buffer = Buffer.alloc(0);

export function forgetful(): PeerMemory {
  return { authorization: '', apiKey: '', rules: undefined, tenant: undefined };
}

export function nodeRequest(req: IncomingMessage, res: ServerResponse): ClientRequest {
  return new NodeRequest(req, res);
}

class NodeRequest implements ClientRequest {
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly memory: PeerMemory = forgetful();

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req;
    this.#res = res;
  }

  get method(): string {
    return this.#req.method as string;
  }

  get url(): string {
    return this.#req.url as string;
  }

  get minorVersion(): number {
    return this.#req.httpVersionMinor;
  }

  get head(): RequestHead {
    return scanHead(this.#req.rawHeaders);
  }

  get remoteAddress(): string | undefined {
    return this.#req.socket.remoteAddress;
  }

  get isGone(): boolean {
    return this.#res.destroyed;
  }

  get hasUnreadBody(): boolean {
    const { headers, complete } = this.#req;
    const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
    return hasBody && !complete;
  }

  writeContinue(): void {
    this.#res.writeContinue();
  }

  readBody(bytesMax: Bytes, budget: BodyBudget, reader: BodyReader): void {
    readNodeBody(this.#req, { bytesMax, budget, reader });
  }

  reply(status: number, headers: string[], body: string, after: 'keeps' | 'closes'): void {
    if (after === 'closes') headers.push('connection', 'close');
    headers.push('content-length', String(body.length));
    this.#res.writeHead(status, headers);
    this.#res.end(body, 'latin1');
  }

  response(): ClientResponse {
    return wrapResponse(this.#res);
  }
}

interface BodyBounds {
  readonly bytesMax: Bytes;
  readonly budget: BodyBudget;
  readonly reader: BodyReader;
}

/** Both bounds are checked again while the body grows, since a chunked one does not say its length. */
function readNodeBody(req: IncomingMessage, { bytesMax, budget, reader }: BodyBounds): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let isOver = false;

  function finish(): void {
    isOver = true;
    budget.bytes -= bytes;
  }

  req.on('data', (chunk: Buffer) => {
    if (isOver) return;
    bytes += chunk.length;
    budget.bytes += chunk.length;
    const isTooLarge = bytes > bytesMax;
    if (!isTooLarge && budget.bytes <= budget.bytesMax) {
      chunks.push(chunk);
      return;
    }
    finish();
    chunks.length = 0;
    req.pause();
    reader.refused(isTooLarge ? 'too-large' : 'self-protection');
  });
  req.on('end', () => {
    if (isOver) return;
    finish();
    reader.complete(
      chunks.length === 1 ? (chunks[0] as Buffer) : chunks.length === 0 ? NO_BODY : Buffer.concat(chunks),
    );
  });
  req.on('close', () => {
    if (!isOver) finish();
  });
}
