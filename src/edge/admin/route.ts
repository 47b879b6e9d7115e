/** What a path of the admin plane is: who may call it, and what answers each method. */
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

/** A whole number of the query inside its bounds; what is no number counts as absent. */
export function numberOf(
  query: URLSearchParams,
  name: string,
  bounds: { readonly fallback: number; readonly max: number; readonly min?: number },
): number {
  const text = query.get(name) ?? '';
  const { fallback, max, min = 0 } = bounds;
  return Math.max(min, /^\d{1,15}$/.test(text) ? Math.min(Number(text), max) : fallback);
}
