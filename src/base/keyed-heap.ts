/**
 * A binary min-heap whose members know their place, so that any of them can be moved or removed in O(log n).
 * Ties go by `order`, which is unique among the members, so that the sequence never depends on insertion history.
 *
 * Members are slots, one small object per item and heap. All heaps of the program so compare objects of one shape,
 * whatever they hold: with the items' own fields the comparison saw six shapes and cost several times as much.
 */
import { invariant } from './assert.ts';

/** An item's place in one heap at a time. Its fields are the heap's to change. */
export class HeapSlot<T> {
  readonly item: T;
  /** Breaks ties; unique among the members of one heap. */
  readonly order: number;
  /** Place in the heap, or -1 outside. */
  index = -1;
  /** What the heap orders by. Starts as a fraction, so that the engine never changes how it stores the field. */
  key = 0.5;

  constructor(item: T, order: number) {
    this.item = item;
    this.order = order;
  }

  get isInHeap(): boolean {
    return this.index !== -1;
  }
}

export class KeyedHeap<T> {
  readonly #slots: HeapSlot<T>[] = [];

  get size(): number {
    return this.#slots.length;
  }

  /** The least member, or undefined when empty. O(1). */
  peek(): HeapSlot<T> | undefined {
    return this.#slots[0];
  }

  /** The member at a place of the heap, for looking at the first few without removing them. O(1). */
  at(index: number): HeapSlot<T> | undefined {
    return this.#slots[index];
  }

  push(slot: HeapSlot<T>, key: number): void {
    invariant(slot.index === -1, 'A slot is in one heap at most');
    slot.key = key;
    this.#slots.push(slot);
    this.#siftUp(slot, this.#slots.length - 1);
  }

  remove(slot: HeapSlot<T>): void {
    const index = slot.index;
    invariant(this.#slots[index] === slot, 'Only a member of this heap can be removed');
    const last = this.#slots.pop() as HeapSlot<T>;
    slot.index = -1;
    if (last === slot) return;
    last.index = index;
    this.#slots[index] = last;
    this.#settle(last, index);
  }

  update(slot: HeapSlot<T>, key: number): void {
    if (slot.key === key) return;
    slot.key = key;
    this.#settle(slot, slot.index);
  }

  clear(): void {
    for (const slot of this.#slots) slot.index = -1;
    this.#slots.length = 0;
  }

  [Symbol.iterator](): IterableIterator<HeapSlot<T>> {
    return this.#slots[Symbol.iterator]();
  }

  #settle(slot: HeapSlot<T>, index: number): void {
    if (index > 0 && isBefore(slot, this.#slots[(index - 1) >> 1] as HeapSlot<T>)) this.#siftUp(slot, index);
    else this.#siftDown(slot, index);
  }

  #siftUp(slot: HeapSlot<T>, from: number): void {
    const slots = this.#slots;
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = slots[parentIndex] as HeapSlot<T>;
      if (!isBefore(slot, parent)) break;
      slots[index] = parent;
      parent.index = index;
      index = parentIndex;
    }
    slots[index] = slot;
    slot.index = index;
  }

  #siftDown(slot: HeapSlot<T>, from: number): void {
    const slots = this.#slots;
    const size = slots.length;
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      let child = slots[childIndex] as HeapSlot<T>;
      const rightIndex = childIndex + 1;
      if (rightIndex < size) {
        const right = slots[rightIndex] as HeapSlot<T>;
        if (isBefore(right, child)) {
          child = right;
          childIndex = rightIndex;
        }
      }
      if (!isBefore(child, slot)) break;
      slots[index] = child;
      child.index = index;
      index = childIndex;
    }
    slots[index] = slot;
    slot.index = index;
  }
}

function isBefore(a: HeapSlot<unknown>, b: HeapSlot<unknown>): boolean {
  return a.key < b.key || (a.key === b.key && a.order < b.order);
}
