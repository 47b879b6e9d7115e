import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flowAlone, taskRecord } from '../../../test/support/task-records.ts';
import { DeadlineHeap } from './deadline-heap.ts';
import { isMoreUrgent, type TaskRecord } from './task-record.ts';

const operation = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant('push' as const), deadlineAt: fc.nat(20) }), weight: 3 },
  { arbitrary: fc.record({ kind: fc.constant('pop' as const) }), weight: 1 },
  { arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }), weight: 2 },
);

test('DeadlineHeap agrees with a sorted list under any mix of push, pop and remove by handle', () => {
  const flow = flowAlone();
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 120, size: 'max' }), (operations) => {
      const heap = new DeadlineHeap();
      const model: TaskRecord[] = [];
      let id = 1;
      for (const step of operations) {
        if (step.kind === 'push') {
          const task = taskRecord(id++, { deadlineAt: step.deadlineAt }, flow);
          heap.push(task);
          model.push(task);
          model.sort((a, b) => (isMoreUrgent(a, b) ? -1 : 1));
        } else if (model.length > 0) {
          const at = step.kind === 'pop' ? 0 : step.pick % model.length;
          const [task] = model.splice(at, 1);
          heap.remove(task as TaskRecord);
        }
        expect(heap.peek()).toBe(model[0] ?? null);
      }
      const seen: TaskRecord[] = [];
      heap.forEach((task) => seen.push(task));
      expect(new Set(seen)).toEqual(new Set(model));
      expect(seen).toHaveLength(model.length);
    }),
    { numRuns: 60 },
  );
});

test('DeadlineHeap gives equal deadlines in order of arrival', () => {
  const heap = new DeadlineHeap();
  const tasks = [3, 1, 2].map((id) => taskRecord(id, { deadlineAt: 5 }));
  for (const task of tasks) heap.push(task);
  const order: number[] = [];
  for (let task = heap.peek(); task !== null; task = heap.peek()) {
    order.push(task.spec.id);
    heap.remove(task);
  }
  expect(order).toEqual([1, 2, 3]);
});

test('DeadlineHeap takes a hundred thousand siblings apart without deep recursion', () => {
  const heap = new DeadlineHeap();
  const flow = flowAlone();
  for (let id = 100_000; id > 0; id--) heap.push(taskRecord(id, { deadlineAt: 100_000 - id }, flow));
  let last = -1;
  for (let task = heap.peek(); task !== null; task = heap.peek()) {
    expect(task.deadlineAt >= last).toBe(true);
    last = task.deadlineAt;
    heap.remove(task);
    if (last > 10) break;
  }
});
