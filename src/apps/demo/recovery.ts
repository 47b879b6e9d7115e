/**
 * When the fleet is back to normal after the spike, by what users meet.
 *
 * Over sliding windows of two and a half seconds the 95th percentile of the waits of normal-class users who came in the
 * window is compared with `max(2 x before, 5 % of the deadline)`. Recovered at the first instant from which every window
 * of the next five seconds holds. A window in which nobody came says nothing good and does not hold.
 *
 * Looked at are those who come, not those who end: who was told in the spike to come back a minute later, and does, has
 * waited that minute however calm it is by then.
 */
import type { DurationMs } from '../../base/units.ts';
import { percentile } from './percentile.ts';

/** About sixty normal users at the daily level: fewer make the 95th percentile a matter of the two unluckiest. */
const WINDOW_MS = 2_500;
const STEP_MS = 250;
const HOLD_MS = 5_000;
const WAIT_SHARE = 0.95;
const DEADLINE_SHARE = 0.05;

export interface WaitSample {
  readonly cameAtMs: DurationMs;
  readonly waitMs: DurationMs;
}

export interface RecoveryQuestion {
  /** Waits of the class, in any order. */
  readonly samples: readonly WaitSample[];
  readonly spikeStartMs: DurationMs;
  readonly spikeEndMs: DurationMs;
  /** End of what was observed. */
  readonly untilMs: DurationMs;
  readonly deadlineMs: DurationMs;
}

export type Recovery =
  | { readonly kind: 'recovered'; readonly afterMs: DurationMs }
  /** Not within what was observed. */
  | { readonly kind: 'not-seen'; readonly observedMs: DurationMs };

export function findRecovery(question: RecoveryQuestion): Recovery {
  const { spikeEndMs, untilMs } = question;
  const samples = [...question.samples].sort((left, right) => left.cameAtMs - right.cameAtMs);
  // Who came before the spike and waited into it says how bad the spike was, not what is normal.
  const before = samples
    .filter((one) => one.cameAtMs + one.waitMs < question.spikeStartMs)
    .map((one) => one.waitMs);
  const limitMs = Math.max(2 * percentile(before, WAIT_SHARE), DEADLINE_SHARE * question.deadlineMs);
  let heldSinceMs: DurationMs | undefined;
  for (let at = spikeEndMs; at + WINDOW_MS <= untilMs; at += STEP_MS) {
    const inside = samples.filter((one) => one.cameAtMs >= at && one.cameAtMs < at + WINDOW_MS);
    const waits = inside.map((one) => one.waitMs);
    const holds = waits.length > 0 && percentile(waits, WAIT_SHARE) <= limitMs;
    if (!holds) heldSinceMs = undefined;
    else heldSinceMs ??= at;
    if (heldSinceMs !== undefined && at + WINDOW_MS - heldSinceMs >= HOLD_MS) {
      return { kind: 'recovered', afterMs: heldSinceMs - spikeEndMs };
    }
  }
  return { kind: 'not-seen', observedMs: untilMs - spikeEndMs };
}
