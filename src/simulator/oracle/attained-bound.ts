/**
 * How much could have been done in time by whoever knew all arrivals, sizes and noise beforehand: an upper bound over all
 * policies, clairvoyant ones included.
 *
 * It is the optimum of a relaxation, in which the fleet is one server of the sum of the rates, requests can be cut into
 * pieces, done by all nodes at once, and count for the part that is done by the deadline; whoever cannot make the deadline even
 * alone on the fastest node is left out first. For a set of requests the most effort in time, `f`, is what serving the earliest deadline
 * first reaches. Sets of efforts that fit form a polymatroid (Edmonds, 1970) with rank f, where taking requests by falling weight over
 * effort is best; summed by parts that is `sum of f(first i) * (density i - density i+1)`.
 *
 * `f` is computed for at most `LEVELS_MAX` prefixes, exactly so where there are no more densities. Between two of them
 * `f(i) <= min(f(next), f(before) + effort between)`, which can only raise the bound. Cost: O(levels * n log n), with fewer
 * levels where there are many requests.
 */
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import type { Rate } from '../../base/units.ts';

const LEVELS_MAX = 64;
/** Requests times levels that are worth the wait: a few seconds. */
const STEPS_MAX = 1_000_000;
const LEVELS_MIN = 4;

/** In order of release. */
export interface BoundJobs {
  readonly releaseUs: Float64Array;
  readonly dueUs: Float64Array;
  /** Time on the fastest node. */
  readonly effortUs: Float64Array;
}

/** Most weight that can be done in time, at this rate of effort. Weights are at least 0. */
export function attainedBound(jobs: BoundJobs, weights: Float64Array, rate: Rate): number {
  const density = (job: number): number => (weights[job] as number) / (jobs.effortUs[job] as number);
  const order = [...weights.keys()].filter((job) => isPossible(jobs, job));
  order.sort((one, other) => density(other) - density(one) || one - other);
  const steps = order.map(
    (job, at) => density(job) - (at + 1 < order.length ? density(order[at + 1] as number) : 0),
  );
  const cuts = cutsOf(steps);
  const isIn = new Uint8Array(weights.length);
  let [from, before, sum] = [0, 0, 0];
  for (const cut of cuts) {
    for (let at = from; at < cut; at++) isIn[order[at] as number] = 1;
    const next = mostInTime(jobs, rate, isIn);
    let reached = before;
    for (let at = from; at < cut; at++) {
      reached += jobs.effortUs[order[at] as number] as number;
      sum += Math.min(next, reached) * (steps[at] as number);
    }
    [from, before] = [cut, next];
  }
  return sum;
}

/** Machines round to whole microseconds. */
const ROUNDING_US = 1;

function isPossible({ releaseUs, dueUs, effortUs }: BoundJobs, job: number): boolean {
  return (effortUs[job] as number) <= (dueUs[job] as number) - (releaseUs[job] as number) + ROUNDING_US;
}

/** Lengths of the prefixes to look at: where the density changes, evenly thinned out where that is too often. */
function cutsOf(steps: readonly number[]): readonly number[] {
  const all = steps.flatMap((step, at) => (step > 0 ? [at + 1] : []));
  const levels = Math.max(
    LEVELS_MIN,
    Math.min(LEVELS_MAX, Math.floor(STEPS_MAX / Math.max(1, steps.length))),
  );
  if (all.length <= levels) return all;
  return Array.from(
    { length: levels },
    (_, nth) => all[Math.ceil(((nth + 1) * all.length) / levels) - 1] as number,
  );
}

/** Effort of those who are in that can be done by their deadlines: the earliest deadline first, what is past it dropped. */
export function mostInTime({ releaseUs, dueUs, effortUs }: BoundJobs, rate: Rate, isIn: Uint8Array): number {
  const heap = new KeyedHeap<number>();
  const left = effortUs.slice();
  let [now, done] = [0, 0];
  const workUntil = (until: number): void => {
    while (heap.size > 0 && now < until) {
      const job = heap.peek() as number;
      const stopsAt = Math.min(until, dueUs[job] as number);
      const endsAt = now + (left[job] as number) / rate;
      if (endsAt <= stopsAt) {
        done += left[job] as number;
        now = endsAt;
        heap.pop();
      } else if (stopsAt > now) {
        const part = (stopsAt - now) * rate;
        done += part;
        left[job] = (left[job] as number) - part;
        now = stopsAt;
      } else heap.pop();
    }
    now = Math.max(now, until);
  };
  for (let job = 0; job < isIn.length; job++) {
    if (isIn[job] === 0) continue;
    workUntil(releaseUs[job] as number);
    heap.push(new HeapSlot(job, job), dueUs[job] as number);
  }
  workUntil(Number.POSITIVE_INFINITY);
  return done;
}
