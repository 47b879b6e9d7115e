/**
 * Which URLs a node may have. A gateway fetches what it is told to fetch, so a registration must not be able to
 * point it at a cloud's metadata service or at link-local neighbours (server-side request forgery).
 *
 * Addresses are compared as numbers after the URL parser has normalised them, so that octal, decimal, mapped and
 * translated spellings of a forbidden address are the same address.
 */
import { BlockList, isIP } from 'node:net';

export type UrlVerdict =
  | {
      readonly kind: 'accepted' /** Without a trailing slash or `/v1`. */;
      readonly url: string;
      readonly host: string;
    }
  | { readonly kind: 'refused'; readonly rule: string };

/** Resolves a name to all its addresses; rejects when there is none. */
export type NameResolver = (host: string) => Promise<readonly string[]>;

const URL_CHARS_MAX = 2_048;

/** Names under which clouds serve machine credentials. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'instance-data',
  'instance-data.ec2.internal',
]);

const METADATA = new BlockList();
METADATA.addAddress('169.254.169.254'); // most clouds
METADATA.addAddress('169.254.170.2'); // container credentials
METADATA.addAddress('100.100.100.200');
METADATA.addAddress('192.0.0.192');
METADATA.addAddress('168.63.129.16');
METADATA.addAddress('fd00:ec2::254', 'ipv6');
METADATA.addAddress('fd20:ce::254', 'ipv6');

const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet('169.254.0.0', 16);
LINK_LOCAL.addSubnet('fe80::', 10, 'ipv6');

/** Addresses that no node can have. */
const NOT_UNICAST = new BlockList();
NOT_UNICAST.addSubnet('0.0.0.0', 8);
NOT_UNICAST.addSubnet('224.0.0.0', 3);
NOT_UNICAST.addAddress('::', 'ipv6');
NOT_UNICAST.addSubnet('ff00::', 8, 'ipv6');

/** Rule that forbids this address, or ''. */
export function addressRule(address: string): string {
  const plain = unmapped(address);
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
  if (METADATA.check(plain, family)) return 'metadata-address';
  if (LINK_LOCAL.check(plain, family)) return 'link-local-address';
  if (NOT_UNICAST.check(plain, family)) return 'not-a-unicast-address';
  return '';
}

/** Checks everything that can be checked without asking a name server. */
export function checkNodeUrl(text: string): UrlVerdict {
  if (text.length > URL_CHARS_MAX) return refused('url-too-long');
  if (!URL.canParse(text)) return refused('url-malformed');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return refused('scheme-not-http');
  if (url.username !== '' || url.password !== '') return refused('credentials-in-url');
  if (url.port === '0') return refused('port-zero');
  if (url.search !== '' || url.hash !== '') return refused('query-in-url');
  const host = hostOf(url);
  if (METADATA_NAMES.has(host)) return refused('metadata-name');
  const rule = isIP(host) === 0 ? '' : addressRule(host);
  if (rule !== '') return refused(rule);
  return { kind: 'accepted', url: url.origin + basePath(url), host };
}

/** As `checkNodeUrl`, and every address that a name stands for is checked as well. */
export async function checkNodeUrlResolved(text: string, resolve: NameResolver): Promise<UrlVerdict> {
  const verdict = checkNodeUrl(text);
  if (verdict.kind === 'refused' || isIP(verdict.host) !== 0) return verdict;
  let addresses: readonly string[];
  try {
    addresses = await resolve(verdict.host);
  } catch {
    return refused('name-unresolved');
  }
  if (addresses.length === 0) return refused('name-unresolved');
  for (const address of addresses) {
    const rule = addressRule(address);
    if (rule !== '') return refused(rule);
  }
  return verdict;
}

function refused(rule: string): UrlVerdict {
  return { kind: 'refused', rule };
}

function hostOf(url: URL): string {
  const bare = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  return bare.toLowerCase().replace(/\.+$/, '');
}

/** People paste the OpenAI base URL; requests carry `/v1` themselves. */
function basePath(url: URL): string {
  return url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '');
}

/** The IPv4 address inside a mapped (::ffff:0:0/96) or translated (64:ff9b::/96) one, else the address itself. */
function unmapped(address: string): string {
  const tail = /^(?:::ffff:|64:ff9b::)(?:(\d+\.\d+\.\d+\.\d+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(
    address,
  );
  if (tail === null) return address;
  if (tail[1] !== undefined) return tail[1];
  const high = Number.parseInt(tail[2] as string, 16);
  const low = Number.parseInt(tail[3] as string, 16);
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}
