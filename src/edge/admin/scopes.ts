/**
 * Who may call what on the admin plane. Tokens are held as digests and compared in constant time; a longer string than
 * any token of ours is not even hashed.
 *
 *   admin    everything        metrics  /metrics alone        join  registering new nodes
 *
 * A node's own credential is not a scope: the gateway checks it against the node's id.
 */
import { hash, timingSafeEqual } from 'node:crypto';

export type Scope = 'admin' | 'metrics' | 'join';

/** SHA-256 of each token in lower-case hexadecimal; a scope without a token is open to the admin token alone. */
export interface ScopeDigests {
  readonly admin: string;
  readonly metrics?: string;
  readonly join?: string;
}

const TOKEN_CHARS_MAX = 512;

export interface Scopes {
  /** Whether the bearer has the scope itself or the admin token. */
  allows(bearer: string, scope: Scope): boolean;
}

export function createScopes(digests: ScopeDigests): Scopes {
  const known = new Map<Scope, Buffer>();
  for (const [scope, digest] of Object.entries(digests) as [Scope, string][]) {
    known.set(scope, Buffer.from(digest, 'latin1'));
  }
  const matches = (digest: Buffer, scope: Scope): boolean => {
    const expected = known.get(scope);
    return expected !== undefined && expected.length === digest.length && timingSafeEqual(expected, digest);
  };
  return {
    allows(bearer, scope) {
      if (bearer === '' || bearer.length > TOKEN_CHARS_MAX) return false;
      const digest = Buffer.from(hash('sha256', bearer, 'hex'), 'latin1');
      const isAdmin = matches(digest, 'admin');
      return matches(digest, scope) || isAdmin;
    },
  };
}

/** The token of `Bearer TOKEN`, or ''. */
export function bearerOf(authorization: string | undefined): string {
  const match = /^bearer +([^\s]+) *$/i.exec(authorization ?? '');
  return match?.[1] ?? '';
}
