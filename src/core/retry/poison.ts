/**
 * Bodies that broke two nodes. A remembered fingerprint is refused at the door until its mark expires; the table is
 * bounded, the oldest mark leaves first.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';

export const POISON_MARKS_MAX = 4_096;
const MARK_US: DurationUs = 600_000_000;

export class PoisonMarks {
  readonly #until: Map<string, MonoUs> = new Map();

  get size(): number {
    return this.#until.size;
  }

  mark(fingerprint: string, now: MonoUs): void {
    if (fingerprint === '') return;
    this.#until.delete(fingerprint);
    this.#until.set(fingerprint, now + MARK_US);
    if (this.#until.size <= POISON_MARKS_MAX) return;
    const oldest = this.#until.keys().next();
    if (!oldest.done) this.#until.delete(oldest.value);
  }

  isMarked(fingerprint: string, now: MonoUs): boolean {
    if (this.#until.size === 0 || fingerprint === '') return false;
    const until = this.#until.get(fingerprint);
    if (until === undefined) return false;
    if (until > now) return true;
    this.#until.delete(fingerprint);
    return false;
  }
}
