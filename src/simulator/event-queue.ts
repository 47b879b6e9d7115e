/** Timed actions in order of (instant, insertion): the virtual clock's agenda. */
import { HeapSlot, KeyedHeap } from '../base/keyed-heap.ts';
import type { MonoUs } from '../base/units.ts';

export class EventQueue {
  readonly #heap = new KeyedHeap<() => void>();
  #order = 0;

  push(at: MonoUs, action: () => void): void {
    this.#heap.push(new HeapSlot(action, this.#order++), at);
  }

  nextAt(): MonoUs {
    return this.#heap.leastKey;
  }

  pop(): (() => void) | undefined {
    return this.#heap.pop();
  }
}
