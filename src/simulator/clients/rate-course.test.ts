import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { RateCourse, type RateCourseOptions } from './rate-course.ts';

function clock(change: Partial<RateCourseOptions>): RateCourse {
  return new RateCourse({ perUs: 1 / S, course: [], bursts: undefined, until: 1_000 * S, ...change });
}

describe('RateCourse.after', () => {
  test('goes on at the new rate when the rate changes within a gap', () => {
    const course = [
      { from: 10 * S, times: 10 },
      { from: 11 * S, times: 0.5 },
    ];
    const rate = clock({ course });
    expect(rate.after(0, 5)).toBe(5 * S);
    expect(rate.after(5 * S, 10)).toBe(10.5 * S);
    expect(rate.after(10.5 * S, 6)).toBe(13 * S);
  });

  test('stands while the rate is 0, and for ever when it stays so', () => {
    const course = [
      { from: 1 * S, times: 0 },
      { from: 7 * S, times: 1 },
      { from: 9 * S, times: 0 },
    ];
    expect(clock({ course }).after(0, 2)).toBe(8 * S);
    expect(clock({ course }).after(0, 4)).toBe(Number.POSITIVE_INFINITY);
  });

  test('runs in bursts alone', () => {
    const rate = clock({ bursts: { onUs: 2 * S, offUs: 8 * S } });
    expect(rate.after(0, 1)).toBe(S);
    expect(rate.after(S, 2)).toBe(11 * S);
    expect(rate.after(11 * S, 5)).toBe(40 * S);
  });

  test('is never from the end of the run on', () => {
    expect(clock({ until: 10 * S }).after(0, 9.9)).toBe(9.9 * S);
    expect(clock({ until: 10 * S }).after(0, 10)).toBe(Number.POSITIVE_INFINITY);
  });
});
