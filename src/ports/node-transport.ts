/**
 * How requests reach nodes. One implementation speaks HTTP/1.1; another may go through a tunnel.
 */
import type { DurationMs, NodeId } from '../base/units.ts';
import type { NodeTlsConfig } from '../core/config/types.ts';

/** Where a node is and what is added to each request. Never logged whole: it holds secrets. */
export interface NodeEndpoint {
  readonly id: NodeId;
  /** Scheme, host, port and base path. Redirects are never followed. */
  readonly url: string;
  /** Flat list of names and values added to every request, the node's own credential included. */
  readonly headers: readonly string[];
  readonly tls?: NodeTlsConfig;
}

export interface NodeRequest {
  readonly method: string;
  /** Path below the endpoint's base path, with a leading slash. */
  readonly path: string;
  /** Flat list of names and values. */
  readonly headers: readonly string[];
  /** The body in order, or none; forwarded as it is, content-length computed from it. */
  readonly body: readonly Uint8Array[];
  /** Longest wait for the response head, and longest silence inside the body. */
  readonly headersMs: DurationMs;
  readonly idleMs: DurationMs;
}

export type TransportFault = 'connect' | 'reset' | 'timeout' | 'protocol' | 'aborted';

/** Callbacks arrive in the order sent → head → data* → (end | fault); exactly one of the last two, never in the same turn as `send`. */
export interface NodeResponseHandler {
  /** The request's bytes are being written to a connection. */
  onSent(): void;
  onHead(status: number, headers: readonly string[]): void;
  /** Returning false pauses the node's stream until `resume`. */
  onData(chunk: Uint8Array): boolean;
  onEnd(): void;
  onFault(fault: TransportFault, detail: string): void;
}

export interface NodeCall {
  /** Ends the call; the handler gets `onFault('aborted')` unless it has ended. Closes the connection under HTTP/1.1. */
  abort(): void;
  resume(): void;
  /** Longest silence inside the body from now on. */
  setIdle(idleMs: DurationMs): void;
}

export interface NodeTransport {
  /** Makes a node reachable, or replaces its endpoint. Calls under way keep the old one. */
  open(endpoint: NodeEndpoint): void;
  /** Calls under way go on; connections close when idle. */
  close(nodeId: NodeId): void;
  /** MUST NOT throw: an unknown node or a refused connection is `onFault('connect')`. */
  send(nodeId: NodeId, request: NodeRequest, handler: NodeResponseHandler): NodeCall;
  /** Connections that were opened so far, and requests that were given to one. Absent: nobody counts. */
  connections?(): { readonly opened: number; readonly requests: number };
  /** Ends all connections. */
  shutdown(): Promise<void>;
}
