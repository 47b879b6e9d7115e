/**
 * Tokens for beacons: each answer carries one, and who has it may tell once what a user saw of that answer.
 *
 *   id ~ class ~ tenant's tag ~ received ~ expires ~ HMAC of all before
 *
 * It is bound to the request and its tenant, without naming the tenant to whoever reads the page. The key is made at start
 * and never leaves the process: tokens of another process, or from before a restart, are forged ones here. Instants are
 * milliseconds of the monotonic clock.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { ClassName, DurationMs, MonoUs } from '../../base/units.ts';

const KEY_BYTES = 32;
const MAC_BYTES = 16;
const TAG_BYTES = 6;
const RADIX = 36;
const TOKEN_CHARS_MAX = 256;
/** Tags that are kept; beyond them they are worked out again. */
const TAGS_MAX = 1_024;
const SHAPE = /^([\w.-]{1,64})~([a-z0-9_-]{1,32})~([\w-]{8})~([0-9a-z]{1,11})~([0-9a-z]{1,11})~([\w-]{22})$/;

export interface BeaconSubject {
  readonly publicId: string;
  readonly className: ClassName;
  readonly tenant: string;
  readonly receivedAt: MonoUs;
}

/** What a good token says. */
export interface ReadToken {
  readonly publicId: string;
  readonly className: ClassName;
  /** Tells tenants apart; not their name. */
  readonly tenantTag: string;
  readonly receivedAt: MonoUs;
}

export type TokenVerdict =
  | { readonly kind: 'good'; readonly token: ReadToken }
  | { readonly kind: 'forged' }
  | { readonly kind: 'expired' };

export class BeaconTokens {
  readonly #key: Buffer = randomBytes(KEY_BYTES);
  readonly #tags: Map<string, string> = new Map();

  issue({ publicId, className, tenant, receivedAt }: BeaconSubject, now: MonoUs, ttlMs: DurationMs): string {
    const received = inMs(receivedAt).toString(RADIX);
    const expires = (inMs(now) + ttlMs).toString(RADIX);
    const said = `${publicId}~${className}~${this.#tagOf(tenant)}~${received}~${expires}`;
    return `${said}~${this.#mac(said).toString('base64url')}`;
  }

  read(text: string, now: MonoUs): TokenVerdict {
    const match = text.length > TOKEN_CHARS_MAX ? null : SHAPE.exec(text);
    if (match === null) return { kind: 'forged' };
    const [, publicId = '', className = '', tenantTag = '', received = '', expires = '', mac = ''] = match;
    const said = text.slice(0, text.length - mac.length - 1);
    const given = Buffer.from(mac, 'base64url');
    if (given.length !== MAC_BYTES || !timingSafeEqual(given, this.#mac(said))) return { kind: 'forged' };
    if (inMs(now) > Number.parseInt(expires, RADIX)) return { kind: 'expired' };
    const receivedAt = Number.parseInt(received, RADIX) * 1_000;
    return { kind: 'good', token: { publicId, className, tenantTag, receivedAt } };
  }

  #mac(said: string): Buffer {
    return createHmac('sha256', this.#key).update(said).digest().subarray(0, MAC_BYTES);
  }

  #tagOf(tenant: string): string {
    const known = this.#tags.get(tenant);
    if (known !== undefined) return known;
    const digest = createHmac('sha256', this.#key).update('tenant\n').update(tenant).digest();
    const tag = digest.subarray(0, TAG_BYTES).toString('base64url');
    if (this.#tags.size >= TAGS_MAX) this.#tags.clear();
    this.#tags.set(tenant, tag);
    return tag;
  }
}

function inMs(us: MonoUs): number {
  return Math.floor(us / 1_000);
}
