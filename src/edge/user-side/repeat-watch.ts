/**
 * Bodies that come again after their request ended badly: clients that try again, whether they say so or not. Looked for
 * only while something ended badly lately, and only among small bodies, since each look costs a checksum of the body.
 */
import type { Bytes, DurationUs, MonoUs } from '../../base/units.ts';

/** Larger bodies are not looked at. */
export const REPEAT_BYTES_MAX: Bytes = 4_096;
/** Remembered bodies; the oldest is forgotten. */
export const REPEAT_MARKS_MAX = 4_096;
export const REPEAT_US_MAX: DurationUs = 60_000_000;

interface Repeatable {
  readonly bytes: Bytes;
  /** Worked out when it is read. */
  readonly fingerprint: string;
}

export class RepeatWatch {
  /** When each body ended badly, the oldest first. */
  readonly #marks: Map<string, MonoUs> = new Map();

  /** Whether this body ended badly within the last minute. */
  isRepeat(request: Repeatable, now: MonoUs): boolean {
    this.#forget(now);
    if (this.#marks.size === 0 || request.bytes > REPEAT_BYTES_MAX) return false;
    return this.#marks.has(request.fingerprint);
  }

  endedBadly(request: Repeatable, now: MonoUs): void {
    if (request.bytes > REPEAT_BYTES_MAX) return;
    const { fingerprint } = request;
    this.#marks.delete(fingerprint);
    this.#marks.set(fingerprint, now);
    if (this.#marks.size <= REPEAT_MARKS_MAX) return;
    const oldest = this.#marks.keys().next();
    if (!oldest.done) this.#marks.delete(oldest.value);
  }

  #forget(now: MonoUs): void {
    for (const [fingerprint, at] of this.#marks) {
      if (now - at <= REPEAT_US_MAX) return;
      this.#marks.delete(fingerprint);
    }
  }
}
