import { describe, expect, test } from 'vitest';
import { taskSpec } from '../../../test/support/specs.ts';
import { flowAlone } from '../../../test/support/task-records.ts';
import { DeadlineWheel } from './deadline-wheel.ts';
import { TaskNumbers } from './task-numbers.ts';
import { SPARE_RECORDS_MAX, TaskRecord, TaskRecords } from './task-record.ts';

/** Written by the structures that hold a record, and as they were once it is out of them. */
const LINKS = new Set([
  ...['lane', 'laneFlow', 'octave', 'queueHandle', 'arrivalHandle', 'modelQueue'],
  ...['wheelHandle', 'reservedNode', 'reservedUs', 'node', 'runningIndex'],
]);

/** What is read and written by name and lies in its row of numbers. */
const NUMBERS = Object.entries(Object.getOwnPropertyDescriptors(TaskNumbers.prototype))
  .filter(([, { set }]) => set !== undefined)
  .map(([name]) => name);

describe('TaskNumbers', () => {
  test('holds each number and each fact by itself', () => {
    const task = new TaskRecord(taskSpec(1), flowAlone(), 0);
    expect(NUMBERS.length).toBeGreaterThan(20);
    const held = NUMBERS.map((name, index) => {
      const isFact = typeof Reflect.get(task, name) === 'boolean';
      return { name, value: isFact ? index % 2 === 0 : index + 0.5 };
    });
    for (const { name, value } of held) Reflect.set(task, name, value);
    for (const { name, value } of held) expect(Reflect.get(task, name), name).toBe(value);
  });
});

describe('TaskRecords', () => {
  test('gives a used record as if it were new: nothing of the task before is left in any field', () => {
    const flow = flowAlone();
    const records = new TaskRecords();
    const used = records.take(taskSpec(1), flow, 5);
    for (const field of Object.keys(used)) if (!LINKS.has(field)) Reflect.set(used, field, 'of task 1');
    for (const number of NUMBERS) Reflect.set(used, number, 1);
    records.give(used);
    const spec = taskSpec(2, { stream: true, firstByteWorkUs: 7 });
    const again = records.take(spec, flow, 9);
    expect(again).toBe(used);
    const fresh = new TaskRecord(spec, flow, 9);
    expect(again).toStrictEqual(fresh);
    for (const number of NUMBERS) expect(Reflect.get(again, number), number).toBe(Reflect.get(fresh, number));
  });

  test('keeps no more records than its bound: what a burst leaves beyond it goes', () => {
    const flow = flowAlone();
    const records = new TaskRecords();
    const burst = Array.from(
      { length: SPARE_RECORDS_MAX + 1 },
      (_, id) => new TaskRecord(taskSpec(id), flow, 0),
    );
    for (const task of burst) records.give(task);
    const again = new Set(burst.map(({ spec }) => records.take(spec, flow, 1)));
    expect(burst.filter((task) => again.has(task))).toHaveLength(SPARE_RECORDS_MAX);
  });

  test('takes no record back that a structure still holds', () => {
    const records = new TaskRecords();
    const task = records.take(taskSpec(1), flowAlone(), 0);
    const wheel = new DeadlineWheel();
    wheel.add(task);
    expect(() => records.give(task)).toThrow('no structure holds its task');
    wheel.remove(task);
    records.give(task);
  });
});
