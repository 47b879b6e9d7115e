/**
 * Requests to nodes over HTTP/1.1: kept-alive connections per node, one request at a time on each, no redirects.
 *
 * Written over `node:net` instead of a client library because this is the hot path of the gateway: measured against
 * undici's cheapest call it saves about a fifth of the gateway's processor time per request (see the decision record),
 * and it closes a connection in the very turn in which a client leaves.
 *
 * Time is counted in ticks of one sweep, which looks at every connection: no timer is made or cleared per request, and
 * a timeout is late by at most one tick. Concurrency is the scheduler's business; `CONNECTIONS_PER_NODE_MAX` is a
 * guard, and a request beyond it is refused as `connect`.
 */
import type { DurationMs, NodeId } from '../../base/units.ts';
import type {
  NodeCall,
  NodeEndpoint,
  NodeRequest,
  NodeResponseHandler,
  NodeTransport,
} from '../../ports/node-transport.ts';
import { Call, Connection, type ConnectionOwner } from './connection.ts';
import { buildRoute, type Route } from './route.ts';
import { TICK_MS, ticks } from './ticks.ts';

/** Far above any batch size, below the descriptors of one process. */
export const CONNECTIONS_PER_NODE_MAX = 1_024;
/** Idle connections are closed before common servers close them (5 s), or a request would race with the close. */
const IDLE_MS = 4_000;
/** A server that announces its own limit is left this long before it. */
const IDLE_MARGIN_MS = 1_000;

export interface HttpTransportOptions {
  readonly connectMs: DurationMs;
}

export function createHttpTransport(options: HttpTransportOptions): NodeTransport {
  return new HttpTransport(options);
}

class HttpTransport implements NodeTransport {
  readonly #connectTicks: number;
  readonly #pools = new Map<NodeId, Pool | string>();
  /** Every pool with connections, the ones of closed nodes included. */
  readonly #sweeping = new Set<Pool>();
  #timer: NodeJS.Timeout | undefined;
  #unwritten: Connection[] = [];
  readonly #flush: () => void = () => {
    const connections = this.#unwritten;
    this.#unwritten = [];
    for (const connection of connections) connection.flush();
  };
  tick = 0;
  /** So far. */
  opened = 0;
  requests = 0;

  constructor(options: HttpTransportOptions) {
    this.#connectTicks = ticks(options.connectMs);
  }

  open(endpoint: NodeEndpoint): void {
    this.close(endpoint.id);
    const route = buildRoute(endpoint);
    this.#pools.set(endpoint.id, typeof route === 'string' ? route : new Pool(route, this));
  }

  close(nodeId: NodeId): void {
    const pool = this.#pools.get(nodeId);
    if (pool instanceof Pool) pool.retire();
    this.#pools.delete(nodeId);
  }

  send(nodeId: NodeId, request: NodeRequest, handler: NodeResponseHandler): NodeCall {
    const limits = {
      connectTicks: this.#connectTicks,
      headTicks: ticks(request.headersMs),
      idleTicks: ticks(request.idleMs),
    };
    const call = new Call(request, limits, handler);
    const pool = this.#pools.get(nodeId);
    const refusal = pool instanceof Pool ? pool.start(call) : (pool ?? `No node ${nodeId} is open`);
    if (refusal !== '') call.failLater('connect', refusal);
    return call;
  }

  async shutdown(): Promise<void> {
    for (const pool of this.#sweeping) pool.destroy();
    this.#sweeping.clear();
    this.#pools.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Requests leave in one burst at the end of the turn in which they were sent: spread over it, each write would wake a
   * node that has fallen asleep since the last one. At most one per connection.
   */
  connections(): { readonly opened: number; readonly requests: number } {
    return { opened: this.opened, requests: this.requests };
  }

  flushAtTurnEnd(connection: Connection): void {
    if (this.#unwritten.push(connection) === 1) setImmediate(this.#flush);
  }

  /** The pool has connections now: its time is looked after until it has none. */
  watch(pool: Pool): void {
    this.#sweeping.add(pool);
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#sweep(), TICK_MS);
    this.#timer.unref();
  }

  #sweep(): void {
    this.tick++;
    for (const pool of this.#sweeping) {
      pool.sweep(this.tick);
      if (pool.size === 0) this.#sweeping.delete(pool);
    }
    if (this.#sweeping.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** The connections of one node. The one used last is used first, so that the others can age and close. */
class Pool implements ConnectionOwner {
  readonly #route: Route;
  readonly #transport: HttpTransport;
  readonly #connections = new Set<Connection>();
  readonly #idle: Connection[] = [];
  #isRetired = false;

  constructor(route: Route, transport: HttpTransport) {
    this.#route = route;
    this.#transport = transport;
  }

  get size(): number {
    return this.#connections.size;
  }

  get tick(): number {
    return this.#transport.tick;
  }

  flushAtTurnEnd(connection: Connection): void {
    this.#transport.flushAtTurnEnd(connection);
  }

  /** '' or the reason why the call cannot be started. */
  start(call: Call): string {
    let connection = this.#idle.pop();
    if (connection === undefined) {
      if (this.#connections.size >= CONNECTIONS_PER_NODE_MAX) {
        return `All ${CONNECTIONS_PER_NODE_MAX} connections of the node are busy`;
      }
      connection = new Connection(this.#route, this);
      this.#connections.add(connection);
      this.#transport.opened += 1;
      this.#transport.watch(this);
    }
    this.#transport.requests += 1;
    call.startOn(connection);
    return '';
  }

  idle(connection: Connection): void {
    if (this.#isRetired || idleMs(connection) <= 0) {
      this.closed(connection);
      connection.destroy();
    } else this.#idle.push(connection);
  }

  closed(connection: Connection): void {
    this.#connections.delete(connection);
    const at = this.#idle.lastIndexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
  }

  sweep(tick: number): void {
    for (const connection of this.#connections) {
      if (!connection.isIdle) connection.checkTime(tick);
      else if (tick - connection.since > idleMs(connection) / TICK_MS) {
        this.closed(connection);
        connection.destroy();
      }
    }
  }

  /** No new calls; those under way go on. */
  retire(): void {
    this.#isRetired = true;
    for (const connection of this.#idle.splice(0)) {
      this.#connections.delete(connection);
      connection.destroy();
    }
  }

  destroy(): void {
    this.#isRetired = true;
    this.#idle.length = 0;
    for (const connection of this.#connections) connection.cut();
    this.#connections.clear();
  }
}

function idleMs(connection: Connection): DurationMs {
  const announcedS = connection.keepAliveSeconds;
  return announcedS < 0 ? IDLE_MS : Math.min(IDLE_MS, announcedS * 1_000 - IDLE_MARGIN_MS);
}
