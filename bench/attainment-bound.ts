/**
 * The most that any policy could attain in an overload: beside it, a measured figure says how much is left to gain.
 *
 * Fluid bound over class and size. A class that gets the work share `g` of the capacity attains the greatest part of its
 * requests when it serves the smallest ones first; with equal chances for every size it attains `g` over its demand. How nodes
 * differ and deadlines bind is left out, so true bounds are no higher. Work that is done after arrivals stop is left out too:
 * what is measured until the queues are empty may exceed it by that.
 *
 * With `--noise` sizes are known by estimates that are off by a lognormal factor of that sigma and mean 1. Then those with the smallest
 * estimates are best served first: what is expected of a size grows with its estimate (the likelihood ratio is monotone).
 *
 *   node bench/attainment-bound.ts [--loads 2,3] [--weights 8,2,1] [--noise 0.5]
 */
import { parseArgs } from 'node:util';
import { FITTED_IMAGES } from '../src/simulator/clients/fitted.ts';

const CLASSES = ['critical', 'normal', 'low'];
/** Of the requests. */
const SHARES = [0.4, 0.4, 0.2];

const sizes = [...FITTED_IMAGES]
  .map(([images, steps, share]) => ({ work: images * steps, share }))
  .sort((a, b) => a.work - b.work);
const total = sizes.reduce((sum, { share }) => sum + share, 0);
const mean = sizes.reduce((sum, { work, share }) => sum + (work * share) / total, 0);

/** Part of the requests that a part of their work serves, the smallest first. */
function attainable(workPart: number, sigma: number): number {
  return sigma > 0 ? attainableByEstimate(workPart, sigma) : attainableBySize(workPart);
}

function attainableBySize(workPart: number): number {
  let left = workPart * mean;
  let count = 0;
  for (const { work, share } of sizes) {
    const part = Math.min(share / total, left / work);
    count += part;
    left -= part * work;
  }
  return count;
}

/** The greatest estimate that is served is found by halving: the work below it grows with it. */
function attainableByEstimate(workPart: number, sigma: number): number {
  const served = (most: number, valueOf: (work: number) => number): number =>
    sizes.reduce((sum, { work, share }) => {
      const deviation = (Math.log(most / work) + (sigma * sigma) / 2) / sigma;
      return sum + (share / total) * valueOf(work) * normalBelow(deviation);
    }, 0);
  let [low, high] = [0, 1e9];
  for (let round = 0; round < 100; round++) {
    const most = (low + high) / 2;
    if (served(most, (work) => work) > workPart * mean) high = most;
    else low = most;
  }
  return served(low, () => 1);
}

/** Part of a normal distribution below so many deviations (Abramowitz and Stegun 26.2.17, off by 7.5e-8 at most). */
function normalBelow(deviation: number): number {
  const t = 1 / (1 + 0.2316419 * Math.abs(deviation));
  const series =
    t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const above = (Math.exp((-deviation * deviation) / 2) / Math.sqrt(2 * Math.PI)) * series;
  return deviation > 0 ? 1 - above : above;
}

/** Capacity that each class gets of its demand by weight; what one does not need goes to the others. */
function granted(demands: readonly number[], weights: readonly number[]): readonly number[] {
  const grants = demands.map(() => 0);
  let open = demands.map((_, index) => index);
  let left = 1;
  while (open.length > 0 && left > 0) {
    const weight = open.reduce((sum, index) => sum + (weights[index] as number), 0);
    const unit = left / weight;
    const full = open.filter((index) => (demands[index] as number) <= unit * (weights[index] as number));
    const settled = full.length > 0 ? full : open;
    for (const index of settled) {
      grants[index] = Math.min(demands[index] as number, unit * (weights[index] as number));
      left -= grants[index];
    }
    open = open.filter((index) => !settled.includes(index));
  }
  return grants;
}

const { values } = parseArgs({
  options: {
    loads: { type: 'string', default: '2,3,5' },
    weights: { type: 'string', default: '8,2,1' },
    noise: { type: 'string', default: '0' },
  },
});
const weights = values.weights.split(',').map(Number);
for (const load of values.loads.split(',').map(Number)) {
  const demands = SHARES.map((share) => share * load);
  const rows = granted(demands, weights).map((grant, index) => {
    const part = grant / (demands[index] as number);
    const smallest = (100 * attainable(part, Number(values.noise))).toFixed(1);
    return `${CLASSES[index]} ${smallest} % (${(100 * part).toFixed(1)} % if neutral to size)`;
  });
  console.log(`${load} times the capacity, weights ${values.weights}: at most ${rows.join(', ')}`);
}
