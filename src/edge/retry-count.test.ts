import { expect, test } from 'vitest';
import { readRetryCount } from './retry-count.ts';

test.each([
  ['', 0, 0],
  ['0', 0, 0],
  ['1', 1, 0],
  ['100', 100, 0],
  ['101', 0, 1],
  ['99999999999999999999', 0, 1],
  ['-1', 0, 1],
  ['1.5', 0, 1],
  ['2, 3', 0, 1],
  ['many', 0, 1],
])('readRetryCount takes %j as %i, ignored %i times', (text, count, times) => {
  let ignored = 0;
  expect(readRetryCount(text, () => (ignored += 1))).toBe(count);
  expect(ignored).toBe(times);
});
