import { expect, it } from 'vitest';
import { createStallMeter, longer, NO_STALL, STALL_INTERVAL_MS, watchStalls } from './stall-watch.ts';

it('tells the longest time that the timer did not fire beyond its interval, and when that ended', () => {
  const meter = createStallMeter(1_000);
  expect(meter.longest()).toBe(NO_STALL);
  for (const nowMs of [1_000 + STALL_INTERVAL_MS, 1_200, 1_200 + STALL_INTERVAL_MS, 1_300])
    meter.fired(nowMs);
  expect(meter.longest()).toEqual({ longestMs: 190 - STALL_INTERVAL_MS, atMs: 200 });
});

it('keeps the longer of two, the first when they are equal', () => {
  const one = { longestMs: 5, atMs: 1 };
  expect(longer(one, { longestMs: 6, atMs: 2 }).atMs).toBe(2);
  expect(longer(one, { longestMs: 5, atMs: 2 })).toBe(one);
});

it('leaves no timer behind', () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  const watch = watchStalls();
  expect(timers()).toBe(before + 1);
  watch.stop();
  expect(timers()).toBe(before);
});
