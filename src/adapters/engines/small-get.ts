/**
 * A small GET to an engine: its health page, its models, its load. Bounded in size and time, never follows a
 * redirect, opens a connection of its own so that a probe tells about the engine and not about an old socket.
 */
import { readFileSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { type RequestOptions, request as requestHttps } from 'node:https';
import type { NodeTlsConfig } from '../../core/config/types.ts';
import type { NodeEndpoint } from '../../ports/node-transport.ts';

/** Larger bodies count as not said. */
export const BODY_BYTES_MAX = 1_048_576;

export type SmallAnswer =
  | { readonly kind: 'answer'; readonly status: number; readonly body: string }
  /** Something answered, and the answer cannot be read: still a sign of life. */
  | { readonly kind: 'unreadable'; readonly detail: string }
  /** Nothing answered. `silent`: a connection was made, and then nothing came in time. */
  | { readonly kind: 'nothing'; readonly silent: boolean; readonly detail: string };

/** Never rejects. */
export function smallGet(endpoint: NodeEndpoint, path: string, timeoutMs: number): Promise<SmallAnswer> {
  return new Promise((resolve) => {
    let isConnected = false;
    let hasHead = false;
    const opened: { request?: ReturnType<typeof requestHttp> | undefined } = {};
    const finish = (answer: SmallAnswer): void => {
      clearTimeout(timer);
      resolve(answer);
      opened.request?.destroy();
    };
    const timer = setTimeout(() => {
      const detail = `no answer to ${path} in ${timeoutMs} ms`;
      finish(hasHead ? { kind: 'unreadable', detail } : { kind: 'nothing', silent: isConnected, detail });
    }, timeoutMs);
    const request = open(endpoint, path, finish);
    opened.request = request;
    if (request === undefined) return;
    request.on('socket', (socket) => socket.once('connect', () => (isConnected = true)));
    request.on('response', (response) => {
      hasHead = true;
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > BODY_BYTES_MAX)
          finish({ kind: 'unreadable', detail: `the answer to ${path} is too large` });
        else chunks.push(chunk);
      });
      response.on('end', () =>
        finish({
          kind: 'answer',
          status: response.statusCode ?? 0,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      );
      response.on('error', (error) => finish({ kind: 'unreadable', detail: error.message }));
    });
    request.on('error', (error) =>
      finish(
        hasHead || isProtocolError(error)
          ? { kind: 'unreadable', detail: error.message }
          : { kind: 'nothing', silent: false, detail: error.message },
      ),
    );
    request.end();
  });
}

function open(
  endpoint: NodeEndpoint,
  path: string,
  finish: (answer: SmallAnswer) => void,
): ReturnType<typeof requestHttp> | undefined {
  try {
    const url = new URL(endpoint.url);
    const options: RequestOptions = {
      method: 'GET',
      host: url.hostname.replace(/^\[|\]$/g, ''),
      path: url.pathname.replace(/\/$/, '') + path,
      headers: headersOf(endpoint.headers),
      agent: false,
      ...(url.port === '' ? {} : { port: Number(url.port) }),
    };
    if (url.protocol === 'https:') return requestHttps({ ...options, ...tlsOf(endpoint.tls) });
    return requestHttp(options);
  } catch (thrown) {
    // A bad certificate file or header: the node cannot be reached as it is configured.
    finish({
      kind: 'nothing',
      silent: false,
      detail: thrown instanceof Error ? thrown.message : String(thrown),
    });
    return undefined;
  }
}

function headersOf(flat: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = { accept: '*/*', connection: 'close' };
  for (let i = 0; i + 1 < flat.length; i += 2)
    headers[(flat[i] as string).toLowerCase()] = flat[i + 1] as string;
  return headers;
}

/** Files by path, or PEM text as it is. Read each time, so that a renewed certificate is used. */
function tlsOf(tls: NodeTlsConfig | undefined): { ca?: string; cert?: string; key?: string } {
  const read = (value: string): string =>
    value.includes('-----BEGIN') ? value : readFileSync(value, 'utf8');
  return {
    ...(tls?.ca === undefined ? {} : { ca: read(tls.ca) }),
    ...(tls?.cert === undefined ? {} : { cert: read(tls.cert) }),
    ...(tls?.key === undefined ? {} : { key: read(tls.key) }),
  };
}

/** The HTTP parser's own errors: bytes came, so something lives there. */
function isProtocolError(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('HPE_');
}
