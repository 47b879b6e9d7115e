/**
 * Requests to nodes over HTTP/1.1: one undici pool per node, one request per connection at a time, no redirects.
 *
 * Only `dispatch` with the raw callbacks is used: it hands out header buffers and body chunks as they were read, which
 * costs a fraction of the client's other calls. Concurrency is the scheduler's business, so the pool's own bound
 * (`CONNECTIONS_PER_NODE_MAX`) is only a guard; above it requests wait inside the pool for a connection.
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import type { DurationMs, NodeId } from '../../base/units.ts';
import type {
  NodeCall,
  NodeEndpoint,
  NodeRequest,
  NodeResponseHandler,
  NodeTransport,
  TransportFault,
} from '../../ports/node-transport.ts';
import { classifyFault, describeFault } from './faults.ts';

/** Most connections to one node; far above any batch size, below the descriptors of one process. */
const CONNECTIONS_PER_NODE_MAX = 1_024;
/** Most bytes of a node's response head. */
const RESPONSE_HEAD_BYTES_MAX = 64 * 1_024;
/** Idle connections are closed before common servers (5 s and more) close them, or a request would race with the close. */
const KEEP_ALIVE_MS = 4_000;

export interface HttpTransportOptions {
  readonly connectMs: DurationMs;
}

interface Route {
  readonly pool: Pool;
  /** Without a trailing slash; '' when the endpoint is the root. */
  readonly basePath: string;
  readonly headers: readonly string[];
}

export function createHttpTransport(options: HttpTransportOptions): NodeTransport {
  const routes = new Map<NodeId, Route | string>();
  const closing = new Set<Promise<void>>();

  function retire(route: Route | string | undefined): void {
    if (route === undefined || typeof route === 'string') return;
    const closed = route.pool.close().catch(() => route.pool.destroy());
    closing.add(closed);
    closed.finally(() => closing.delete(closed));
  }

  return {
    open(endpoint: NodeEndpoint): void {
      retire(routes.get(endpoint.id));
      routes.set(endpoint.id, buildRoute(endpoint, options.connectMs));
    },
    close(nodeId: NodeId): void {
      retire(routes.get(nodeId));
      routes.delete(nodeId);
    },
    send(nodeId: NodeId, request: NodeRequest, handler: NodeResponseHandler): NodeCall {
      const route = routes.get(nodeId) ?? `No node ${nodeId} is open`;
      const call = new HttpCall(handler);
      if (typeof route === 'string') call.faultLater('connect', route);
      else call.dispatch(route, request);
      return call;
    },
    async shutdown(): Promise<void> {
      const open = [...routes.values()].filter((route) => typeof route !== 'string');
      routes.clear();
      await Promise.allSettled([...open.map((route) => route.pool.destroy()), ...closing]);
    },
  };
}

/** A route, or the reason why the node cannot be reached: a bad URL or an unreadable certificate file. */
function buildRoute(endpoint: NodeEndpoint, connectMs: DurationMs): Route | string {
  try {
    const url = new URL(endpoint.url);
    const pool = new Pool(url.origin, {
      connections: CONNECTIONS_PER_NODE_MAX,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: RESPONSE_HEAD_BYTES_MAX,
      connect: { timeout: connectMs, ...tlsFiles(endpoint) },
    });
    return { pool, basePath: url.pathname.replace(/\/+$/, ''), headers: endpoint.headers };
  } catch (error) {
    return describeFault(error);
  }
}

function tlsFiles(endpoint: NodeEndpoint): { ca?: Buffer; cert?: Buffer; key?: Buffer } {
  const tls = endpoint.tls;
  if (tls === undefined) return {};
  return {
    ...(tls.ca === undefined ? {} : { ca: readFileSync(tls.ca) }),
    ...(tls.cert === undefined ? {} : { cert: readFileSync(tls.cert) }),
    ...(tls.key === undefined ? {} : { key: readFileSync(tls.key) }),
  };
}

/** One request: undici's callbacks on one side, the port's on the other, with exactly one end. */
class HttpCall implements NodeCall {
  readonly #handler: NodeResponseHandler;
  #abortRequest: ((error?: Error) => void) | undefined;
  #resumeResponse: (() => void) | undefined;
  #isPaused = false;
  #isSent = false;
  #isAborted = false;
  #isOver = false;
  /** While `dispatch` runs, an end must wait: the caller does not hold the call yet. */
  #isDispatching = false;

  constructor(handler: NodeResponseHandler) {
    this.#handler = handler;
  }

  dispatch(route: Route, request: NodeRequest): void {
    this.#isDispatching = true;
    try {
      route.pool.dispatch(
        {
          method: request.method as 'POST',
          path: route.basePath + request.path,
          headers:
            route.headers.length === 0
              ? (request.headers as string[])
              : request.headers.concat(route.headers),
          body: joinBody(request.body),
          headersTimeout: request.headersMs,
          bodyTimeout: request.idleMs,
        },
        this,
      );
    } catch (error) {
      this.onError(error as Error);
    }
    this.#isDispatching = false;
  }

  abort(): void {
    if (this.#isOver || this.#isAborted) return;
    this.#isAborted = true;
    if (this.#abortRequest !== undefined) this.#abortRequest();
    else this.faultLater('aborted', 'Aborted before a connection was made');
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#resumeResponse?.();
  }

  faultLater(fault: TransportFault, detail: string): void {
    setImmediate(() => this.#fault(fault, detail));
  }

  #fault(fault: TransportFault, detail: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onFault(fault, detail);
  }

  // From here on: what undici calls.

  onConnect(abort: (error?: Error) => void): void {
    this.#abortRequest = abort;
    if (this.#isAborted || this.#isOver) {
      abort();
      return;
    }
    if (this.#isSent) return;
    this.#isSent = true;
    this.#handler.onSent();
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200 || this.#isAborted) return true;
    this.#resumeResponse = resume;
    const headers: string[] = new Array(rawHeaders.length);
    for (let i = 0; i < rawHeaders.length; i++) headers[i] = (rawHeaders[i] as Buffer).toString('latin1');
    this.#handler.onHead(status, headers);
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isAborted) return true;
    const wantsMore = this.#handler.onData(chunk);
    if (!wantsMore) this.#isPaused = true;
    return wantsMore;
  }

  onComplete(): void {
    if (this.#isOver || this.#isAborted) return;
    this.#isOver = true;
    this.#handler.onEnd();
  }

  onError(error: Error): void {
    const fault = this.#isAborted ? 'aborted' : classifyFault(error, this.#isSent);
    if (this.#isDispatching || this.#isAborted) this.faultLater(fault, describeFault(error));
    else this.#fault(fault, describeFault(error));
  }
}

function joinBody(body: readonly Uint8Array[]): Uint8Array | null {
  if (body.length === 0) return null;
  return body.length === 1 ? (body[0] as Uint8Array) : Buffer.concat(body);
}
