import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeapSlot, KeyedHeap } from './keyed-heap.ts';

type Item = HeapSlot<string>;

const operation = fc.oneof(
  fc.record({ kind: fc.constant('push' as const), key: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ kind: fc.constant('pop' as const) }),
  fc.record({ kind: fc.constant('remove' as const), pick: fc.nat() }),
  fc.record({ kind: fc.constant('update' as const), pick: fc.nat(), key: fc.integer({ min: 0, max: 20 }) }),
);

test('KeyedHeap agrees with a sorted list under any mix of push, pop, remove and update', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 120, size: 'max' }), (operations) => {
      const heap = new KeyedHeap<string>();
      let model: Item[] = [];
      let order = 0;
      const least = () => [...model].sort((a, b) => a.key - b.key || a.order - b.order)[0];
      for (const step of operations) {
        if (step.kind === 'push') {
          const item: Item = new HeapSlot('', order++);
          heap.push(item, step.key);
          model.push(item);
        } else if (model.length > 0) {
          const item = step.kind === 'pop' ? heap.peek() : model[step.pick % model.length];
          if (item === undefined) throw new Error('The heap lost an item');
          if (step.kind === 'update') heap.update(item, step.key);
          else {
            heap.remove(item);
            model = model.filter((other) => other !== item);
            expect(item.isInHeap).toBe(false);
          }
        }
        expect(heap.size).toBe(model.length);
        expect(heap.peek()).toBe(least());
      }
    }),
    { numRuns: 60 },
  );
});
