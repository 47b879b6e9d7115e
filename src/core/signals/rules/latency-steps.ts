/** Percentiles of latency over work, from the difference of two histograms. */
import { PACE_STEPS, paceEdge } from '../pace-steps.ts';

export interface Steps {
  readonly counts: Float64Array;
  readonly total: number;
}

export function stepsBetween(old: ArrayLike<number>, steps: ArrayLike<number>): Steps {
  const counts = Float64Array.from(steps, (count, step) => count - (old[step] ?? 0));
  return { counts, total: counts.reduce((sum, count) => sum + count, 0) };
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
