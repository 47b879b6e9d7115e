import { describe, expect, test } from 'vitest';
import { CALM, decideSurvival, type SurvivalReading, type SurvivalState } from './decide.ts';
import { createLoopLag } from './loop-lag.ts';

const limits = { loopLagMs: 200, heapRatio: 0.8, descriptorsRatio: 0.9 };

/** Runs one reading every half second and returns the number of shed classes after each. */
function run(
  readings: readonly SurvivalReading[],
  start: SurvivalState = CALM,
): { shed: number[]; last: SurvivalState } {
  const shed: number[] = [];
  let state = start;
  readings.forEach((reading, index) => {
    state = decideSurvival(state, { reading, limits, classCount: 3, nowMs: 10_000 + index * 500 });
    shed.push(state.shedClasses);
  });
  return { shed, last: state };
}

const times = (count: number, reading: SurvivalReading): SurvivalReading[] => Array(count).fill(reading);

describe('decideSurvival', () => {
  test('sheds nothing while every reading is below its bound or unknown', () => {
    expect(run([{}, { loopLagMs: 199 }, { heapRatio: 0.79, descriptorsRatio: 0.89 }]).shed).toEqual([
      0, 0, 0,
    ]);
  });

  test('sheds the lowest class at once and one more per second, never the highest for mere lag', () => {
    expect(run(times(8, { loopLagMs: 5_000 })).shed).toEqual([1, 1, 2, 2, 2, 2, 2, 2]);
  });

  test('sheds every class when memory would soon run out', () => {
    expect(run(times(6, { memoryRatio: 0.95 })).shed).toEqual([1, 1, 2, 2, 3, 3]);
  });

  test('takes the highest class back first when memory is no longer fatal', () => {
    const { last } = run(times(6, { memoryRatio: 0.95 }));
    expect(run([{ memoryRatio: 0.82 }], last).shed).toEqual([2]);
  });

  test('lets classes back one by one after calm', () => {
    const readings = [...times(4, { loopLagMs: 500 }), ...times(12, { loopLagMs: 0 })];
    expect(run(readings).shed).toEqual([1, 1, 2, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
  });

  test('lets a mark expire that no new evidence renews, although pressure stays near its bound', () => {
    const { shed } = run([{ loopLagMs: 500 }, ...times(30, { loopLagMs: 180 })]);
    expect(shed.slice(0, 20)).toEqual(Array(20).fill(1));
    expect(shed.at(-1)).toBe(0);
  });

  test('does not flap between bound and hysteresis', () => {
    const readings = Array.from({ length: 20 }, (_, i) => ({ loopLagMs: i % 2 === 0 ? 205 : 175 }));
    const { shed } = run(readings);
    expect(shed).toEqual(shed.toSorted((a, b) => a - b));
  });

  test('names what presses most', () => {
    expect(run([{ loopLagMs: 210, heapRatio: 0.9 }]).last.cause).toBe('heap');
  });
});

describe('createLoopLag', () => {
  test('gives the median of the last second, so that one pause is no pressure', () => {
    const lag = createLoopLag(0);
    let now = 0;
    for (let i = 0; i < 20; i++) lag.fired((now += i === 7 ? 1_050 : 55));
    expect(lag.medianMs()).toBeCloseTo(5);
    expect(lag.maxMs()).toBeCloseTo(1_000);
    for (let i = 0; i < 20; i++) lag.fired((now += 50));
    expect(lag.maxMs()).toBe(0);
  });
});
