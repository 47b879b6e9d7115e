import { expect, test } from 'vitest';
import { sampleAt, US_PER_S } from '../../../test/support/samples.ts';
import { Past } from './past.ts';

function pastOf(seconds: number): Past {
  const past = new Past();
  for (let second = 0; second <= seconds; second++) past.add(sampleAt(second));
  return past;
}

test('Past keeps each second of the last ten and one in ten of the rest', () => {
  const past = pastOf(65);
  expect(past.now.at).toBe(65 * US_PER_S);
  expect(past.ago(3)?.at).toBe(62 * US_PER_S);
  expect(past.ago(20)?.at).toBe(40 * US_PER_S);
  expect(past.ago(60)?.at).toBe(0);
  expect(past.ago(66)).toBeUndefined();
  expect(past.every10(30).map(({ at }) => at / US_PER_S)).toEqual([40, 50, 60, 65]);
});

test('Past holds ten minutes and no more', () => {
  const past = pastOf(3_600);
  expect(past.every10(10_000)).toHaveLength(61);
  expect(past.ago(590)).toBeDefined();
  expect(past.ago(610)).toBeUndefined();
});

test('Past counts by time where samples come late', () => {
  const past = new Past();
  for (const second of [0, 1, 30, 31]) past.add(sampleAt(second));
  expect(past.ago(10)?.at).toBe(US_PER_S);
});
