/**
 * A small HTTP/1.1 client over `net` for the load: real requests over kept-alive connections, at a fraction of the CPU
 * of a general client, so that the load does not take the cores that the gateway is measured on.
 *
 * Reads bodies by content-length, by chunks, or to the end of the connection. One request per connection at a time, no
 * pipelining. A time-out destroys the connection, as clients do. Connections are bounded; beyond the bound a request
 * fails at once.
 */
import { connect, type Socket } from 'node:net';
import type { DurationMs } from '../../base/units.ts';

/** Below the usual idle time-out of servers (5 s), so that a reused connection is not one the server is closing. */
const IDLE_MS_MAX = 2_000;
const RESPONSE_BYTES_MAX = 1_048_576;

export interface HttpAnswer {
  readonly status: number;
  /** Lower-case names; the last of equal names wins. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

export type HttpResult =
  | { readonly kind: 'answer'; readonly answer: HttpAnswer }
  | { readonly kind: 'timed-out' }
  /** The connection could not be made, broke, or carried what is no HTTP. */
  | { readonly kind: 'broken'; readonly detail: string };

export interface HttpClient {
  /** `request` is the whole request, head and body. `done` is called exactly once, never inside `send`. */
  send(request: string, timeoutMs: DurationMs, done: (result: HttpResult) => void): HttpCall;
  close(): void;
}

export interface HttpCall {
  /** Hangs up; `done` gets `timed-out`. */
  hangUp(): void;
}

export interface HttpClientOptions {
  readonly host: string;
  readonly port: number;
  readonly connectionsMax: number;
}

interface Connection {
  readonly socket: Socket;
  call: Call | undefined;
  received: string;
  idleSince: DurationMs;
}

interface Call {
  readonly done: (result: HttpResult) => void;
  readonly timer: NodeJS.Timeout;
  connection: Connection | undefined;
}

interface Pool {
  readonly options: HttpClientOptions;
  /** Newest last: reuse takes the freshest, servers close the oldest. */
  readonly idle: Connection[];
  open: number;
}

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const pool: Pool = { options, idle: [], open: 0 };
  return {
    send(request, timeoutMs, done) {
      const call: Call = { done, timer: setTimeout(() => timeOut(call), timeoutMs), connection: undefined };
      const connection = takeIdle(pool) ?? openConnection(pool);
      if (connection === undefined) {
        setImmediate(() => end(call, { kind: 'broken', detail: 'no connection is left on this client' }));
        return { hangUp: () => undefined };
      }
      call.connection = connection;
      connection.call = call;
      connection.socket.write(request, 'latin1');
      return { hangUp: () => hangUp(call) };
    },
    close() {
      for (const connection of pool.idle) connection.socket.destroy();
      pool.idle.length = 0;
    },
  };
}

/** An answer that has arrived already is read first: this process being late is no time-out of the other side. */
function timeOut(call: Call): void {
  setImmediate(() => hangUp(call));
}

function hangUp(call: Call): void {
  const connection = call.connection;
  if (connection === undefined) return;
  end(call, { kind: 'timed-out' });
  connection.socket.destroy();
}

function end(call: Call, result: HttpResult): void {
  const connection = call.connection;
  if (connection !== undefined) connection.call = undefined;
  call.connection = undefined;
  clearTimeout(call.timer);
  call.done(result);
}

function takeIdle(pool: Pool): Connection | undefined {
  const oldest = performance.now() - IDLE_MS_MAX;
  for (let top = pool.idle.pop(); top !== undefined; top = pool.idle.pop()) {
    if (!top.socket.destroyed && top.idleSince >= oldest) return top;
    top.socket.destroy();
  }
  return undefined;
}

/** Undefined at the bound. */
function openConnection(pool: Pool): Connection | undefined {
  if (pool.open >= pool.options.connectionsMax) return undefined;
  pool.open += 1;
  const { host, port } = pool.options;
  const socket = connect({ host, port, noDelay: true });
  const connection: Connection = { socket, call: undefined, received: '', idleSince: 0 };
  let detail = 'closed before the answer was complete';
  socket.on('data', (chunk: Buffer) => onChunk(pool, connection, chunk));
  socket.on('error', (error) => {
    detail = error.message;
  });
  socket.on('close', () => {
    pool.open -= 1;
    const place = pool.idle.indexOf(connection);
    if (place >= 0) pool.idle.splice(place, 1);
    if (connection.call !== undefined) onClosed(connection, connection.call, detail);
  });
  return connection;
}

function onClosed(connection: Connection, call: Call, detail: string): void {
  const parsed = parseAnswer(connection.received, true);
  if (parsed.kind === 'answer') end(call, { kind: 'answer', answer: parsed.answer });
  else end(call, { kind: 'broken', detail });
}

function onChunk(pool: Pool, connection: Connection, chunk: Buffer): void {
  const call = connection.call;
  if (call === undefined) {
    connection.socket.destroy();
    return;
  }
  connection.received += chunk.toString('latin1');
  const parsed = parseAnswer(connection.received, false);
  if (parsed.kind === 'more' && connection.received.length <= RESPONSE_BYTES_MAX) return;
  if (parsed.kind !== 'answer') {
    end(call, { kind: 'broken', detail: 'the answer is no HTTP, or too long' });
    connection.socket.destroy();
    return;
  }
  connection.received = '';
  if (parsed.keepAlive) {
    connection.idleSince = performance.now();
    pool.idle.push(connection);
  } else {
    connection.socket.destroy();
  }
  end(call, { kind: 'answer', answer: parsed.answer });
}

export type ParsedAnswer =
  | { readonly kind: 'more' }
  | { readonly kind: 'invalid' }
  | { readonly kind: 'answer'; readonly answer: HttpAnswer; readonly keepAlive: boolean };

const MORE: ParsedAnswer = { kind: 'more' };
const INVALID: ParsedAnswer = { kind: 'invalid' };

/** `received` holds bytes as latin-1 characters; `closed` tells that nothing more will come. */
export function parseAnswer(received: string, closed: boolean): ParsedAnswer {
  const headEnd = received.indexOf('\r\n\r\n');
  if (headEnd < 0) return MORE;
  const lines = received.slice(0, headEnd).split('\r\n');
  const start = /^HTTP\/1\.[01] (\d{3})/.exec(lines[0] ?? '');
  if (start === null) return INVALID;
  const headers = new Map<string, string>();
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(':');
    if (colon <= 0) return INVALID;
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  const body = readBody(received, headEnd + 4, { headers, closed });
  if (typeof body !== 'string') return body;
  const keepAlive = !closed && headers.get('connection')?.toLowerCase() !== 'close';
  return { kind: 'answer', answer: { status: Number(start[1]), headers, body: decode(body) }, keepAlive };
}

function readBody(
  received: string,
  from: number,
  head: { readonly headers: ReadonlyMap<string, string>; readonly closed: boolean },
): string | ParsedAnswer {
  if (head.headers.get('transfer-encoding')?.toLowerCase() === 'chunked') return readChunks(received, from);
  const length = head.headers.get('content-length');
  if (length === undefined) return head.closed ? received.slice(from) : MORE;
  const bytes = Number(length);
  if (!Number.isInteger(bytes) || bytes < 0) return INVALID;
  return received.length - from >= bytes ? received.slice(from, from + bytes) : MORE;
}

function readChunks(received: string, from: number): string | ParsedAnswer {
  let body = '';
  for (let at = from; ; ) {
    const lineEnd = received.indexOf('\r\n', at);
    if (lineEnd < 0) return MORE;
    const size = Number.parseInt(received.slice(at, lineEnd), 16);
    if (!Number.isInteger(size) || size < 0) return INVALID;
    const next = lineEnd + 2 + size + 2;
    if (received.length < next) return MORE;
    if (size === 0) return body;
    body += received.slice(lineEnd + 2, lineEnd + 2 + size);
    at = next;
  }
}

function decode(latin1: string): string {
  for (let index = 0; index < latin1.length; index += 1) {
    if (latin1.charCodeAt(index) > 0x7f) return Buffer.from(latin1, 'latin1').toString('utf8');
  }
  return latin1;
}
