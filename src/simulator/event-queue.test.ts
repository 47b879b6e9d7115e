import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EventQueue } from './event-queue.ts';

describe('EventQueue', () => {
  test('gives items in order of instant, equal ones in order of insertion', () => {
    // A number is pushed with that instant; -1 pops.
    const steps = fc.array(fc.integer({ min: -1, max: 20 }), { maxLength: 300 });
    fc.assert(
      fc.property(steps, (list) => {
        const queue = new EventQueue<number>();
        let model: { at: number; order: number }[] = [];
        for (const [order, at] of list.entries()) {
          if (at >= 0) {
            queue.push(at, order);
            model.push({ at, order });
            continue;
          }
          model = model.sort((a, b) => a.at - b.at || a.order - b.order);
          expect(queue.nextAt()).toBe(model[0]?.at ?? Number.POSITIVE_INFINITY);
          expect(queue.pop()).toBe(model.shift()?.order);
        }
        expect(queue.size).toBe(model.length);
      }),
    );
  });
});
