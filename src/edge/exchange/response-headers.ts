/**
 * What a client sees of a node's response head. An allow-list: hop-by-hop headers, cookies, the node's own rate limits
 * and retry hints, and anything that looks like ours stay behind.
 */
const ALLOWED: ReadonlySet<string> = new Set([
  'content-type',
  'cache-control',
  'content-language',
  'openai-model',
  'openai-processing-ms',
  'openai-version',
]);

export interface NodeHead {
  readonly status: number;
  /** Flat, lower-case names; only what a client may see. */
  readonly passed: readonly string[];
  readonly contentType: string;
  /** Undefined when the node named none. */
  readonly contentLength: number | undefined;
  readonly contentEncoding: string;
  readonly retryAfter: string;
}

export function readNodeHead(status: number, headers: readonly string[]): NodeHead {
  const passed: string[] = [];
  let contentType = '';
  let contentEncoding = '';
  let retryAfter = '';
  let contentLength: number | undefined;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] as string).toLowerCase();
    const value = headers[i + 1] as string;
    if (ALLOWED.has(name)) passed.push(name, value);
    if (name === 'content-type') contentType = value;
    else if (name === 'content-length') contentLength = Number(value);
    else if (name === 'content-encoding') contentEncoding = value;
    else if (name === 'retry-after') retryAfter = value;
  }
  return { status, passed, contentType, contentLength, contentEncoding, retryAfter };
}

/** Longest rest that a node may ask for. */
const NODE_RETRY_AFTER_S_MAX = 3_600;

/** Microseconds that a node asked to be left alone; 0 for none, an HTTP date, or an unreadable value. */
export function nodeRetryAfterUs(retryAfter: string): number {
  if (!/^\d{1,9}$/.test(retryAfter)) return 0;
  return Math.min(NODE_RETRY_AFTER_S_MAX, Number(retryAfter)) * 1_000_000;
}

/** How a node's answer is taken. */
export type HeadVerdict =
  | { readonly kind: 'success' }
  /** A deterministic 4xx: the request itself is wrong, on every node. */
  | { readonly kind: 'declined' }
  | { readonly kind: 'failed'; readonly failure: 'refused' | 'server-error' | 'protocol' };

/**
 * 401, 403, 404, 405 and 407 from a node speak about the gateway's credentials and the node's own configuration, since
 * the gateway sent a known model on a known path: the node is wrong, not the client. Were they forwarded, a node that
 * lost its model would answer fastest and swallow the traffic.
 */
const NODE_AT_FAULT: ReadonlySet<number> = new Set([401, 403, 404, 405, 407, 408, 421, 425]);

export function judgeHead(status: number): HeadVerdict {
  if (status >= 200 && status < 300) return SUCCESS;
  if (status === 429 || status === 503) return REFUSED;
  if (status >= 400 && status < 500) return NODE_AT_FAULT.has(status) ? SERVER_ERROR : DECLINED;
  if (status >= 500 && status < 600) return SERVER_ERROR;
  return PROTOCOL;
}

const SUCCESS: HeadVerdict = Object.freeze({ kind: 'success' });
const DECLINED: HeadVerdict = Object.freeze({ kind: 'declined' });
const REFUSED: HeadVerdict = Object.freeze({ kind: 'failed', failure: 'refused' });
const SERVER_ERROR: HeadVerdict = Object.freeze({ kind: 'failed', failure: 'server-error' });
const PROTOCOL: HeadVerdict = Object.freeze({ kind: 'failed', failure: 'protocol' });
