import { expect, test } from 'vitest';
import { EARLY_MAX, RETRY_MARKS_MAX, RetryMarks } from './retry-marks.ts';

const S = 1_000_000;

test('RetryMarks tell who comes before the time it was told from who keeps to it', () => {
  const marks = new RetryMarks();
  expect(marks.judge('a', 0)).toBe('unknown');
  marks.note('a', 10 * S, 0);
  expect(marks.judge('a', 10 * S - 1)).toBe('early');
  expect(marks.remainingUs('a', 4 * S), 'the time stays as it was').toBe(6 * S);
  expect(marks.judge('a', 10 * S), 'who came before is not invited').toBe('unknown');
  marks.note('b', 10 * S, 0);
  expect(marks.judge('b', 10 * S)).toBe('due');
  expect(marks.judge('b', 10 * S), 'a promise is kept once').toBe('unknown');
  expect(marks.size).toBe(0);
});

test('RetryMarks forget by themselves: half of the wait after it, five seconds at least', () => {
  const marks = new RetryMarks();
  // The one that stays longest is the oldest: the table cannot count on its order.
  marks.note('long', 20 * S, 0);
  marks.note('short', S, 0);
  expect(marks.judge('short', 6 * S)).toBe('unknown');
  expect(marks.judge('long', 30 * S - 1)).toBe('due');
  marks.note('long', 20 * S, 0);
  expect(marks.judge('long', 30 * S)).toBe('unknown');
  for (const name of ['any', 'other']) marks.judge(name, 60 * S);
  expect(marks.size, 'looking is enough to empty the table').toBe(0);
});

test('RetryMarks take no note of a task without a fingerprint', () => {
  const marks = new RetryMarks();
  marks.note('', S, 0);
  expect(marks.size).toBe(0);
  expect(marks.judge('', 0)).toBe('unknown');
});

test('RetryMarks take a body that many send for no repeat', () => {
  const marks = new RetryMarks();
  marks.note('hello', 10 * S, 0);
  const verdicts = Array.from({ length: EARLY_MAX + 2 }, () => marks.judge('hello', S));
  expect(verdicts.filter((verdict) => verdict === 'early')).toHaveLength(EARLY_MAX);
  expect(verdicts.at(-1)).toBe('unknown');
  expect(marks.remainingUs('hello', S)).toBe(0);
});

test('RetryMarks are bounded: the oldest leaves first', () => {
  const marks = new RetryMarks();
  for (let i = 0; i <= RETRY_MARKS_MAX; i++) marks.note(`body ${i}`, 60 * S, i);
  expect(marks.size).toBe(RETRY_MARKS_MAX);
  expect(marks.judge('body 0', RETRY_MARKS_MAX)).toBe('unknown');
  expect(marks.judge('body 1', RETRY_MARKS_MAX)).toBe('early');
});

test('RetryMarks learn how many keep to their time: not who comes early, nor who never comes', () => {
  const marks = new RetryMarks();
  const round = (from: number, come: (name: string, at: number) => void): void => {
    for (let i = 0; i < 100; i++) {
      marks.note(`${from} ${i}`, S, from + i);
      come(`${from} ${i}`, from + i);
    }
  };
  expect(marks.keptRatio).toBe(1);
  round(0, () => {});
  for (let i = 0; i < 100; i++) marks.judge('nobody', 100 * S);
  expect(marks.keptRatio, 'nobody came').toBeLessThan(0.1);
  round(200 * S, (name, at) => void marks.judge(name, at + 2 * S));
  expect(marks.keptRatio, 'all came in time').toBeGreaterThan(0.9);
  round(400 * S, (name, at) => {
    marks.judge(name, at);
    marks.judge(name, at + 2 * S);
  });
  expect(marks.keptRatio, 'all came twice').toBeLessThan(0.1);
});
