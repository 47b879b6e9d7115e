import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flowAlone, taskRecord } from '../../../test/support/task-records.ts';
import { LiveTasks } from './live-tasks.ts';
import type { TaskRecord } from './task-record.ts';

test('LiveTasks agree with a map under any mix of arrivals and ends, however long some live', () => {
  const flow = flowAlone();
  const step = fc.record({ isEnd: fc.boolean(), skip: fc.nat(200), pick: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const live = new LiveTasks();
      const model = new Map<number, TaskRecord>();
      let id = 0;
      for (const { isEnd, skip, pick } of steps) {
        if (isEnd && model.size > 0) {
          const ended = [...model.keys()][pick % model.size] as number;
          model.delete(ended);
          expect(live.delete(ended)).toBe(true);
          expect([live.has(ended), live.delete(ended)]).toEqual([false, false]);
        } else {
          id += 1 + skip;
          const task = taskRecord(id, {}, flow);
          live.add(task);
          model.set(id, task);
        }
        expect(live.size).toBe(model.size);
      }
      for (const [known, task] of model) expect(live.get(known)).toBe(task);
      expect(live.inOrder()).toEqual([...model.values()]);
    }),
    { numRuns: 60 },
  );
});

test('LiveTasks keep one task per id, and find none for an id that is no whole number', () => {
  const live = new LiveTasks();
  const [first, second] = [taskRecord(7), taskRecord(7)];
  live.add(first);
  live.add(second);
  expect([live.size, live.get(7)]).toEqual([1, second]);
  expect([live.get(Number.NaN), live.get(7.5), live.get(-1)]).toEqual([undefined, undefined, undefined]);
});
