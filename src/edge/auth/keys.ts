/**
 * Who is asking. Keys are held as SHA-256 only; a request's key is hashed once (about 2 µs) and looked up by digest,
 * so neither the lookup nor the final comparison in constant time depends on how much of a secret was guessed.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { ClassName, TenantId } from '../../base/units.ts';
import type { GatewayConfig } from '../../core/config/types.ts';

/** Longer is not a key of ours; it is not hashed. */
const KEY_LENGTH_MAX = 512;

/** What the data plane needs to know of a tenant, with classes as positions (0 is the most important). */
export interface Tenant {
  readonly id: TenantId;
  readonly ceiling: number;
  readonly defaultClass: number;
  readonly nodeVisible: boolean;
  /** Shares remembered answers with those of the same pool; with nobody when absent. */
  readonly cachePool?: string;
}

/** The identity rules of one configuration; a reload builds another. */
export interface Identity {
  /** No keys are configured: everybody on this machine is `anonymous`. */
  readonly isKeyless: boolean;
  readonly classNames: readonly ClassName[];
  /** The tenant behind the credentials, or undefined when they are missing or wrong. */
  identify(authorization: string, apiKey: string): Tenant | undefined;
}

export function createIdentity(config: GatewayConfig): Identity {
  const classNames = config.scheduler.classes.map((row) => row.name);
  const fallbackClass = Math.max(0, classNames.indexOf(config.scheduler.defaultClass));
  const byDigest = indexKeys(config, classNames, fallbackClass);
  const isKeyless = byDigest.size === 0;
  const anonymous: Tenant = { id: 'anonymous', ceiling: 0, defaultClass: fallbackClass, nodeVisible: true };
  return {
    isKeyless,
    classNames,
    identify(authorization: string, apiKey: string): Tenant | undefined {
      if (isKeyless) return anonymous;
      const secret = bearerToken(authorization) || apiKey;
      if (secret === '' || secret.length > KEY_LENGTH_MAX) return undefined;
      const digest = hash('sha256', secret, 'hex');
      const entry = byDigest.get(digest);
      if (entry === undefined) return undefined;
      return timingSafeEqual(entry.digest, Buffer.from(digest, 'latin1')) ? entry.tenant : undefined;
    },
  };
}

interface KeyEntry {
  readonly digest: Buffer;
  readonly tenant: Tenant;
}

function indexKeys(
  config: GatewayConfig,
  classNames: readonly ClassName[],
  fallbackClass: number,
): ReadonlyMap<string, KeyEntry> {
  const index = new Map<string, KeyEntry>();
  for (const row of config.tenants) {
    // A class that a reload removed must not lift anybody: an unknown ceiling is the default class.
    const ceiling = classNames.indexOf(row.classCeiling);
    const wished = classNames.indexOf(row.classDefault);
    const ceilingIndex = ceiling < 0 ? fallbackClass : ceiling;
    const tenant: Tenant = {
      id: row.id,
      ceiling: ceilingIndex,
      defaultClass: Math.max(ceilingIndex, wished < 0 ? fallbackClass : wished),
      nodeVisible: row.nodeVisible,
      ...(row.cachePool === undefined ? {} : { cachePool: row.cachePool }),
    };
    for (const key of row.keys) {
      const digest = key.sha256.toLowerCase();
      index.set(digest, { digest: Buffer.from(digest, 'latin1'), tenant });
    }
  }
  return index;
}

/** The token of `Bearer TOKEN`, or ''. */
function bearerToken(authorization: string): string {
  if (authorization.length < 8 || authorization.charCodeAt(6) !== 0x20) return '';
  return authorization.slice(0, 6).toLowerCase() === 'bearer' ? authorization.slice(7).trim() : '';
}
