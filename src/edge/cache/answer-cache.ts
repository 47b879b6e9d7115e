/**
 * Remembered answers: least recently used first out, bounded by bytes in all, bytes each, and age.
 *
 * Counted against the one bound are answers that are held, answers that are being recorded while they pass through, and
 * those that a waiting request has pinned: what was promised to a request when it came is there when it is needed. A
 * pinned answer does not leave, so where all are pinned nothing new is remembered.
 *
 *   record ──add…──► keep ──► held ──pin──► pinned ──unpin──► held ──► replaced, out of room, or cleared
 *              └──► drop
 */
import type { Bytes, MonoUs } from '../../base/units.ts';
import type { CacheConfig } from '../../core/config/types.ts';

/** Of one entry beside its body: key, type, links. */
const ENTRY_BYTES = 512;
/** Entries that are looked at to make room for one; beyond it the new one is not remembered. */
const LOOKED_AT_MAX = 64;

export interface CachedAnswer {
  readonly key: string;
  readonly endpoint: string;
  readonly contentType: string;
  readonly body: Buffer;
  readonly storedAt: MonoUs;
}

interface Entry extends CachedAnswer {
  pins: number;
  isHeld: boolean;
}

/** An answer on its way through. Ends by `keep` or `drop`, once. */
export interface Recording {
  add(part: Uint8Array): void;
  keep(contentType: string): void;
  drop(): void;
}

export interface AnswerCacheOptions {
  readonly config: () => CacheConfig;
  readonly now: () => MonoUs;
  /** A fresh answer to a request that is remembered; one of so many is told. */
  readonly compare: (remembered: CachedAnswer, fresh: CachedAnswer) => void;
}

export class AnswerCache {
  readonly #options: AnswerCacheOptions;
  /** The least recently used first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  #fresh = 0;

  constructor(options: AnswerCacheOptions) {
    this.#options = options;
  }

  /** Held, pinned and being recorded. */
  get bytes(): Bytes {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The remembered answer, unless it is too old. */
  find(key: string): CachedAnswer | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || this.#options.now() - entry.storedAt > this.#options.config().ttlMs * 1_000) {
      return undefined;
    }
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry;
  }

  /** Keeps the answer until it is unpinned. Once per use. */
  pin(answer: CachedAnswer): void {
    (answer as Entry).pins += 1;
  }

  unpin(answer: CachedAnswer): void {
    const entry = answer as Entry;
    entry.pins -= 1;
    if (entry.pins === 0 && !entry.isHeld) this.#bytes -= sizeOf(entry.body.length);
  }

  record(key: string, endpoint: string): Recording {
    let parts: Uint8Array[] | undefined = [];
    let length = 0;
    const drop = (): void => {
      if (parts === undefined) return;
      parts = undefined;
      this.#bytes -= length;
    };
    return {
      add: (part) => {
        if (parts === undefined) return;
        const isRoom =
          sizeOf(length + part.length) <= this.#options.config().entryBytesMax && this.#makeRoom(part.length);
        if (!isRoom) return drop();
        // A copy: a part may be a view of a buffer many times its size.
        parts.push(Uint8Array.from(part));
        length += part.length;
        this.#bytes += part.length;
      },
      keep: (contentType) => {
        if (parts === undefined) return;
        const body = Buffer.concat(parts);
        drop();
        this.#hold({
          key,
          endpoint,
          contentType,
          body,
          storedAt: this.#options.now(),
          pins: 0,
          isHeld: true,
        });
      },
      drop,
    };
  }

  clear(): void {
    for (const entry of this.#entries.values()) this.#release(entry);
  }

  #hold(entry: Entry): void {
    const known = this.#entries.get(entry.key);
    if (known !== undefined) {
      this.#fresh += 1;
      if (this.#fresh % this.#options.config().compareEvery === 0) {
        this.#options.compare(known, entry);
      }
      this.#release(known);
    }
    const size = sizeOf(entry.body.length);
    if (!this.#makeRoom(size)) return;
    this.#bytes += size;
    this.#entries.set(entry.key, entry);
  }

  /** Lets the least recently used go until so many bytes more fit. */
  #makeRoom(bytes: Bytes): boolean {
    const { bytesMax } = this.#options.config();
    let looked = 0;
    for (const entry of this.#entries.values()) {
      if (this.#bytes + bytes <= bytesMax || looked === LOOKED_AT_MAX) break;
      looked += 1;
      if (entry.pins === 0) this.#release(entry);
    }
    return this.#bytes + bytes <= bytesMax;
  }

  /** No longer to be found. Its bytes count until nobody has it pinned. */
  #release(entry: Entry): void {
    this.#entries.delete(entry.key);
    entry.isHeld = false;
    if (entry.pins === 0) this.#bytes -= sizeOf(entry.body.length);
  }
}

/** The header `age` of an answer that is given again: whole seconds. */
export function ageText(storedAt: MonoUs, now: MonoUs): string {
  return String(Math.max(0, Math.floor((now - storedAt) / 1e6)));
}

function sizeOf(length: Bytes): Bytes {
  return length + ENTRY_BYTES;
}
