import { expect, test } from 'vitest';
import { POISON_MARKS_MAX, PoisonMarks, STRIKE_US } from './poison.ts';

const MINUTE = 60_000_000;

function broke(marks: PoisonMarks, fingerprint: string, nodeId: string, now: number): boolean {
  return marks.strike({ fingerprint, forUs: STRIKE_US }, nodeId, now);
}

test('PoisonMarks call a body poison that broke two distinct nodes, and not one that broke the same node twice', () => {
  const marks = new PoisonMarks();
  expect([broke(marks, 'body', 'a', 0), broke(marks, 'body', 'a', 1), broke(marks, 'body', 'b', 2)]).toEqual([
    false,
    false,
    true,
  ]);
  expect(marks.marked).toBe(1);
});

test('PoisonMarks remember a body and forget it by themselves after ten minutes', () => {
  const marks = new PoisonMarks();
  broke(marks, 'body', 'a', 0);
  broke(marks, 'body', 'b', 0);
  expect(marks.isMarked('body', 10 * MINUTE - 1)).toBe(true);
  expect(marks.isMarked('body', 10 * MINUTE)).toBe(false);
  expect([marks.size, marks.marked]).toEqual([0, 0]);
});

test('PoisonMarks do not add up what lies more than ten minutes apart', () => {
  const marks = new PoisonMarks();
  broke(marks, 'body', 'a', 0);
  expect(broke(marks, 'body', 'b', 10 * MINUTE)).toBe(false);
});

test('PoisonMarks keep the later expiry when a body breaks another node', () => {
  const marks = new PoisonMarks();
  broke(marks, 'body', 'a', 0);
  broke(marks, 'body', 'b', 0);
  broke(marks, 'body', 'c', 5 * MINUTE);
  expect(marks.isMarked('body', 12 * MINUTE)).toBe(true);
});

test('PoisonMarks forgive a body that was served after all', () => {
  const marks = new PoisonMarks();
  broke(marks, 'body', 'a', 0);
  marks.forgive('body');
  expect(broke(marks, 'body', 'b', 1)).toBe(false);
  expect(marks.marked).toBe(0);
});

test('PoisonMarks take no note of a task without a fingerprint', () => {
  const marks = new PoisonMarks();
  broke(marks, '', 'a', 0);
  expect([broke(marks, '', 'b', 0), marks.size, marks.isMarked('', 0)]).toEqual([false, 0, false]);
});

test('PoisonMarks are bounded: the oldest entry leaves first', () => {
  const marks = new PoisonMarks();
  for (let i = 0; i <= POISON_MARKS_MAX; i++) {
    broke(marks, `body ${i}`, 'a', i);
    broke(marks, `body ${i}`, 'b', i);
  }
  expect([marks.size, marks.marked]).toEqual([POISON_MARKS_MAX, POISON_MARKS_MAX]);
  expect(marks.isMarked('body 0', POISON_MARKS_MAX)).toBe(false);
  expect(marks.isMarked('body 1', POISON_MARKS_MAX)).toBe(true);
});

test('PoisonMarks tell which bodies still count as having broken a node, and for how long', () => {
  const marks = new PoisonMarks();
  broke(marks, 'x', 'a', 0);
  broke(marks, 'y', 'a', 4 * MINUTE);
  broke(marks, 'z', 'b', 4 * MINUTE);
  marks.forgive('y');
  expect(marks.strikesOf('a', ['x', 'y', 'z'], MINUTE)).toEqual([{ fingerprint: 'x', forUs: 9 * MINUTE }]);
});
