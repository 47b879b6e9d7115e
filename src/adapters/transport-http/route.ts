/** Where a node is, worked out once when it is opened: address, base path, fixed part of each request, certificates. */
import { readFileSync } from 'node:fs';
import type { NodeEndpoint } from '../../ports/node-transport.ts';
import { describeFault } from './faults.ts';

export interface Route {
  readonly host: string;
  readonly port: number;
  /** Without a trailing slash; '' when the endpoint is the root. */
  readonly basePath: string;
  /** Host and the endpoint's own headers, as the lines that they are on the wire. */
  readonly fixedHeaders: string;
  readonly tls: RouteTls | undefined;
}

export interface RouteTls {
  /** Absent for bare addresses, which cannot be asked for by name. */
  readonly servername?: string;
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

const NAME = /^[!#$%&'*+.^_`|~\dA-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Written by the transport itself; a second one would make a request ambiguous. */
const RESERVED: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'connection']);

/** A route, or the reason why the node cannot be reached: a bad URL or header, or an unreadable certificate file. */
export function buildRoute(endpoint: NodeEndpoint): Route | string {
  try {
    const url = new URL(endpoint.url);
    const isTls = url.protocol === 'https:';
    if (!isTls && url.protocol !== 'http:') return `The scheme ${url.protocol} is not http or https`;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    return {
      host,
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      basePath: url.pathname.replace(/\/+$/, ''),
      fixedHeaders: `host: ${url.host}\r\n${headerLines(endpoint.headers)}`,
      tls: isTls ? readTls(endpoint, host) : undefined,
    };
  } catch (error) {
    return describeFault(error);
  }
}

function headerLines(headers: readonly string[]): string {
  let lines = '';
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    // The value may be a secret and is not repeated.
    if (!NAME.test(name) || !VALUE.test(value) || RESERVED.has(name.toLowerCase())) {
      throw new TypeError(`The endpoint's header ${JSON.stringify(name)} cannot be sent`);
    }
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

function readTls(endpoint: NodeEndpoint, host: string): RouteTls {
  const { ca, cert, key } = endpoint.tls ?? {};
  return {
    ...(isAddress(host) ? {} : { servername: host }),
    ...(ca === undefined ? {} : { ca: readFileSync(ca) }),
    ...(cert === undefined ? {} : { cert: readFileSync(cert) }),
    ...(key === undefined ? {} : { key: readFileSync(key) }),
  };
}

function isAddress(host: string): boolean {
  return /^[\d.]+$/.test(host) || host.includes(':');
}
