import { expect, it } from 'vitest';
import { longer, watchStalls } from './stall-watch.ts';

it('tells for how long the process was kept from running', async () => {
  const watch = watchStalls();
  await nextTimer();
  const until = performance.now() + 80;
  while (performance.now() < until);
  await nextTimer();
  const { longestMs, atMs } = watch.stop();
  expect(longestMs).toBeGreaterThan(50);
  expect(atMs).toBeGreaterThanOrEqual(longestMs);
});

it('keeps the longer of two, the first when they are equal', () => {
  const one = { longestMs: 5, atMs: 1 };
  expect(longer(one, { longestMs: 6, atMs: 2 }).atMs).toBe(2);
  expect(longer(one, { longestMs: 5, atMs: 2 })).toBe(one);
});

function nextTimer(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 15));
}
