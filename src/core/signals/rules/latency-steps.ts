/** Percentiles of latency over work, from the difference of two histograms. */
import { PACE_STEPS, paceEdge } from '../pace-steps.ts';

export interface Steps {
  readonly counts: Float64Array;
  readonly total: number;
}

export function stepsBetween(old: ArrayLike<number>, steps: ArrayLike<number>): Steps {
  // For every tenant at every look: a mapping costs five times as much.
  const counts = new Float64Array(steps.length);
  let total = 0;
  for (let step = 0; step < steps.length; step++) {
    const count = (steps[step] as number) - (old[step] ?? 0);
    counts[step] = count;
    total += count;
  }
  return { counts, total };
}

/** The step in which the quantile lies. */
export function quantileStep({ counts, total }: Steps, q: number): number {
  let left = total * (1 - q);
  for (let step = PACE_STEPS - 1; step > 0; step--) {
    left -= counts[step] as number;
    if (left < 0) return step;
  }
  return 0;
}

export function quantile(steps: Steps, q: number): number {
  return paceEdge(quantileStep(steps, q));
}

/** How many lie above a step. */
export function countAbove({ counts }: Steps, step: number): number {
  let above = 0;
  for (let at = step + 1; at < PACE_STEPS; at++) above += counts[at] as number;
  return above;
}
