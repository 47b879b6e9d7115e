import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attainedBound, type BoundJobs, mostInTime } from './attained-bound.ts';
import type { Supply } from './fleet-times.ts';
import { responseBound, totalRate } from './response-bound.ts';

interface Job {
  readonly release: number;
  readonly due: number;
  readonly effort: number;
  readonly weight: number;
}

const HORIZON = 8;
const job: fc.Arbitrary<Job> = fc
  .record({
    release: fc.integer({ min: 0, max: HORIZON - 1 }),
    slack: fc.integer({ min: 1, max: HORIZON }),
    effort: fc.integer({ min: 1, max: 6 }),
    weight: fc.integer({ min: 0, max: 9 }),
  })
  .map(({ slack, ...rest }) => ({ ...rest, due: Math.min(HORIZON, rest.release + slack) }));
const jobs = (most: number): fc.Arbitrary<readonly Job[]> =>
  fc
    .array(job, { minLength: 1, maxLength: most })
    .map((list) => list.toSorted((a, b) => a.release - b.release));
const supplies: fc.Arbitrary<readonly Supply[]> = fc.constantFrom(
  [{ rate: 1, slots: 1 }],
  [{ rate: 1, slots: 2 }],
  [
    { rate: 1, slots: 1 },
    { rate: 0.5, slots: 1 },
  ],
  [
    { rate: 0.25, slots: 1 },
    { rate: 1, slots: 1 },
  ],
);

function columns(list: readonly Job[]): BoundJobs {
  const of = (key: keyof Job): Float64Array => Float64Array.from(list, (one) => one[key]);
  return { releaseUs: of('release'), dueUs: of('due'), effortUs: of('effort') };
}

const weightsOf = (list: readonly Job[]): Float64Array => Float64Array.from(list, ({ weight }) => weight);

/** Max flow from jobs to units of time is the least cut: over all sets of units. */
function leastCut(list: readonly Job[], rate: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let set = 0; set < 1 << HORIZON; set++) {
    const holds = (unit: number): boolean => (set & (1 << unit)) !== 0;
    let cut = 0;
    for (let unit = 0; unit < HORIZON; unit++) if (holds(unit)) cut += rate;
    for (const { release, due, effort } of list)
      for (let unit = release; unit < due; unit++)
        if (!holds(unit)) {
          cut += effort;
          break;
        }
    least = Math.min(least, cut);
  }
  return least;
}

/** Calls `see` with the ends of every schedule without interruption in which machines do not idle but for arrivals. */
function everySchedule(
  list: readonly Job[],
  slots: readonly number[],
  see: (ends: ReadonlyMap<Job, number>) => void,
): void {
  const ends = new Map<Job, number>();
  const free = slots.map(() => 0);
  const place = (left: readonly Job[]): void => {
    see(ends);
    for (const next of left)
      for (const [slot, rate] of slots.entries()) {
        const before = free[slot] as number;
        const end = Math.max(before, next.release) + next.effort / rate;
        free[slot] = end;
        ends.set(next, end);
        place(left.filter((one) => one !== next));
        ends.delete(next);
        free[slot] = before;
      }
  };
  place(list);
}

const slotsOf = (list: readonly Supply[]): readonly number[] =>
  list.flatMap(({ rate, slots }) => Array.from({ length: slots }, () => rate));

describe('mostInTime', () => {
  test('is the least cut between requests and time', () => {
    fc.assert(
      fc.property(jobs(6), fc.constantFrom(0.5, 1, 2), (list, rate) => {
        const isIn = new Uint8Array(list.length).fill(1);
        expect(mostInTime(columns(list), rate, isIn)).toBeCloseTo(leastCut(list, rate), 9);
      }),
    );
  });
});

describe('attainedBound', () => {
  test('is never below the best of all schedules', () => {
    fc.assert(
      fc.property(jobs(4), supplies, (list, fleet) => {
        const bound = attainedBound(columns(list), weightsOf(list), totalRate(fleet));
        let best = 0;
        everySchedule(list, slotsOf(fleet), (ends) => {
          let weight = 0;
          for (const [one, end] of ends) if (end <= one.due) weight += one.weight;
          best = Math.max(best, weight);
        });
        expect(bound).toBeGreaterThanOrEqual(best - 1e-9);
      }),
    );
  });

  test('is the optimum of its relaxation: requests by falling weight over effort, each as far as it fits', () => {
    fc.assert(
      fc.property(jobs(6), fc.constantFrom(0.5, 1, 2), (list, rate) => {
        const possible = list
          .filter(({ release, due, effort }) => effort <= due - release + 1)
          .toSorted((a, b) => b.weight / b.effort - a.weight / a.effort);
        let [before, best] = [0, 0];
        for (const [at, { weight, effort }] of possible.entries()) {
          const next = leastCut(possible.slice(0, at + 1), rate);
          best += ((next - before) * weight) / effort;
          before = next;
        }
        expect(attainedBound(columns(list), weightsOf(list), rate)).toBeCloseTo(best, 9);
      }),
    );
  });

  test('of more densities than it looks at is above the relaxation by little', () => {
    const random = (seed: number): number => ((seed * 7_919) % 1_009) / 1_009;
    const list = Array.from({ length: 600 }, (_, at): Job => {
      const effort = 1 + 9 * random(at + 1);
      return { release: at, due: at + 30 + 60 * random(at + 2), effort, weight: 1 };
    });
    const rate = 3;
    const order = list.toSorted((a, b) => a.effort - b.effort);
    const isIn = new Uint8Array(list.length);
    let [before, exact] = [0, 0];
    for (const one of order) {
      isIn[list.indexOf(one)] = 1;
      const next = mostInTime(columns(list), rate, isIn);
      exact += (next - before) / one.effort;
      before = next;
    }
    const bound = attainedBound(columns(list), weightsOf(list), rate);
    expect(exact).toBeLessThan(0.85 * list.length);
    expect(bound).toBeGreaterThanOrEqual(exact - 1e-6);
    expect(bound).toBeLessThan(1.01 * exact);
  });

  test('leaves out whom the fastest node alone would answer too late', () => {
    const list = [{ release: 0, due: 100, effort: 110, weight: 1 }];
    expect(attainedBound(columns(list), weightsOf(list), 10)).toBe(0);
  });
});

describe('responseBound', () => {
  test('is never above the best of all schedules', () => {
    fc.assert(
      fc.property(jobs(4), supplies, (list, fleet) => {
        let [best, lastEnd] = [Number.POSITIVE_INFINITY, 0];
        everySchedule(list, slotsOf(fleet), (ends) => {
          if (ends.size < list.length) return;
          let sum = 0;
          let last = 0;
          for (const [{ release }, end] of ends) {
            sum += end - release;
            last = Math.max(last, end);
          }
          if (sum < best) [best, lastEnd] = [sum, last];
        });
        const bound = responseBound(columns(list), fleet, lastEnd - (list[0]?.release ?? 0));
        expect(bound).toBeLessThanOrEqual(best / list.length + 1e-9);
      }),
    );
  });

  test('on one slot is reached by the shortest remaining effort first', () => {
    // At 0 the long one begins, at 2 the short one goes first: ends at 11 and 3.
    const list = columns([
      { release: 0, due: 0, effort: 10, weight: 1 },
      { release: 2, due: 0, effort: 1, weight: 1 },
    ]);
    expect(responseBound(list, [{ rate: 1, slots: 1 }], 11)).toBe((11 + 1) / 2);
    // At 7 the long one has less left than the short one asks for: it goes on, and they end at 10 and 14.
    const later = { releaseUs: Float64Array.of(0, 7), effortUs: Float64Array.of(10, 4) };
    expect(responseBound(later, [{ rate: 1, slots: 1 }], 14)).toBe((10 + 7) / 2);
  });

  test('knows that a request alone takes its own time, and that not all of them fit on the fastest slots', () => {
    const calm = { releaseUs: Float64Array.of(0, 1_000), effortUs: Float64Array.of(4, 6) };
    expect(responseBound(calm, [{ rate: 1, slots: 10 }], 2_000)).toBe(5);
    // Ten units of effort in ten units of time: the fast slot does five of them, the slow one takes ten for the rest.
    const tight = { releaseUs: Float64Array.of(0, 5), effortUs: Float64Array.of(5, 5) };
    const fleet = [
      { rate: 0.5, slots: 1 },
      { rate: 1, slots: 1 },
    ];
    expect(responseBound(tight, fleet, 5)).toBe((5 + 10) / 2);
  });

  test('of many at once is above both what one fast server and what an idle fleet would need', () => {
    const releaseUs = new Float64Array(20);
    const effortUs = new Float64Array(20).fill(10);
    // Four slots, waves of four: 10, 20, 30, 40, 50. Mean instants of work on one server of rate 4, plus half of 10: 30.
    expect(responseBound({ releaseUs, effortUs }, [{ rate: 1, slots: 4 }], 50)).toBeCloseTo(30, 9);
  });
});
