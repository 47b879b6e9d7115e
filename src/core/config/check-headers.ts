/** Rules for a header that the configuration adds to requests of ours. */
import type { Issues } from './check.ts';

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Headers that the transport itself sets. */
const RESERVED_HEADERS: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'expect',
]);

export function checkHeaders(
  headers: Readonly<Record<string, string>>,
  at: readonly (string | number)[],
  issues: Issues,
): void {
  for (const [name, value] of Object.entries(headers)) {
    const path = [...at, name];
    if (!HEADER_NAME.test(name)) issues.add(path, 'Expected a header name (RFC 9110 token)', name);
    else if (RESERVED_HEADERS.has(name.toLowerCase()))
      issues.add(path, 'This header is set by the gateway itself', name);
    if (!HEADER_VALUE.test(value))
      issues.add(path, 'Expected a header value without line breaks or control characters');
  }
}
