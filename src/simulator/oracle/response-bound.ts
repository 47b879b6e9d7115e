/**
 * The least mean response of given requests, all of them answered: a lower bound over all policies, clairvoyant ones
 * included. The largest of three sums, each below that of any schedule:
 *
 * 1. one server of the sum of all rates, the shortest remaining effort first, which is best on one server (Schrage, 1968);
 * 2. the time that they take on nodes, when the fastest slots are full for the whole run before the next ones are used;
 * 3. `mean instant of work - arrival + half of the time on a node`: a request that runs at a constant rate ends half its time
 *    after its mean instant of work, and the sum of mean instants is least, on that one server, when the smallest effort goes
 *    first (Goemans, 1997). Half of sum 2 stands for the second part.
 *
 * Swaps, faults, the network and who else is there are left out: they make everything later. Cost: O(n log n).
 */
import { HeapSlot, KeyedHeap } from '../../base/keyed-heap.ts';
import type { DurationUs } from '../../base/units.ts';
import type { Supply } from './fleet-times.ts';

export interface ResponseJobs {
  /** In order. */
  readonly releaseUs: Float64Array;
  /** Time on the fastest node. */
  readonly effortUs: Float64Array;
}

/** `horizonUs`: from the first arrival to the end of the run, within which all of them were done. */
export function responseBound(
  jobs: ResponseJobs,
  supplies: readonly Supply[],
  horizonUs: DurationUs,
): DurationUs {
  const count = jobs.effortUs.length;
  if (count === 0) return 0;
  const rate = totalRate(supplies);
  const onNodesUs = leastOnNodesUs(jobs, supplies, horizonUs);
  const shortest = serve(jobs, rate, 'remaining');
  const smallest = serve(jobs, rate, 'whole');
  return Math.max(shortest.responseUs, onNodesUs, smallest.meanInstantUs + onNodesUs / 2) / count;
}

export function totalRate(supplies: readonly Supply[]): number {
  return supplies.reduce((sum, { rate, slots }) => sum + rate * slots, 0);
}

/** The fastest slots first, each for the whole horizon. What is beyond, by rounding, goes to the slowest. */
function leastOnNodesUs(
  { effortUs }: ResponseJobs,
  supplies: readonly Supply[],
  horizonUs: DurationUs,
): DurationUs {
  let left = effortUs.reduce((sum, effort) => sum + effort, 0);
  let timeUs = 0;
  const sorted = supplies.toSorted((one, other) => other.rate - one.rate);
  for (const [at, { rate, slots }] of sorted.entries()) {
    const part = at + 1 === sorted.length ? left : Math.min(left, rate * slots * horizonUs);
    timeUs += part / rate;
    left -= part;
  }
  return timeUs;
}

interface Served {
  /** Sums over requests, from their arrival. */
  readonly responseUs: DurationUs;
  readonly meanInstantUs: DurationUs;
}

/** On one server that can be interrupted: the least remaining effort first, or the least whole one. */
function serve({ releaseUs, effortUs }: ResponseJobs, rate: number, by: 'remaining' | 'whole'): Served {
  const heap = new KeyedHeap<number>();
  const slots: HeapSlot<number>[] = [];
  const left = effortUs.slice();
  let [now, responseUs, meanInstantUs] = [0, 0, 0];
  const workUntil = (until: number): void => {
    while (heap.size > 0 && now < until) {
      const job = heap.peek() as number;
      const release = releaseUs[job] as number;
      const endsAt = now + (left[job] as number) / rate;
      const stopsAt = Math.min(until, endsAt);
      const part = (stopsAt - now) * rate;
      meanInstantUs += (part / (effortUs[job] as number)) * ((now + stopsAt) / 2 - release);
      now = stopsAt;
      if (endsAt <= until) {
        responseUs += now - release;
        heap.pop();
      } else {
        left[job] = (left[job] as number) - part;
        if (by === 'remaining') heap.update(slots[job] as HeapSlot<number>, left[job] as number);
      }
    }
    now = Math.max(now, until);
  };
  for (let job = 0; job < releaseUs.length; job++) {
    workUntil(releaseUs[job] as number);
    const slot = new HeapSlot(job, job);
    slots.push(slot);
    heap.push(slot, effortUs[job] as number);
  }
  workUntil(Number.POSITIVE_INFINITY);
  return { responseUs, meanInstantUs };
}
