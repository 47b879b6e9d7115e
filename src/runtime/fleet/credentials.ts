/** A node's own credential: 32 random bytes, shown once; only their SHA-256 is kept. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const CREDENTIAL_BYTES = 32;
/** Longer strings are not worth hashing. */
const CREDENTIAL_CHARS_MAX = 256;

export function createCredential(): string {
  return randomBytes(CREDENTIAL_BYTES).toString('base64url');
}

export function hashCredential(credential: string): string {
  return createHash('sha256').update(credential).digest('hex');
}

/** False for nodes that have no credential: nothing proves ownership of those. */
export function ownsCredential(bearer: string, sha256: string): boolean {
  if (sha256 === '' || bearer === '' || bearer.length > CREDENTIAL_CHARS_MAX) return false;
  const given = Buffer.from(hashCredential(bearer), 'hex');
  const kept = Buffer.from(sha256, 'hex');
  return given.length === kept.length && timingSafeEqual(given, kept);
}
