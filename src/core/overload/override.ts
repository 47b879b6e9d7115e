/** What an operator may ask of the ladder, brought into its bounds. */
import { type DurationUs, type MonoUs, msToUs } from '../../base/units.ts';
import type { LadderOverride } from './ladder.ts';
import type { LadderStage } from './model-ladder.ts';

/** A stage that was set by hand and forgotten must not outlast a night. */
export const OVERRIDE_US_MAX: DurationUs = msToUs(6 * 3_600_000);
const TEXT_CHARS_MAX = 200;

export interface LadderWish {
  readonly stage: LadderStage;
  readonly forUs: DurationUs;
  readonly who: string;
  readonly why: string;
}

export function overrideOf(wish: LadderWish, now: MonoUs): LadderOverride {
  const stage = [0, 1, 2, 3].includes(wish.stage) ? wish.stage : 0;
  const forUs = wish.forUs > 0 ? Math.min(OVERRIDE_US_MAX, Math.round(wish.forUs)) : 0;
  return {
    stage,
    since: now,
    until: now + forUs,
    who: wish.who.slice(0, TEXT_CHARS_MAX),
    why: wish.why.slice(0, TEXT_CHARS_MAX),
  };
}
