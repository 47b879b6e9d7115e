/**
 * Steps of an engine whose batch does not change: each lasts longer than the one before by what the context grew.
 * The first one is special (prefill, or what is left of it); step j >= 1 lasts `base + slope * j`, so that k steps last
 *
 *   first + (k - 1) * base + slope * k * (k - 1) / 2
 *
 * which says at once when the k-th ends, and how many are over at an instant. Times are not rounded.
 */
import type { DurationUs } from '../../base/units.ts';

export interface StepRun {
  readonly firstUs: DurationUs;
  readonly baseUs: DurationUs;
  readonly slopeUs: DurationUs;
}

export function stepsUs({ firstUs, baseUs, slopeUs }: StepRun, steps: number): DurationUs {
  return steps === 0 ? 0 : firstUs + (steps - 1) * baseUs + (slopeUs * steps * (steps - 1)) / 2;
}

/** Steps that are over after so long: the largest k whose time is at most that. */
export function stepsWithin(run: StepRun, us: DurationUs): number {
  if (us < run.firstUs) return 0;
  const linear = run.baseUs + run.slopeUs / 2;
  const rest = us - run.firstUs;
  // The positive root of slope/2 * m^2 + linear * m = rest, in the form that holds for a slope of 0.
  const root = (2 * rest) / (linear + Math.sqrt(linear * linear + 2 * run.slopeUs * rest));
  let steps = 1 + Math.floor(root);
  while (stepsUs(run, steps + 1) <= us) steps += 1;
  while (stepsUs(run, steps) > us) steps -= 1;
  return steps;
}
