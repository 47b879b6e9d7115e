/** Addresses of nodes: scheme, host, port, base path. Parsed by hand because core knows no platform. */

export type NodeUrl =
  | {
      readonly kind: 'url';
      readonly url: string /** `host:port`, and the base path with - for /. */;
      readonly id: string;
    }
  | {
      readonly kind: 'refused';
      readonly rule: string /** Without credentials. */;
      readonly received: string;
    };

const URL_SHAPE = /^(https?):\/\/(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?(\/[!-~]*)?$/;
const URL_CHARS_MAX = 2_048;

/** Accepts `http://host[:port][/base]`; refuses credentials, queries and fragments, which would leak or be lost. */
export function parseNodeUrl(text: string): NodeUrl {
  if (text.length > URL_CHARS_MAX)
    return refused(`Expected a URL of at most ${URL_CHARS_MAX} characters`, '');
  if (/^[a-z]+:\/\/[^/?#]*@/i.test(text)) {
    return refused('Expected no user name or password in the URL; give the key of the node as key', '');
  }
  if (/[?#]/.test(text)) return refused('Expected a URL without query and fragment', text);
  const match = URL_SHAPE.exec(text);
  if (match === null)
    return refused('Expected http:// or https://, a host, and optionally a port and a base path', text);
  const [, scheme = '', host = '', port, path = ''] = match;
  if (port !== undefined && (Number(port) < 1 || Number(port) > 65_535)) {
    return refused('Expected a port from 1 to 65535', text);
  }
  // People paste the base URL of an SDK; requests carry /v1 themselves.
  const base = path.replace(/\/+$/, '').replace(/\/v1$/, '');
  const id = `${host.replace(/[[\]]/g, '')}:${port ?? (scheme === 'https' ? '443' : '80')}${base.replace(/[^A-Za-z0-9._-]+/g, '-')}`;
  return {
    kind: 'url',
    url: `${scheme}://${host}${port === undefined ? '' : `:${port}`}${base}`,
    id: id.replace(/^[^A-Za-z0-9]+/, '').slice(0, 128),
  };
}

function refused(rule: string, received: string): NodeUrl {
  return { kind: 'refused', rule, received };
}
