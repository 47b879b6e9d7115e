/** A histogram of latency over work, whose steps are factors: sizes and machines do not matter. */

/** Steps of latency over work: a tenth each, from 1/16 up; what is longer counts in the last one. */
export const PACE_STEPS = 128;
const PACE_LEAST_LN: number = Math.log(1 / 16);
const PACE_STEP_LN: number = Math.log(1.1);

/** The histogram step of a ratio of time to work, by its logarithm. */
export function paceStep(ln: number): number {
  const step = Math.floor((ln - PACE_LEAST_LN) / PACE_STEP_LN);
  return Math.min(PACE_STEPS - 1, Math.max(0, step));
}

/** The upper edge of a step, as a ratio. */
export function paceEdge(step: number): number {
  return Math.exp(PACE_LEAST_LN + (step + 1) * PACE_STEP_LN);
}
