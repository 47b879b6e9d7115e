/**
 * A binary min-heap whose items know their place, so that any of them can be moved or removed in O(log n).
 * Ties go by `order`, which is unique among the items, so that the sequence never depends on insertion history.
 *
 * An item sits in at most one heap at a time through the same fields.
 */
import { invariant } from './assert.ts';

export interface HeapItem {
  /** Place in the heap, or -1 outside. Owned by the heap. */
  heapIndex: number;
  /** What the heap orders by; change it only through `update` while inside. */
  heapKey: number;
  /** Breaks ties; unique among the items of one heap. */
  readonly order: number;
}

export class KeyedHeap<T extends HeapItem> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** The least item, or undefined when empty. O(1). */
  peek(): T | undefined {
    return this.#items[0];
  }

  /** The item at a place of the heap, for looking at the first few without removing them. O(1). */
  at(index: number): T | undefined {
    return this.#items[index];
  }

  push(item: T, key: number): void {
    invariant(item.heapIndex === -1, 'An item is in one heap at most');
    item.heapKey = key;
    this.#items.push(item);
    this.#siftUp(item, this.#items.length - 1);
  }

  remove(item: T): void {
    const index = item.heapIndex;
    invariant(this.#items[index] === item, 'Only an item of this heap can be removed');
    const last = this.#items.pop() as T;
    item.heapIndex = -1;
    if (last === item) return;
    last.heapIndex = index;
    this.#items[index] = last;
    this.#settle(last, index);
  }

  update(item: T, key: number): void {
    if (item.heapKey === key) return;
    item.heapKey = key;
    this.#settle(item, item.heapIndex);
  }

  clear(): void {
    for (const item of this.#items) item.heapIndex = -1;
    this.#items.length = 0;
  }

  [Symbol.iterator](): IterableIterator<T> {
    return this.#items[Symbol.iterator]();
  }

  #settle(item: T, index: number): void {
    if (index > 0 && isBefore(item, this.#items[(index - 1) >> 1] as T)) this.#siftUp(item, index);
    else this.#siftDown(item, index);
  }

  #siftUp(item: T, from: number): void {
    const items = this.#items;
    let index = from;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = items[parentIndex] as T;
      if (!isBefore(item, parent)) break;
      items[index] = parent;
      parent.heapIndex = index;
      index = parentIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }

  #siftDown(item: T, from: number): void {
    const items = this.#items;
    const size = items.length;
    let index = from;
    for (;;) {
      let childIndex = 2 * index + 1;
      if (childIndex >= size) break;
      let child = items[childIndex] as T;
      const rightIndex = childIndex + 1;
      if (rightIndex < size) {
        const right = items[rightIndex] as T;
        if (isBefore(right, child)) {
          child = right;
          childIndex = rightIndex;
        }
      }
      if (!isBefore(child, item)) break;
      items[index] = child;
      child.heapIndex = index;
      index = childIndex;
    }
    items[index] = item;
    item.heapIndex = index;
  }
}

function isBefore(a: HeapItem, b: HeapItem): boolean {
  return a.heapKey < b.heapKey || (a.heapKey === b.heapKey && a.order < b.order);
}
