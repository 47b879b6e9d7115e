/** Timed actions in order of (instant, insertion): the virtual clock's agenda. */
import { type HeapItem, KeyedHeap } from '../base/keyed-heap.ts';
import type { MonoUs } from '../base/units.ts';

interface Entry extends HeapItem {
  readonly action: () => void;
}

export class EventQueue {
  readonly #heap = new KeyedHeap<Entry>();
  #order = 0;

  push(at: MonoUs, action: () => void): void {
    this.#heap.push({ heapIndex: -1, heapKey: at, order: this.#order++, action }, at);
  }

  nextAt(): MonoUs {
    return this.#heap.peek()?.heapKey ?? Number.POSITIVE_INFINITY;
  }

  pop(): (() => void) | undefined {
    const entry = this.#heap.peek();
    if (entry === undefined) return undefined;
    this.#heap.remove(entry);
    return entry.action;
  }
}
