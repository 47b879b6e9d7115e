/**
 * Which idempotency keys are taken, by whom, and what was answered. Pure: time and sizes come in, nothing is sent.
 *
 *   claim ──► running ──finish──► stored ──ttl, or room for a newer one──► forgotten
 *                │
 *                └──drop: refused, failed, left, or too large──► forgotten at once
 *
 * Bounds: `entriesMax` keys in all, `bytesTotalMax` bytes of answers, those under way included. Room is made by the oldest
 * stored answer; what runs is never pushed out. Where there is no room a request runs without its key being remembered.
 * O(1) each.
 */
import { timingSafeEqual } from 'node:crypto';
import type { Bytes, MonoUs } from '../../base/units.ts';
import type { IdempotencyConfig } from '../../core/config/types.ts';

export type TableLimits = Pick<IdempotencyConfig, 'entriesMax' | 'bytesTotalMax' | 'ttlMs'>;

/** Beside its answer, what an entry takes: key, hash, and places in two tables. */
export const ENTRY_BYTES: Bytes = 512;

export interface Entry<Running, Stored> {
  readonly name: string;
  readonly hash: Uint8Array;
  state: { readonly kind: 'running'; readonly running: Running } | StoredState<Stored>;
  bytes: Bytes;
  expiresAt: MonoUs;
}

interface StoredState<Stored> {
  readonly kind: 'stored';
  readonly stored: Stored;
}

export type Claim<Running, Stored> =
  /** Nobody has it: `take` it, then run. */
  | { readonly kind: 'free' }
  /** The key is taken by another request. */
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'running'; readonly running: Running }
  | { readonly kind: 'stored'; readonly stored: Stored };

/** A class, since its methods share the two orders of the same entries. */
export class IdempotencyTable<Running, Stored> {
  readonly #limits: () => TableLimits;
  readonly #entries: Map<string, Entry<Running, Stored>> = new Map();
  /** Those with an answer, in order of expiry: all live equally long. */
  readonly #stored: Set<Entry<Running, Stored>> = new Set();
  #bytes: Bytes = 0;

  constructor(limits: () => TableLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Of answers, whole and under way, and of what the entries themselves take. */
  get bytes(): Bytes {
    return this.#bytes;
  }

  /** What a key stands for. The hash is compared in time that does not depend on what is in it. */
  look(name: string, hash: Uint8Array, now: MonoUs): Claim<Running, Stored> {
    this.#forgetExpired(now);
    const entry = this.#entries.get(name);
    if (entry === undefined) return { kind: 'free' };
    if (!timingSafeEqual(entry.hash, hash)) return { kind: 'mismatch' };
    return entry.state;
  }

  /** Takes a free key for a request that runs; undefined when there is no room. */
  take(name: string, hash: Uint8Array, running: Running): Entry<Running, Stored> | undefined {
    const { entriesMax } = this.#limits();
    while (this.#entries.size >= entriesMax) if (!this.#forgetOldest()) return undefined;
    const entry: Entry<Running, Stored> = {
      name,
      hash,
      state: { kind: 'running', running },
      bytes: 0,
      expiresAt: Number.POSITIVE_INFINITY,
    };
    if (!this.grow(entry, ENTRY_BYTES)) return undefined;
    this.#entries.set(name, entry);
    return entry;
  }

  /** Counts bytes that an entry holds; false, and nothing counted, when there is no room for them. */
  grow(entry: Entry<Running, Stored>, bytes: Bytes): boolean {
    const { bytesTotalMax } = this.#limits();
    while (this.#bytes + bytes > bytesTotalMax) if (!this.#forgetOldest()) return false;
    entry.bytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  /** The request was answered: whoever comes with its key within the ttl gets the same. */
  finish(entry: Entry<Running, Stored>, stored: Stored, now: MonoUs): void {
    if (this.#entries.get(entry.name) !== entry || entry.state.kind === 'stored') return;
    entry.state = { kind: 'stored', stored };
    entry.expiresAt = now + this.#limits().ttlMs * 1_000;
    this.#stored.add(entry);
  }

  /** The key is free again. Idempotent: it is told by every way in which a request can end. */
  drop(entry: Entry<Running, Stored>): void {
    if (this.#entries.get(entry.name) !== entry) return;
    this.#entries.delete(entry.name);
    this.#stored.delete(entry);
    this.#bytes -= entry.bytes;
    entry.bytes = 0;
  }

  #forgetExpired(now: MonoUs): void {
    for (const entry of this.#stored) {
      if (entry.expiresAt > now) return;
      this.drop(entry);
    }
  }

  #forgetOldest(): boolean {
    const oldest = this.#stored.values().next();
    if (oldest.done === true) return false;
    this.drop(oldest.value);
    return true;
  }
}
