import { expect, test } from 'vitest';
import { POISON_MARKS_MAX, PoisonMarks } from './poison.ts';

const MINUTE = 60_000_000;

test('PoisonMarks remember a body and forget it by themselves after ten minutes', () => {
  const marks = new PoisonMarks();
  marks.mark('body', 0);
  expect(marks.isMarked('body', 10 * MINUTE - 1)).toBe(true);
  expect(marks.isMarked('body', 10 * MINUTE)).toBe(false);
  expect(marks.size).toBe(0);
});

test('PoisonMarks keep the later expiry when a body is marked again', () => {
  const marks = new PoisonMarks();
  marks.mark('body', 0);
  marks.mark('body', 5 * MINUTE);
  expect(marks.isMarked('body', 12 * MINUTE)).toBe(true);
});

test('PoisonMarks take no note of a task without a fingerprint', () => {
  const marks = new PoisonMarks();
  marks.mark('', 0);
  expect(marks.size).toBe(0);
  expect(marks.isMarked('', 0)).toBe(false);
});

test('PoisonMarks are bounded: the oldest mark leaves first', () => {
  const marks = new PoisonMarks();
  for (let i = 0; i <= POISON_MARKS_MAX; i++) marks.mark(`body ${i}`, i);
  expect(marks.size).toBe(POISON_MARKS_MAX);
  expect(marks.isMarked('body 0', POISON_MARKS_MAX)).toBe(false);
  expect(marks.isMarked('body 1', POISON_MARKS_MAX)).toBe(true);
});
