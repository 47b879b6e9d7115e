/** What a route of the admin plane is: who may call it, and what answers by method. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Scope } from './scopes.ts';

export interface Call {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly bearer: string;
}

export type Handler = (call: Call, id: string) => void | Promise<void>;

export interface Route {
  /** `node`: the handler itself checks the credential. */
  readonly scope: Scope | 'node';
  readonly methods: Readonly<Record<string, Handler>>;
}
