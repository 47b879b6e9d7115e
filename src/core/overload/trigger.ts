/**
 * One piece of evidence with two thresholds and a dwell on each side:
 *
 *   dark ──value ≥ enter, without a gap for enterUs──► lit ──value < leave, or unknown, for leaveUs──► dark
 *
 * Time spent at or above a threshold counts from the first sample that says so. Unknown neither lights a trigger nor
 * keeps one lit.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';

export interface Thresholds {
  readonly enter: number;
  /** Below `enter`. */
  readonly leave: number;
  readonly enterUs: DurationUs;
  readonly leaveUs: DurationUs;
}

export class Trigger {
  isLit = false;
  /** The last sample; undefined while unknown. */
  value: number | undefined;
  /** When it was lit or went dark. */
  since: MonoUs = 0;
  /** Since when samples speak for the other state; Infinity while they do not. */
  turningSince: MonoUs = Number.POSITIVE_INFINITY;

  /** Takes a sample. O(1). */
  observe(value: number | undefined, now: MonoUs, thresholds: Thresholds): void {
    this.value = value;
    const threshold = this.isLit ? thresholds.leave : thresholds.enter;
    const isAbove = value !== undefined && value >= threshold;
    if (isAbove === this.isLit) {
      this.turningSince = Number.POSITIVE_INFINITY;
      return;
    }
    this.turningSince = Math.min(this.turningSince, now);
    if (now - this.turningSince < (this.isLit ? thresholds.leaveUs : thresholds.enterUs)) return;
    this.isLit = isAbove;
    this.since = now;
    this.turningSince = Number.POSITIVE_INFINITY;
  }

  /** Whether nothing is lit and nothing is about to be. */
  get isQuiet(): boolean {
    return !this.isLit && this.turningSince === Number.POSITIVE_INFINITY;
  }
}
