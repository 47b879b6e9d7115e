/** Listening, with errors that say what to do. */
import type { AddressInfo } from 'node:net';
import type { ServerConfig } from '../../core/config/index.ts';
import { StartError } from './state-folder.ts';

const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the port is in use; stop what uses it, or name another one with --port',
  EACCES: 'this user may not use the port; name one above 1023 with --port',
  EADDRNOTAVAIL: 'this machine does not have the address; name another one with --host',
  ENOTFOUND: 'the host name is unknown; name another one with --host',
};

export async function listenOn(
  listen: () => Promise<AddressInfo>,
  host: string,
  port: number,
): Promise<AddressInfo> {
  try {
    return await listen();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new StartError(`Cannot listen on ${host}:${port}: ${ADVICE[code] ?? (code || String(error))}`);
  }
}

/** An address that a client on this machine can use. */
export function urlOf(address: AddressInfo, server: Pick<ServerConfig, 'tls'>): string {
  const isWildcard = address.address === '0.0.0.0' || address.address === '::';
  const host = isWildcard
    ? '127.0.0.1'
    : address.family === 'IPv6'
      ? `[${address.address}]`
      : address.address;
  return `${server.tls === undefined ? 'http' : 'https'}://${host}:${address.port}`;
}
