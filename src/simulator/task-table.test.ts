import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PLACES_MAX, TaskTable } from './task-table.ts';

describe('TaskTable', () => {
  test('finds what was put there and not taken out, in order of ids, as a map does', () => {
    // Ids grow by one; steps say which share of those before is taken out, so that old ones stay among many new ones.
    const steps = fc.array(
      fc.record({ add: fc.integer({ min: 1, max: 3_000 }), keep: fc.integer({ min: 1, max: 400 }) }),
      {
        minLength: 1,
        maxLength: 6,
      },
    );
    fc.assert(
      fc.property(steps, (list) => {
        const table = new TaskTable<string>();
        const model = new Map<number, string>();
        let id = 1;
        for (const { add, keep } of list) {
          for (const end = id + add; id < end; id++) {
            table.add(id, `task ${id}`);
            model.set(id, `task ${id}`);
          }
          for (const known of [...model.keys()]) {
            if (known % keep === 0) continue;
            table.delete(known);
            model.delete(known);
          }
          table.delete(id + 7);
          expect(table.size).toBe(model.size);
          expect(table.all()).toEqual([...model.values()]);
          for (let probe = 0; probe < id + 2; probe += 17) expect(table.get(probe)).toBe(model.get(probe));
        }
        table.clear();
        expect([table.size, table.all().length, table.get(1)]).toEqual([0, 0, undefined]);
      }),
      { numRuns: 40 },
    );
  });

  test('keeps its ring small for a few that stay while millions pass', () => {
    const table = new TaskTable<number>();
    for (let id = 1; id <= 20; id++) table.add(id, id);
    for (let id = 21; id < 3 * PLACES_MAX; id++) {
      table.add(id, id);
      table.delete(id);
    }
    expect(table.all()).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  });
});
