/**
 * Bodies that come again after their request ended badly: clients that try again, whether they say so or not. Looked for
 * only while something ended badly lately, and only among small bodies, since each look costs a checksum of the body.
 *
 * A table of places by checksum, since a refusal may cost next to nothing: who falls on the same place takes it over.
 */
import type { Bytes, DurationUs, MonoUs } from '../../base/units.ts';

/** Larger bodies are not looked at. */
export const REPEAT_BYTES_MAX: Bytes = 4_096;
/** Remembered bodies; a power of two. */
export const REPEAT_PLACES = 4_096;
export const REPEAT_US_MAX: DurationUs = 60_000_000;

export interface Repeatable {
  readonly bytes: Bytes;
  /** Of the body, 32 bits. Worked out when it is read. */
  readonly checksum: number;
}

export class RepeatWatch {
  readonly #checksums: Uint32Array = new Uint32Array(REPEAT_PLACES);
  readonly #endedAt: Float64Array = new Float64Array(REPEAT_PLACES).fill(Number.NEGATIVE_INFINITY);
  #lastAt: MonoUs = Number.NEGATIVE_INFINITY;

  /** Whether this body ended badly within the last minute. */
  isRepeat(request: Repeatable, now: MonoUs): boolean {
    if (now - this.#lastAt > REPEAT_US_MAX || request.bytes > REPEAT_BYTES_MAX) return false;
    const { checksum } = request;
    const place = checksum % REPEAT_PLACES;
    return this.#checksums[place] === checksum && now - (this.#endedAt[place] as number) <= REPEAT_US_MAX;
  }

  endedBadly(request: Repeatable, now: MonoUs): void {
    if (request.bytes > REPEAT_BYTES_MAX) return;
    const { checksum } = request;
    const place = checksum % REPEAT_PLACES;
    this.#checksums[place] = checksum;
    this.#endedAt[place] = now;
    this.#lastAt = now;
  }
}
