/**
 * The listener: node's own HTTP server with its strict parser and every limit set from the configuration. What the
 * parser refuses is answered in the wire's shape, without a word about our insides.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import type { DurationMs } from '../../base/units.ts';
import type { ServerConfig } from '../../core/config/types.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import { type Refusal, refuse, renderOpenAi } from '../outcomes/refusal.ts';

/** A client may keep an idle connection this long; longer than common load balancers (60 s) so that they close first. */
export const IDLE_CONNECTION_MS: DurationMs = 75_000;
/** Slow headers and bodies are looked for this often. */
const CHECK_MS_MIN = 50;
const CHECK_MS_MAX = 2_000;

/** `mayContinue`: the client waits for "100 Continue" before it sends the body. */
export type RequestListener = (req: IncomingMessage, res: ServerResponse, mayContinue: boolean) => void;

export interface ServerOptions {
  readonly config: ServerConfig;
  readonly metrics: MetricsSink;
  readonly listener: RequestListener;
}

export function checkEveryMs({ headersMs }: ServerConfig): DurationMs {
  return Math.min(CHECK_MS_MAX, Math.max(CHECK_MS_MIN, headersMs / 4));
}

export function createHttpServer(options: ServerOptions): Server {
  const { config, listener, metrics } = options;
  const limits = {
    insecureHTTPParser: false,
    // Checked by the listener, so that the answer has the wire's shape.
    requireHostHeader: false,
    maxHeaderSize: config.headerBytesMax,
    headersTimeout: config.headersMs,
    requestTimeout: Math.max(config.headersMs, config.requestMs),
    keepAliveTimeout: IDLE_CONNECTION_MS,
    connectionsCheckingInterval: checkEveryMs(config),
    noDelay: true,
  };
  const server =
    config.tls === undefined
      ? createServer(limits)
      : createTlsServer({
          ...limits,
          // A handshake that never ends holds a connection as slow headers do.
          handshakeTimeout: config.headersMs,
          cert: readFileSync(config.tls.cert),
          key: readFileSync(config.tls.key),
        });
  server.maxConnections = config.connectionsMax;
  // The size of the head bounds their number; node would drop what is beyond its own count without a word.
  server.maxHeadersCount = 0;
  server.on('request', (req: IncomingMessage, res: ServerResponse) => listener(req, res, false));
  server.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => listener(req, res, true));
  if (config.tls !== undefined)
    server.removeAllListeners('tlsClientError').on('tlsClientError', refuseHandshake);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    metrics.malformedRequest();
    answerMalformed(error, socket);
  });
  /** Before there is TLS nothing can be said: words would wait for a handshake that never ends, and hold the socket. */
  function refuseHandshake(_error: Error, socket: Duplex): void {
    metrics.malformedRequest();
    socket.destroy();
  }
  let open = 0;
  server.on('connection', (socket: Duplex) => {
    metrics.connections(++open);
    socket.once('close', () => metrics.connections(--open));
  });
  return server;
}

interface ParsedSocket extends Duplex {
  _httpMessage?: { headersSent: boolean } | null;
}

type Malformed = Pick<NodeJS.ErrnoException, 'code'>;

export function answerMalformed(error: Malformed, socket: ParsedSocket): void {
  // Bytes of another answer may be on their way: a second head in between would be read as its body.
  if (!socket.writable || socket._httpMessage?.headersSent === true || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const rendered = renderOpenAi(malformed(error), { overloadStatus: 429, jitterSeed: 0 });
  const lines = [`HTTP/1.1 ${rendered.status} ${STATUS_TEXT[rendered.status] ?? 'Bad Request'}`];
  for (let i = 0; i + 1 < rendered.headers.length; i += 2) {
    lines.push(`${rendered.headers[i]}: ${rendered.headers[i + 1]}`);
  }
  lines.push(`content-length: ${Buffer.byteLength(rendered.body)}`, 'connection: close', '', rendered.body);
  socket.end(lines.join('\r\n'));
}

const STATUS_TEXT: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

function malformed(error: Malformed): Refusal {
  if (error.code === 'HPE_HEADER_OVERFLOW') return refuse('header-too-large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return refuse('request-timeout');
  return refuse('bad-request', 'it is not well-formed HTTP/1.1');
}
