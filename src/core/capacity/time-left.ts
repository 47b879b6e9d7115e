/**
 * How long a running task still takes, given what it took so far. Predictions miss: what was expected to take 10 s and has run for
 * 9 s takes longer than 1 s more in the mean, since those that were quicker are gone already.
 *
 *   actual = predicted x Y,  Y lognormal with mean 1           left / predicted = E[Y | Y > y] - y,  y = elapsed / predicted
 *
 * The spread of Y follows from the 90th percentile of actual over predicted, which is measured; see admission/margin.ts. It is told as a
 * table over y, so that who compares nodes divides once and looks up. Past the prediction other rules hold: there the law says little
 * of tasks that hang or that nobody could foresee.
 */
import type { DurationUs, Ratio } from '../../base/units.ts';

export interface TimeLeftLaw {
  /** Left over predicted, by how much of the prediction has passed: `STEPS` equal parts of it, and its end. */
  readonly left: Float64Array;
  /** One in ten tasks takes half as long again as predicted, or longer: what was begun first is seldom done first. */
  readonly isWide: boolean;
}

const STEPS = 128;
/** A law is kept per so much of the 90th percentile, up to the last, where it says no more of the spread. */
const RATIO_STEP = 0.05;
const LAWS_MAX = 25;
const WIDE_RATIO: Ratio = 1.5;
/** Standard deviations to the 90th percentile of the normal distribution. */
const NORMAL_90 = 1.2815515594600038;

const LAWS_BY_RATIO: readonly TimeLeftLaw[] = Array.from({ length: LAWS_MAX }, (_, index) => {
  const usualRatio = 1 + index * RATIO_STEP;
  return { left: leftBy(usualRatio), isWide: usualRatio >= WIDE_RATIO };
});

/** The law for a 90th percentile of actual over predicted; null where predictions hold, and what is left is what was not done yet. */
export function timeLeftLaw(usualRatio: Ratio): TimeLeftLaw | null {
  const index = Math.min(LAWS_MAX - 1, Math.round((usualRatio - 1) / RATIO_STEP));
  return index <= 0 ? null : (LAWS_BY_RATIO[index] as TimeLeftLaw);
}

/** Mean time that a task takes beyond `elapsedUs`, in [0, `predictedUs`); at least what the prediction leaves. O(1). */
export function timeLeftUs(
  { left }: TimeLeftLaw,
  elapsedUs: DurationUs,
  predictedUs: DurationUs,
): DurationUs {
  return predictedUs * (left[Math.floor((elapsedUs / predictedUs) * STEPS)] as number);
}

function leftBy(usualRatio: Ratio): Float64Array {
  // ln of the percentile is NORMAL_90 s - s²/2.
  const s = NORMAL_90 - Math.sqrt(Math.max(0, NORMAL_90 ** 2 - 2 * Math.log(usualRatio)));
  return Float64Array.from({ length: STEPS + 1 }, (_, step) => {
    const y = (step + 0.5) / STEPS;
    const z = Math.log(y) / s;
    return s === 0 ? 1 - y : normalBelow(s / 2 - z) / normalBelow(-s / 2 - z) - y;
  });
}

/** The normal distribution function, to seven digits: Abramowitz and Stegun 26.2.17. */
function normalBelow(x: number): Ratio {
  const t = 1 / (1 + 0.2316419 * Math.abs(x));
  const series = 0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429)));
  const tail = (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) * t * series;
  return x > 0 ? 1 - tail : tail;
}
