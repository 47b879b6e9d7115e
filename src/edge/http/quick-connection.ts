/**
 * A client's connection while its requests come in their usual form (see `quick-head.ts`). The first request that does
 * not hands the connection over to node's own server, with not a byte of that request consumed.
 *
 *   waiting ──head──► body ──whole──► answering ──answer sent──► waiting      one request at a time
 *      │                                  └───── asked to close ──► closing   bytes that still come are thrown away
 *      └── unusual head ──► handed over
 *
 * Bytes of a next request that come before the answer wait, up to a bound at which the socket is paused. Time is counted
 * in ticks of the owner's sweep; nothing is armed per request.
 */
import type { Socket } from 'node:net';
import type { Bytes } from '../../base/units.ts';
import type { BodyBudget, BodyReader, ClientRequest, PeerMemory } from './client-request.ts';
import { forgetful } from './client-request.ts';
import { type RequestHead, scanHead } from './head.ts';
import { type KnownHead, knowHead, MISSES_MAX, recallHead } from './known-head.ts';
import { readQuickHead } from './quick-head.ts';
import { QuickResponse } from './quick-response.ts';

/** Bytes of next requests that are read ahead, so that the client's leaving is still noticed; beyond it reading stops. */
const AHEAD_BYTES_MAX = 65_536;
/** Rest of a body that is read and thrown away to keep the connection after a refusal; more closes it. */
const DISCARDED_BYTES_MAX = 65_536;

/** Half of the size of node's pool of small buffers, up to which a copy shares a slab. */
const COPIED_BYTES_MAX = 2_048;

/** What a connection needs of its listener. */
export interface QuickOwner {
  readonly headBytesMax: Bytes;
  /** Ticks of the sweep. */
  readonly tick: number;
  /** Whether the server takes no new connections: each ends with its answer. */
  readonly isClosing: boolean;
  /** The same target in a string that lives on, or undefined for an unknown one. */
  readonly findUrl: (url: string) => string | undefined;
  take(request: ClientRequest): void;
  handOver(connection: QuickConnection, socket: Socket, bytes: Buffer): void;
  closed(connection: QuickConnection): void;
  timedOut(socket: Socket): void;
}

/** Limits in ticks. */
export interface QuickLimits {
  readonly headTicks: number;
  readonly requestTicks: number;
  readonly idleTicks: number;
  readonly lingerTicks: number;
}

type State = 'waiting' | 'body' | 'answering' | 'closing' | 'over';

export class QuickConnection {
  readonly socket: Socket;
  readonly memory: PeerMemory = forgetful();
  readonly #owner: QuickOwner;
  #state: State = 'waiting';
  #since: number;
  #hasServed = false;
  #request: QuickRequest | undefined;
  #remoteAddress: string | undefined;
  /** Bytes of the next request. */
  #ahead: Buffer | undefined;
  /** From the second request on: most connections of one request, and all that wait with it, keep nothing. */
  #known: KnownHead | undefined;
  #misses = 0;
  constructor(socket: Socket, owner: QuickOwner) {
    this.socket = socket;
    this.#owner = owner;
    this.#since = owner.tick;
    (socket as OwnedSocket)[OWNER] = this;
    for (const [event, listener] of LISTENERS) socket.on(event, listener);
  }

  get isGone(): boolean {
    return this.#state === 'over' || this.socket.destroyed;
  }

  get isIdle(): boolean {
    return this.#state === 'waiting';
  }

  get remoteAddress(): string | undefined {
    this.#remoteAddress ??= this.socket.remoteAddress;
    return this.#remoteAddress;
  }

  get isClosing(): boolean {
    return this.#owner.isClosing;
  }

  drained(): void {
    this.#request?.drained();
  }

  checkTime(tick: number, limits: QuickLimits): void {
    const waited = tick - this.#since;
    if (this.#state === 'waiting') {
      if (this.#hasServed ? waited > limits.idleTicks : waited > limits.headTicks) this.#giveUp();
    } else if (this.#state === 'body') {
      if (waited > limits.requestTicks) this.#giveUp();
    } else if (this.#state === 'closing' && waited > limits.lingerTicks) this.destroy();
  }

  destroy(): void {
    this.socket.destroy();
    this.ended();
  }

  /** The whole body is there. */
  bodyRead(): void {
    if (this.#state === 'body') this.#state = 'answering';
  }

  /** The answer has left; what remains of the body is thrown away. */
  answered(after: 'keeps' | 'closes'): void {
    if (this.#state === 'over') return;
    this.#hasServed = true;
    this.#since = this.#owner.tick;
    if (after === 'closes' || this.#owner.isClosing) {
      this.#request = undefined;
      this.#state = 'closing';
      this.#ahead = undefined;
      this.socket.end();
      this.socket.resume();
      return;
    }
    if (this.#request !== undefined && this.#request.bytesLeft > 0) {
      this.#state = 'body';
      return;
    }
    this.#request = undefined;
    this.#state = 'waiting';
    this.#next();
  }

  /** Lets go of the socket, for another owner. */
  release(): void {
    this.#state = 'over';
    for (const [event, listener] of LISTENERS) this.socket.off(event, listener);
    delete (this.socket as OwnedSocket)[OWNER];
  }

  #next(): void {
    const ahead = this.#ahead;
    if (ahead === undefined) return;
    this.#ahead = undefined;
    this.socket.resume();
    this.#begin(ahead);
  }

  received(bytes: Buffer): void {
    switch (this.#state) {
      case 'waiting':
        this.#begin(bytes);
        break;
      case 'body':
        this.#more(bytes);
        break;
      case 'answering':
        this.#hold(bytes);
        break;
      default:
    }
  }

  #begin(bytes: Buffer): void {
    const known = this.#known;
    const recalled = known === undefined ? undefined : recallHead(known, bytes, this.#owner.headBytesMax);
    if (known !== undefined && recalled !== undefined) {
      this.#misses = 0;
      const { contentLength, bodyStart } = recalled;
      this.#take(bytes, { url: known.url, head: known.head, contentLength, bodyStart });
    } else this.#beginUnknown(bytes);
  }

  #beginUnknown(bytes: Buffer): void {
    const quick = readQuickHead(bytes, this.#owner.headBytesMax, this.#owner.findUrl);
    if (quick === undefined) {
      this.release();
      this.#owner.handOver(this, this.socket, bytes);
      return;
    }
    this.#known = this.#hasServed && this.#misses < MISSES_MAX ? knowHead(bytes, quick) : undefined;
    this.#misses++;
    const { url, contentLength, bodyStart } = quick;
    this.#take(bytes, {
      url,
      head: this.#known?.head ?? scanHead(quick.rawHeaders),
      contentLength,
      bodyStart,
    });
  }

  #take(bytes: Buffer, begun: BegunRequest): void {
    this.#since = this.#owner.tick;
    this.#state = 'body';
    const request = new QuickRequest(this, begun);
    this.#request = request;
    const { bodyStart } = begun;
    const bodyEnd = bodyStart + begun.contentLength;
    if (bytes.length > bodyEnd) this.#hold(bytes.subarray(bodyEnd));
    if (bytes.length > bodyStart) request.arrived(bodyIn(bytes, bodyStart, bodyEnd));
    this.#owner.take(request);
  }

  #more(bytes: Buffer): void {
    const request = this.#request as QuickRequest;
    const left = request.bytesLeft;
    if (bytes.length > left) this.#hold(bytes.subarray(left));
    request.arrived(bytes.length > left ? bytes.subarray(0, left) : bytes);
    if (!request.isAnswered || request.bytesLeft > 0) return;
    // The rest of a body that nobody wanted has passed.
    this.#request = undefined;
    this.#state = 'waiting';
    this.#next();
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#ahead = this.#ahead === undefined ? bytes : Buffer.concat([this.#ahead, bytes]);
    if (this.#ahead.length > AHEAD_BYTES_MAX) this.socket.pause();
  }

  #giveUp(): void {
    const isIdle = this.#state === 'waiting' && this.#hasServed;
    const { socket } = this;
    const isSilent = this.#request === undefined || !this.#request.hasBegun;
    this.ended();
    if (isIdle || !isSilent) socket.destroy();
    else this.#owner.timedOut(socket);
  }

  /** The client closed its side, or the connection broke: either way nobody waits for the answer. */
  ended(): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#ahead = undefined;
    this.#owner.closed(this);
    const request = this.#request;
    this.#request = undefined;
    request?.left();
  }
}

/** Listeners that all connections share, since ten thousand of them wait at once: five closures each would be 3 MB. */
const OWNER: unique symbol = Symbol('quick connection');

interface OwnedSocket extends Socket {
  [OWNER]?: QuickConnection;
}

const LISTENERS: readonly (readonly [string, (this: OwnedSocket, bytes: Buffer) => void])[] = [
  [
    'data',
    function received(bytes) {
      this[OWNER]?.received(bytes);
    },
  ],
  [
    'drain',
    function drained() {
      this[OWNER]?.drained();
    },
  ],
  // The close that follows is what counts.
  ['error', function failed() {}],
  [
    'end',
    function ended() {
      this[OWNER]?.destroy();
    },
  ],
  [
    'close',
    function closed() {
      this[OWNER]?.ended();
    },
  ],
];

/** A request whose head has been read. */
interface BegunRequest {
  readonly url: string;
  readonly head: RequestHead;
  readonly contentLength: Bytes;
  /** Where the body begins in the bytes that came. */
  readonly bodyStart: number;
}

const NO_HEAD: RequestHead = scanHead([]);

/** One request on a quick connection. */
class QuickRequest implements ClientRequest {
  readonly method = 'POST';
  readonly minorVersion = 1;
  readonly #connection: QuickConnection;
  readonly url: string;
  /** Of nobody once the body is whole: a request that waits must not hold its head. */
  head: RequestHead;
  /** Of the body, not yet arrived. */
  bytesLeft: Bytes;
  #first: Buffer | undefined;
  #chunks: Buffer[] | undefined;
  #budget: BodyBudget | undefined;
  #counted: Bytes = 0;
  #reader: BodyReader | undefined;
  #response: QuickResponse | undefined;

  constructor(connection: QuickConnection, { url, head, contentLength }: BegunRequest) {
    this.#connection = connection;
    this.url = url;
    this.head = head;
    this.bytesLeft = contentLength;
  }

  get remoteAddress(): string | undefined {
    return this.#connection.remoteAddress;
  }

  get memory(): PeerMemory {
    return this.#connection.memory;
  }

  get isGone(): boolean {
    return this.#connection.isGone;
  }

  get hasUnreadBody(): boolean {
    return this.bytesLeft > DISCARDED_BYTES_MAX;
  }

  /** Whether bytes of an answer may have left. */
  get hasBegun(): boolean {
    return this.#response !== undefined;
  }

  get isAnswered(): boolean {
    return this.#response?.isSent === true;
  }

  writeContinue(): void {}

  readBody(_bytesMax: Bytes, budget: BodyBudget, reader: BodyReader): void {
    this.#budget = budget;
    this.#reader = reader;
    this.#count(this.#first?.length ?? 0);
    this.#check();
  }

  reply(status: number, headers: string[], body: string, after: 'keeps' | 'closes'): void {
    headers.push('content-length', String(body.length));
    this.#forgetBody();
    const response = this.response();
    if (after === 'closes') response.closeAfter();
    response.writeHead(status, headers);
    response.end(body);
  }

  response(): QuickResponse {
    this.#response ??= new QuickResponse(this.#connection);
    return this.#response;
  }

  /** Bytes of the body; the connection gives no more than are missing. */
  arrived(bytes: Buffer): void {
    this.bytesLeft -= bytes.length;
    if (this.#response !== undefined) return;
    if (this.#first === undefined) this.#first = bytes;
    else {
      this.#chunks ??= [this.#first];
      this.#chunks.push(bytes);
    }
    if (this.#reader === undefined) return;
    this.#count(bytes.length);
    this.#check();
  }

  drained(): void {
    this.#response?.drained();
  }

  /** The client left. */
  left(): void {
    this.#forgetBody();
    this.#response?.left();
  }

  #count(bytes: Bytes): void {
    this.#counted += bytes;
    (this.#budget as BodyBudget).bytes += bytes;
  }

  #check(): void {
    const reader = this.#reader as BodyReader;
    const budget = this.#budget as BodyBudget;
    if (budget.bytes > budget.bytesMax) {
      this.#forgetBody();
      reader.refused('self-protection');
    } else if (this.bytesLeft === 0) {
      const body = this.#chunks === undefined ? (this.#first as Buffer) : Buffer.concat(this.#chunks);
      this.head = NO_HEAD;
      this.#forgetBody();
      this.#connection.bodyRead();
      reader.complete(body);
    }
  }

  #forgetBody(): void {
    if (this.#budget !== undefined) this.#budget.bytes -= this.#counted;
    this.#counted = 0;
    this.#reader = undefined;
    this.#first = undefined;
    this.#chunks = undefined;
  }
}

/**
 * What a read holds of a body. A small whole one in bytes of its own: as a part of what was read it would hold the head,
 * and a buffer, while it waits.
 */
function bodyIn(bytes: Buffer, start: number, end: number): Buffer {
  const length = end - start;
  if (length > COPIED_BYTES_MAX || bytes.length < end) return bytes.subarray(start, end);
  const copy = Buffer.allocUnsafe(length);
  bytes.copy(copy, 0, start, end);
  return copy;
}
