/**
 * Puts quick connections in front of node's HTTP server: it listens and limits connections as before, but each new one is
 * read here first, and goes to node's parser when its requests are unusual. One sweep looks after the time of all.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { DurationMs } from '../../base/units.ts';
import type { ServerConfig } from '../../core/config/types.ts';
import type { MetricsSink } from '../../ports/metrics-sink.ts';
import type { ClientRequest } from './client-request.ts';
import { QuickConnection, type QuickLimits, type QuickOwner } from './quick-connection.ts';
import { answerMalformed, checkEveryMs, IDLE_CONNECTION_MS } from './server.ts';

/** A connection that was told to close is left this long to read its answer. */
const LINGER_MS: DurationMs = 2_000;

export interface QuickOptions {
  readonly config: ServerConfig;
  readonly metrics: MetricsSink;
  readonly findUrl: (url: string) => string | undefined;
  take(request: ClientRequest): void;
}

export interface QuickServer {
  /** Idle connections are closed now, the others after their answer. */
  close(): void;
  destroy(): void;
}

type ConnectionListener = (this: Server, socket: Socket) => void;

/** The server must not have listeners of its own for new connections beyond node's and those that only look on. */
export function serveQuickly(server: Server, options: QuickOptions): QuickServer {
  const { config, metrics } = options;
  const event = config.tls === undefined ? 'connection' : 'secureConnection';
  const nodeListener = server.listeners(event)[0] as ConnectionListener;
  const periodMs = checkEveryMs(config);
  const ticks = (ms: DurationMs): number => Math.ceil(ms / periodMs);
  const limits: QuickLimits = {
    headTicks: ticks(config.headersMs),
    requestTicks: ticks(Math.max(config.headersMs, config.requestMs)),
    idleTicks: ticks(IDLE_CONNECTION_MS),
    lingerTicks: ticks(LINGER_MS),
  };
  const connections = new Set<QuickConnection>();
  let timer: NodeJS.Timeout | undefined;
  const owner: QuickOwner & { tick: number; isClosing: boolean } = {
    headBytesMax: config.headerBytesMax,
    tick: 0,
    isClosing: false,
    findUrl: options.findUrl,
    take: options.take,
    handOver(connection, socket, bytes) {
      forget(connection);
      socket.pause();
      socket.unshift(bytes);
      nodeListener.call(server, socket);
      process.nextTick(() => socket.resume());
    },
    closed: forget,
    timedOut(socket) {
      metrics.malformedRequest();
      answerMalformed({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket);
      socket.destroySoon();
    },
  };

  function forget(connection: QuickConnection): void {
    connections.delete(connection);
    if (connections.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function sweep(): void {
    owner.tick++;
    for (const connection of connections) connection.checkTime(owner.tick, limits);
  }

  server.off(event, nodeListener);
  server.on(event, (socket: Socket) => {
    connections.add(new QuickConnection(socket, owner));
    if (timer !== undefined) return;
    timer = setInterval(sweep, periodMs);
    timer.unref();
  });
  return {
    close() {
      owner.isClosing = true;
      for (const connection of connections) if (connection.isIdle) connection.destroy();
    },
    destroy() {
      for (const connection of connections) connection.destroy();
    },
  };
}
