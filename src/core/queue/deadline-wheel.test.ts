import fc from 'fast-check';
import { expect, test } from 'vitest';
import { flowAlone, taskRecord } from '../../../test/support/task-records.ts';
import { DeadlineWheel } from './deadline-wheel.ts';
import type { TaskRecord } from './task-record.ts';

/** One slot of the wheel: how late an expiry may be seen. */
const LATE_US_MAX = 16_384;

const operation = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant('add' as const),
      aheadUs: fc.integer({ min: -50_000, max: 40_000_000 }),
    }),
    weight: 3,
  },
  { arbitrary: fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }), weight: 1 },
  {
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      durationUs: fc.integer({ min: 1, max: 20_000_000 }),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      durationUs: fc.integer({ min: 1, max: 40_000 }),
    }),
    weight: 2,
  },
);

test('DeadlineWheel finds every expired task, never early, at most one slot late, and sleeps no longer than it may', () => {
  const flow = flowAlone();
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 80, size: 'max' }), (operations) => {
      const wheel = new DeadlineWheel();
      /** Each task with the instant from which on it may be found: a deadline in the past counts from its adding. */
      const model = new Map<TaskRecord, number>();
      let now = 0;
      let id = 1;
      for (const step of operations) {
        if (step.kind === 'add') {
          const task = taskRecord(id++, { deadlineAt: Math.max(0, now + step.aheadUs) }, flow);
          wheel.add(task);
          model.set(task, Math.max(now, task.deadlineAt));
        } else if (step.kind === 'remove') {
          const task = [...model.keys()][step.pick % Math.max(1, model.size)];
          if (task !== undefined) {
            wheel.remove(task);
            wheel.remove(task);
            model.delete(task);
          }
        } else {
          now += step.durationUs;
          const taken = wheel.takeExpired(now);
          const sorted = [...taken].sort((a, b) => a.deadlineAt - b.deadlineAt || a.spec.id - b.spec.id);
          expect(taken).toEqual(sorted);
          for (const task of taken) {
            expect(task.deadlineAt).toBeLessThanOrEqual(now);
            expect(model.delete(task)).toBe(true);
          }
          for (const due of model.values()) expect(due).toBeGreaterThan(now - LATE_US_MAX);
        }
        expect(wheel.size).toBe(model.size);
        const due = Math.min(...model.values(), Number.POSITIVE_INFINITY);
        if (due < Number.POSITIVE_INFINITY) {
          expect(wheel.nextAt()).toBeLessThanOrEqual(Math.max(now, due) + 2 * LATE_US_MAX);
          expect(wheel.nextAt()).toBeGreaterThan(now - LATE_US_MAX);
        } else expect(wheel.nextAt()).toBe(Number.POSITIVE_INFINITY);
      }
    }),
    { numRuns: 60 },
  );
});

test('DeadlineWheel keeps a deadline that is many turns away until it comes', () => {
  const wheel = new DeadlineWheel();
  const day = 86_400_000_000;
  const task = taskRecord(1, { deadlineAt: day });
  wheel.add(task);
  let wakes = 0;
  let taken: readonly TaskRecord[] = [];
  while (taken.length === 0 && wakes < 20_000) {
    taken = wheel.takeExpired(wheel.nextAt());
    wakes += 1;
  }
  expect(taken).toEqual([task]);
  expect(wakes).toBeLessThan(6_000);
});
