/** The file that `spillway keys` writes: hashes of keys, by tenant. The secret itself is shown once and never stored. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { RESERVED_TENANT, type TenantInput } from '../../core/config/index.ts';
import { sha256Hex } from './digest.ts';
import { writePrivateFile } from './private-file.ts';

export interface StoredKey {
  readonly id: string;
  readonly tenant: string;
  readonly sha256: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** For a tenant that the configuration does not name. */
  readonly classCeiling?: string;
}

/** Keys in one file; more belong in a real identity provider. */
export const KEYS_MAX = 10_000;
const KEYS_FILE_BYTES_MAX = 8 * 1024 * 1024;
/** 24 random bytes: far beyond guessing, short enough to paste. */
const SECRET_BYTES = 24;
const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

export type KeysRead =
  | { readonly kind: 'keys'; readonly keys: readonly StoredKey[] }
  | { readonly kind: 'refused'; readonly rule: string };

/** A file that does not exist holds no keys. */
export function readKeysFile(path: string): KeysRead {
  let text: string;
  try {
    if (statSync(path).size > KEYS_FILE_BYTES_MAX) {
      return { kind: 'refused', rule: `Expected a file of at most ${KEYS_FILE_BYTES_MAX} bytes` };
    }
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    return code === 'ENOENT'
      ? { kind: 'keys', keys: [] }
      : { kind: 'refused', rule: `Expected a readable file (${code})` };
  }
  return parseKeys(text);
}

function parseKeys(text: string): KeysRead {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return { kind: 'refused', rule: 'Expected JSON as written by `spillway keys create`' };
  }
  const keys: unknown = isRecord(parsed) ? parsed['keys'] : undefined;
  if (!Array.isArray(keys) || !keys.every(isStoredKey)) {
    return {
      kind: 'refused',
      rule: 'Expected {"keys": [{id, tenant, sha256, createdAt}]} as written by `spillway keys create`',
    };
  }
  if (keys.length > KEYS_MAX) return { kind: 'refused', rule: `Expected at most ${KEYS_MAX} keys` };
  return { kind: 'keys', keys };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === 'object';
}

function isStoredKey(value: unknown): value is StoredKey {
  if (!isRecord(value)) return false;
  const { id, tenant, sha256, createdAt, classCeiling } = value;
  const isText = [id, tenant, sha256, createdAt].every((field) => typeof field === 'string');
  return isText && (classCeiling === undefined || typeof classCeiling === 'string');
}

function writeKeysFile(path: string, keys: readonly StoredKey[]): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writePrivateFile(path, `${JSON.stringify({ keys }, undefined, 2)}\n`);
}

export type KeyCreated =
  | { readonly kind: 'created'; readonly key: StoredKey /** Shown once. */; readonly secret: string }
  | { readonly kind: 'refused'; readonly rule: string };

export interface KeyRequest {
  readonly tenant: string;
  /** Absent: made from the tenant and random digits. */
  readonly id?: string;
  readonly classCeiling?: string;
  /** ISO 8601, from the caller's clock. */
  readonly createdAt: string;
}

export function createKey(path: string, request: KeyRequest): KeyCreated {
  const read = readKeysFile(path);
  if (read.kind === 'refused') return read;
  const id = request.id ?? `${request.tenant}-${randomBytes(4).toString('hex')}`;
  for (const name of [request.tenant, id]) {
    if (!ID.test(name))
      return {
        kind: 'refused',
        rule: `Expected letters, digits, . _ : and -, at most 128 (received ${JSON.stringify(name)})`,
      };
  }
  if (request.tenant === RESERVED_TENANT) {
    return {
      kind: 'refused',
      rule: `Expected another tenant; ${RESERVED_TENANT} is what metrics call all the rest`,
    };
  }
  if (read.keys.some((key) => key.id === id))
    return { kind: 'refused', rule: `Expected a new key id; ${id} exists` };
  if (read.keys.length >= KEYS_MAX)
    return { kind: 'refused', rule: `Expected at most ${KEYS_MAX} keys in one file` };
  const secret = `sk-spillway-${randomBytes(SECRET_BYTES).toString('base64url')}`;
  const { tenant, createdAt, classCeiling } = request;
  const key = {
    id,
    tenant,
    sha256: sha256Hex(secret),
    createdAt,
    ...(classCeiling === undefined ? {} : { classCeiling }),
  };
  writeKeysFile(path, [...read.keys, key]);
  return { kind: 'created', key, secret };
}

export type KeyRevoked =
  | { readonly kind: 'revoked' }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly rule: string };

export function revokeKey(path: string, id: string): KeyRevoked {
  const read = readKeysFile(path);
  if (read.kind === 'refused') return read;
  const rest = read.keys.filter((key) => key.id !== id);
  if (rest.length === read.keys.length) return { kind: 'unknown' };
  writeKeysFile(path, rest);
  return { kind: 'revoked' };
}

/** Adds the stored keys to the tenants of the configuration; a tenant that is only in the keys file comes last. */
export function mergeKeys(
  tenants: readonly (TenantInput | undefined)[],
  keys: readonly StoredKey[],
): readonly (TenantInput | undefined)[] {
  if (keys.length === 0) return tenants;
  const byTenant = Map.groupBy(keys, (key) => key.tenant);
  const merged = tenants.map((tenant) => {
    const own = tenant === undefined ? undefined : byTenant.get(tenant.id);
    if (tenant === undefined || own === undefined) return tenant;
    byTenant.delete(tenant.id);
    return { ...tenant, keys: [...(tenant.keys ?? []), ...own.map(toKeyConfig)] };
  });
  const others = [...byTenant].map(([id, own]): TenantInput => {
    const ceiling = own.find((key) => key.classCeiling !== undefined)?.classCeiling;
    return { id, keys: own.map(toKeyConfig), ...(ceiling === undefined ? {} : { classCeiling: ceiling }) };
  });
  return [...merged, ...others];
}

function toKeyConfig(key: StoredKey): { id: string; sha256: string } {
  return { id: key.id, sha256: key.sha256 };
}
