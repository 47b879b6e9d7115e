/**
 * Protection of a gateway without keys. It serves this machine alone, so a web page must not be able to reach it
 * through the browser of somebody who runs it: neither by a foreign `Origin` nor by a name that resolves to 127.0.0.1
 * (DNS rebinding). Non-loopback peers are refused as well, in case a reload took the keys away under a wide listener.
 */
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const LOOPBACK_PEERS: ReadonlySet<string> = new Set(['127.0.0.1', '::1', '::ffff:127.0.0.1']);

export interface GuardedPeer {
  readonly host: string;
  readonly origin: string;
  readonly remoteAddress: string | undefined;
}

/** The rule that was broken, or '' when the request may go on. */
export function keylessRefusal(peer: GuardedPeer): string {
  if (peer.remoteAddress === undefined || !LOOPBACK_PEERS.has(peer.remoteAddress)) {
    return 'without configured keys only this machine is served';
  }
  if (!LOOPBACK_NAMES.has(hostName(peer.host))) {
    return 'without configured keys the Host header must be localhost or a loopback address';
  }
  if (peer.origin !== '' && !isLoopbackOrigin(peer.origin)) {
    return 'without configured keys the Origin must be this machine';
  }
  return '';
}

function hostName(host: string): string {
  const end = host.startsWith('[') ? host.indexOf(']') + 1 : host.indexOf(':');
  return (end > 0 ? host.slice(0, end) : host).toLowerCase();
}

function isLoopbackOrigin(origin: string): boolean {
  const match = /^https?:\/\/([^/]+)$/i.exec(origin);
  return match !== null && LOOPBACK_NAMES.has(hostName(match[1] as string));
}

/** Where a server without keys listens, whatever the configuration says. */
export const KEYLESS_BIND_HOST = '127.0.0.1';
