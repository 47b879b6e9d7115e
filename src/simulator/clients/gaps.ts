/** Laws of the gaps between arrivals, of mean 1: a rate course makes time of them. */
import type { Draws } from './draws.ts';

export type GapLaw = (draws: Draws) => number;

/** Memoryless: many people who know nothing of each other. */
export const exponentialGaps: GapLaw = (draws) => draws.exponential();

/** By coefficient of variation: 1 is exponential, above it arrivals come in clumps. */
export function gammaGaps(cv: number): GapLaw {
  const shape = 1 / (cv * cv);
  return (draws) => gamma(draws, shape) / shape;
}

/** By shape: 1 is exponential, below it gaps have a heavy tail. */
export function weibullGaps(shape: number): GapLaw {
  const logMean = logGamma(1 + 1 / shape);
  return (draws) => Math.exp(Math.log(draws.exponential()) / shape - logMean);
}

/** Of this shape and scale 1: the method of Marsaglia and Tsang (2000), about one trial in the mean. */
function gamma(draws: Draws, shape: number): number {
  if (shape < 1) return gamma(draws, shape + 1) * (1 - draws.ratio()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const normal = draws.normal();
    const v = (1 + c * normal) ** 3;
    if (v <= 0) continue;
    const bound = 0.5 * normal * normal + d - d * v + d * Math.log(v);
    if (Math.log(1 - draws.ratio()) < bound) return d * v;
  }
}

const STIRLING_FROM = 10;

/** Logarithm of the gamma function by Stirling's series, shifted up to where it is exact to 10 digits. */
function logGamma(x: number): number {
  let shift = 0;
  let at = x;
  for (; at < STIRLING_FROM; at += 1) shift += Math.log(at);
  const series = 1 / (12 * at) - 1 / (360 * at ** 3) + 1 / (1260 * at ** 5);
  return (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + series - shift;
}
