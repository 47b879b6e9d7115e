/** Rules for where traces go and whose beacons are taken. */
import type { Issues } from './check.ts';
import { checkHeaders } from './check-headers.ts';
import type { ConfigInput } from './input.ts';
import { parseNodeUrl } from './node-url.ts';

/** Pages that belong to one gateway. */
const ORIGINS_MAX = 64;
/** Headers of one export. */
const HEADERS_MAX = 32;
const ORIGIN = /^https?:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?$/;
const SERVICE_NAME = /^[\x21-\x7e]{1,128}$/;

export function checkSeeing({ tracing, rum }: ConfigInput, issues: Issues): void {
  if (tracing !== undefined) checkTracing(tracing, issues);
  const origins = rum?.originsAllowed ?? [];
  if (origins.length > ORIGINS_MAX)
    issues.add(['rum', 'originsAllowed'], `Expected at most ${ORIGINS_MAX} entries`, origins);
  origins.forEach((origin, i) => {
    const rule = 'Expected http:// or https://, a host in lower case, and optionally a port';
    if (!ORIGIN.test(origin)) issues.add(['rum', 'originsAllowed', i], rule, origin);
  });
}

function checkTracing(tracing: NonNullable<ConfigInput['tracing']>, issues: Issues): void {
  const { endpoint, serviceName, headers = {} } = tracing;
  const parsed = endpoint === undefined ? undefined : parseNodeUrl(endpoint);
  if (parsed?.kind === 'refused') issues.add(['tracing', 'endpoint'], parsed.rule, parsed.received);
  if (serviceName !== undefined && !SERVICE_NAME.test(serviceName))
    issues.add(['tracing', 'serviceName'], 'Expected 1 to 128 visible ASCII characters', serviceName);
  if (Object.keys(headers).length > HEADERS_MAX)
    issues.add(['tracing', 'headers'], `Expected at most ${HEADERS_MAX} entries`, headers);
  checkHeaders(headers, ['tracing', 'headers'], issues);
}
