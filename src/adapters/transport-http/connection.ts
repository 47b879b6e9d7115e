/**
 * One connection to a node: connects, carries one request at a time, and goes back to its pool or dies.
 *
 *   connecting ──► busy ◄──► idle ──► closed
 *        └───────────┴────────┴────────► closed     each call gets exactly one `onEnd` or `onFault`
 *
 * Requests up to `JOINED_BYTES_MAX` leave in one write of one string, which is the cheapest road through node's streams.
 * Plain sockets read into one buffer that all connections share, since node hands bytes over before it reads again;
 * what goes to a handler is therefore copied out of it, once.
 */
import { connect as connectPlain, type OnReadOpts, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { DurationMs } from '../../base/units.ts';
import type {
  NodeCall,
  NodeRequest,
  NodeResponseHandler,
  TransportFault,
} from '../../ports/node-transport.ts';
import { describeFault } from './faults.ts';
import { ResponseParser, type ResponseEvents } from './response-parser.ts';
import type { Route } from './route.ts';
import { ticks } from './ticks.ts';

/** Larger bodies are written beside the head instead of joined with it. */
const JOINED_BYTES_MAX = 16_384;
/** All reads of plain sockets go through it. */
const READ_BUFFER: Buffer = Buffer.allocUnsafeSlow(65_536);

/** What a connection tells its pool. */
export interface ConnectionOwner {
  /** May carry another request. */
  idle(connection: Connection): void;
  closed(connection: Connection): void;
  /** Calls `flush` when the sockets of this turn have been read. */
  flushAtTurnEnd(connection: Connection): void;
  /** Coarse clock, in ticks of the transport's sweep. */
  readonly tick: number;
}

/** Timeouts in ticks. */
export interface CallLimits {
  readonly connectTicks: number;
  readonly headTicks: number;
  idleTicks: number;
}

type Phase = 'connecting' | 'head' | 'body' | 'idle' | 'closed';

export class Connection implements ResponseEvents {
  readonly #owner: ConnectionOwner;
  readonly #parser: ResponseParser = new ResponseParser(this);
  readonly #socket: Socket;
  readonly route: Route;
  #phase: Phase = 'connecting';
  #call: Call | undefined;
  /** Tick of the last progress, or of the beginning of the idle time. */
  #since: number;
  #isPaused = false;
  /** A request that waits for the end of the turn. */
  #pending = '';

  constructor(route: Route, owner: ConnectionOwner) {
    this.route = route;
    this.#owner = owner;
    this.#since = owner.tick;
    this.#socket = this.#open(route);
  }

  get since(): number {
    return this.#since;
  }

  get isIdle(): boolean {
    return this.#phase === 'idle';
  }

  /** Seconds that the server keeps it, or -1 when it did not say. */
  get keepAliveSeconds(): number {
    return this.#parser.keepAliveSeconds;
  }

  start(call: Call): void {
    this.#call = call;
    this.#since = this.#owner.tick;
    if (this.#phase === 'idle') this.#write(call);
  }

  /** Writes the request; see `flushAtTurnEnd`. */
  flush(): void {
    const text = this.#pending;
    this.#pending = '';
    if (text !== '' && this.#phase !== 'closed') this.#socket.write(text, 'latin1');
  }

  /** Ends what takes too long. Called on each tick. */
  checkTime(tick: number): void {
    const call = this.#call;
    if (call === undefined || this.#isPaused) return;
    const waited = tick - this.#since;
    const { limits } = call;
    if (this.#phase === 'connecting' && waited > limits.connectTicks) {
      this.#break('connect', 'No connection in time');
    } else if (this.#phase === 'head' && waited > limits.headTicks) {
      this.#break('timeout', 'No response head in time');
    } else if (this.#phase === 'body' && waited > limits.idleTicks) {
      this.#break('timeout', 'The response fell silent');
    }
  }

  /** Closed by its pool, without a call. */
  destroy(): void {
    this.#phase = 'closed';
    this.#socket.destroy();
  }

  /** Closed by its pool although a call may be under way. */
  cut(): void {
    this.#break('aborted', 'The transport shut down');
  }

  resume(): void {
    if (!this.#isPaused || this.#phase === 'closed') return;
    this.#isPaused = false;
    this.#since = this.#owner.tick;
    this.#socket.resume();
  }

  // What the parser says.

  head(status: number, headers: readonly string[]): void {
    this.#phase = 'body';
    this.#call?.head(status, headers);
  }

  data(view: Buffer): void {
    if (this.#call?.data(view) === false && this.#phase === 'body') {
      this.#isPaused = true;
      this.#socket.pause();
    }
  }

  end(): void {
    const call = this.#call;
    this.#call = undefined;
    if (this.#phase === 'closed') return;
    if (this.#isPaused) {
      this.#isPaused = false;
      this.#socket.resume();
    }
    // A node that answered before it read the whole request still reads it: the next one would queue behind.
    if (this.#parser.keepsAlive && this.#socket.writableLength === 0) {
      this.#phase = 'idle';
      this.#since = this.#owner.tick;
      this.#owner.idle(this);
    } else this.#close();
    call?.end();
  }

  #open(route: Route): Socket {
    const onread: OnReadOpts = {
      buffer: READ_BUFFER,
      callback: (bytesRead, buffer) => {
        this.#received((buffer as Buffer).subarray(0, bytesRead));
        return !this.#isPaused;
      },
    };
    const socket =
      route.tls === undefined
        ? connectPlain({ host: route.host, port: route.port, noDelay: true, onread })
        : connectTls({ host: route.host, port: route.port, ...route.tls, ALPNProtocols: ['http/1.1'] });
    if (route.tls !== undefined) {
      socket.setNoDelay(true);
      socket.on('data', (bytes: Buffer) => this.#received(bytes));
    }
    socket.once(route.tls === undefined ? 'connect' : 'secureConnect', () => this.#connected());
    socket.on('error', (error) =>
      this.#break(this.#phase === 'connecting' ? 'connect' : 'reset', describeFault(error)),
    );
    socket.on('end', () => this.#ended());
    socket.on('close', () =>
      this.#break(this.#phase === 'connecting' ? 'connect' : 'reset', 'The connection closed'),
    );
    return socket;
  }

  #connected(): void {
    if (this.#phase !== 'connecting') return;
    const call = this.#call;
    if (call === undefined) this.#close();
    else this.#write(call);
  }

  #write(call: Call): void {
    this.#phase = 'head';
    this.#since = this.#owner.tick;
    const { request } = call;
    const body = request.body;
    let length = 0;
    for (const part of body) length += part.length;
    const head = requestHead(this.route, request, length);
    if (length <= JOINED_BYTES_MAX) {
      let text = head;
      for (const part of body) text += latin1(part);
      this.#pending = text;
      this.#owner.flushAtTurnEnd(this);
    } else {
      this.#socket.cork();
      this.#socket.write(head, 'latin1');
      for (const part of body) this.#socket.write(part);
      this.#socket.uncork();
    }
    call.sent();
  }

  #received(bytes: Buffer): void {
    if (this.#phase === 'closed') return;
    if (this.#call === undefined || this.#phase === 'idle') {
      // Nothing was asked: whatever it is, it must not become the answer to the next request.
      this.#close();
      return;
    }
    this.#since = this.#owner.tick;
    this.#parser.push(bytes);
    if (this.#parser.fault !== '') this.#break('protocol', this.#parser.fault);
  }

  #ended(): void {
    if (this.#phase === 'head' && this.#parser.isIdle) {
      this.#break('reset', 'Closed before a response');
      return;
    }
    if (this.#phase === 'head' || this.#phase === 'body') {
      this.#parser.close();
      if (this.#parser.fault !== '') this.#break('protocol', this.#parser.fault);
      return;
    }
    this.#break('connect', 'Closed while connecting');
  }

  #close(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#owner.closed(this);
    this.#socket.destroy();
  }

  #break(fault: TransportFault, detail: string): void {
    if (this.#phase === 'closed') return;
    const call = this.#call;
    this.#call = undefined;
    this.#close();
    call?.fail(fault, detail);
  }

  /** The caller gave up: under HTTP/1.1 only closing tells the node. */
  abandon(call: Call): void {
    if (this.#call !== call) return;
    this.#call = undefined;
    this.#close();
  }
}

/** One request and its handler, with exactly one end. */
export class Call implements NodeCall {
  readonly request: NodeRequest;
  readonly limits: CallLimits;
  readonly #handler: NodeResponseHandler;
  #connection: Connection | undefined;
  #isOver = false;

  constructor(request: NodeRequest, limits: CallLimits, handler: NodeResponseHandler) {
    this.request = request;
    this.limits = limits;
    this.#handler = handler;
  }

  startOn(connection: Connection): void {
    this.#connection = connection;
    connection.start(this);
  }

  abort(): void {
    if (this.#isOver) return;
    this.#connection?.abandon(this);
    this.failLater('aborted', 'Aborted by the gateway');
  }

  resume(): void {
    if (!this.#isOver) this.#connection?.resume();
  }

  setIdle(idleMs: DurationMs): void {
    this.limits.idleTicks = ticks(idleMs);
  }

  sent(): void {
    if (!this.#isOver) this.#handler.onSent();
  }

  head(status: number, headers: readonly string[]): void {
    if (!this.#isOver) this.#handler.onHead(status, headers);
  }

  data(view: Buffer): boolean {
    return this.#isOver || this.#handler.onData(Buffer.from(view));
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onEnd();
  }

  fail(fault: TransportFault, detail: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onFault(fault, detail);
  }

  /** Never in the turn of the caller. */
  failLater(fault: TransportFault, detail: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    setImmediate(() => this.#handler.onFault(fault, detail));
  }
}

function requestHead(route: Route, request: NodeRequest, bodyBytes: number): string {
  let text = `${request.method} ${route.basePath}${request.path} HTTP/1.1\r\n${route.fixedHeaders}`;
  const { headers } = request;
  for (let i = 0; i + 1 < headers.length; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return bodyBytes > 0 || request.method !== 'GET'
    ? `${text}content-length: ${bodyBytes}\r\n\r\n`
    : `${text}\r\n`;
}

function latin1(part: Uint8Array): string {
  const bytes = Buffer.isBuffer(part) ? part : Buffer.from(part.buffer, part.byteOffset, part.byteLength);
  return bytes.toString('latin1');
}
