/**
 * When a user tries again after a try that came to nothing. Patient ones do as official clients do with the edge's headers
 * (`src/edge/outcomes/refusal.ts`): the hint stretched by up to a quarter, nothing told beyond a minute, and no retry
 * where the answer says that it cannot help. Who was told nothing (the connection broke, the own time-out ended it)
 * thinks for a while. The others think for a while whatever they were told.
 */
import type { DurationUs } from '../../base/units.ts';
import type { Outcome, RetryHint } from '../../core/request/outcome.ts';
import type { UserSpec } from '../scenario/types.ts';
import type { Draws } from './draws.ts';

const JITTER_SPAN = 0.25;
const HINT_US_MAX: DurationUs = 60_000_000;
/** What the edge tells when it knows of no wait. */
const HINT_US_DEFAULT: DurationUs = 1_000_000;

export type FailedTry = Exclude<Outcome, { kind: 'served' | 'degraded' }> | { readonly kind: 'lost' };

/** From now on; undefined when the user gives up. At least 1. */
export function returnAfterUs(
  end: FailedTry,
  user: { readonly isPatient: boolean; readonly spec: UserSpec },
  draws: Draws,
): DurationUs | undefined {
  if (user.isPatient && 'hint' in end) return toldUs(end.hint, draws);
  const [least, most] = user.spec.thinkUs;
  return Math.max(1, Math.round(least + (most - least) * draws.ratio()));
}

function toldUs(hint: RetryHint, draws: Draws): DurationUs | undefined {
  if (!hint.retryable || hint.afterUs > HINT_US_MAX) return undefined;
  const afterUs = hint.afterUs > 0 ? hint.afterUs : HINT_US_DEFAULT;
  return Math.min(HINT_US_MAX, Math.ceil(afterUs * (1 + JITTER_SPAN * draws.ratio())));
}
