/**
 * Who was refused for overload, and from when on it was told to come back: bodies of one tenant by fingerprint.
 *
 *   refused ──► mark, due at the hint ──comes at the due time or later──► invited, if it did not come before: it did what it was told
 *                     │  ▲
 *                     │  └──comes before──► repeat: the due time stays as it is, and at it one comes as if for the first time
 *                     └──never comes──► expires by itself
 *
 * Who asks every other second comes at the due time by luck. Were it invited, impatient users would have most of what a standing queue
 * is let in, and keep an overload alive after its cause has gone.
 *
 * How many of those who were told a time keep to it is learned here too (`keptRatio`): the wait of the next one depends
 * on how many of those before it will come back.
 *
 * A body that many send at once is no evidence of a repeat: beyond `EARLY_MAX` early arrivals a mark says nothing.
 * Bounded by `RETRY_MARKS_MAX`, the oldest leaves. O(1) each; nothing is allocated but the mark.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';

/** Refusals of two to three minutes at a hundred a second; about 2 MB. */
export const RETRY_MARKS_MAX = 16_384;
/** Official clients try two or three times more; more than this is a body that many send. */
export const EARLY_MAX = 8;
/** After the due time a mark waits half of the hint longer (jitter is a quarter of it, headers are in whole seconds). */
const GRACE_RATIO: Ratio = 0.5;
const GRACE_US_MIN: DurationUs = 5_000_000;
/** Old marks that one call looks at, so that the table empties itself. */
const SWEPT_PER_CALL = 2;
/** About the last thirty ends of marks decide. */
const KEPT_STEP: Ratio = 1 / 32;

/** What a mark tells of an arrival with the same body. */
export type MarkVerdict = 'unknown' | 'early' | 'due';

interface Mark {
  readonly fingerprint: string;
  dueAt: MonoUs;
  expiresAt: MonoUs;
  early: number;
}

export class RetryMarks {
  readonly #marks: Map<string, Mark> = new Map();
  #keptRatio: Ratio = 1;

  get size(): number {
    return this.#marks.size;
  }

  /** Share of those told a time that came back at it and not before. 1 before anything was seen. */
  get keptRatio(): Ratio {
    return this.#keptRatio;
  }

  /** A body was refused and told to come back after `afterUs`. */
  note(fingerprint: string, afterUs: DurationUs, now: MonoUs): void {
    if (fingerprint === '') return;
    this.#sweep(now);
    this.#marks.delete(fingerprint);
    const graceUs = Math.max(GRACE_US_MIN, afterUs * GRACE_RATIO);
    const dueAt = now + afterUs;
    this.#marks.set(fingerprint, { fingerprint, dueAt, expiresAt: dueAt + graceUs, early: 0 });
    if (this.#marks.size <= RETRY_MARKS_MAX) return;
    const oldest = this.#marks.keys().next();
    if (!oldest.done) this.#marks.delete(oldest.value);
  }

  /** Judges an arrival; one at its time uses its mark up. */
  judge(fingerprint: string, now: MonoUs): MarkVerdict {
    this.#sweep(now);
    const mark = this.#live(fingerprint, now);
    if (mark === undefined) return 'unknown';
    if (now >= mark.dueAt) {
      this.#marks.delete(fingerprint);
      const isKept = mark.early === 0;
      this.#learn(isKept ? 1 : 0);
      return isKept ? 'due' : 'unknown';
    }
    mark.early += 1;
    return mark.early > EARLY_MAX ? 'unknown' : 'early';
  }

  /** How long until the body may come back as it was told, or 0 when nothing is known of it. */
  remainingUs(fingerprint: string, now: MonoUs): DurationUs {
    const mark = this.#live(fingerprint, now);
    return mark === undefined || mark.early > EARLY_MAX ? 0 : Math.max(0, mark.dueAt - now);
  }

  #live(fingerprint: string, now: MonoUs): Mark | undefined {
    const mark = fingerprint === '' ? undefined : this.#marks.get(fingerprint);
    return mark === undefined || mark.expiresAt <= now ? undefined : mark;
  }

  #sweep(now: MonoUs): void {
    let left = SWEPT_PER_CALL;
    for (const mark of this.#marks.values()) {
      if (left-- === 0 || mark.expiresAt > now) return;
      this.#marks.delete(mark.fingerprint);
      if (mark.early <= EARLY_MAX) this.#learn(0);
    }
  }

  #learn(kept: 0 | 1): void {
    this.#keptRatio += (kept - this.#keptRatio) * KEPT_STEP;
  }
}
