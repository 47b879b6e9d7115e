import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeapSlot, KeyedHeap } from './keyed-heap.ts';

/** A member of the plain list that the heap is compared with. */
interface Member {
  readonly slot: HeapSlot<string>;
  key: number;
}

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
      let model: Member[] = [];
      let order = 0;
      const least = () => [...model].sort((a, b) => a.key - b.key || a.slot.order - b.slot.order)[0];
      for (const step of operations) {
        if (step.kind === 'push') {
          const member: Member = { slot: new HeapSlot(`item ${order}`, order++), key: step.key };
          heap.push(member.slot, step.key);
          model.push(member);
        } else if (model.length > 0) {
          const member = step.kind === 'pop' ? least() : model[step.pick % model.length];
          if (member === undefined) throw new Error('The list lost a member');
          if (step.kind === 'update') {
            member.key = step.key;
            heap.update(member.slot, step.key);
          } else {
            if (step.kind === 'pop') expect(heap.pop()).toBe(member.slot.item);
            else heap.remove(member.slot);
            model = model.filter((other) => other !== member);
          }
        }
        expect(heap.size).toBe(model.length);
        expect(heap.peek()).toBe(least()?.slot.item);
        expect(heap.leastKey).toBe(least()?.key ?? Number.POSITIVE_INFINITY);
        for (const { slot, key } of model) expect(heap.keyOf(slot)).toBe(key);
        expect([...heap].sort()).toEqual(model.map(({ slot }) => slot.item).sort());
      }
    }),
    { numRuns: 60 },
  );
});

test('HeapSlot knows whether it is in a heap, and may enter another one after it left', () => {
  const [first, second] = [new KeyedHeap<string>(), new KeyedHeap<string>()];
  const slot = new HeapSlot('item', 0);
  first.push(slot, 1);
  expect(slot.isInHeap).toBe(true);
  expect(() => second.push(slot, 1)).toThrow('A slot is in one heap at most');
  first.remove(slot);
  expect(slot.isInHeap).toBe(false);
  second.push(slot, 2);
  expect(second.peek()).toBe('item');
  expect(first.peek()).toBeUndefined();
});
