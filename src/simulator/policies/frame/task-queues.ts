/** Orders of waiting: by a key that never changes, and the newest or oldest first by a switch. */
import { KeyedHeap } from '../../../base/keyed-heap.ts';
import type { BaselineTask } from './baseline-task.ts';
import type { TaskQueue } from './lanes.ts';

/** Least key first, ties by arrival. */
export function keyedQueue(keyOf: (task: BaselineTask) => number): TaskQueue {
  const heap = new KeyedHeap<BaselineTask>();
  return {
    get size() {
      return heap.size;
    },
    get leastKey() {
      return heap.leastKey;
    },
    peek: () => heap.peek(),
    push: (task) => heap.push(task.place, keyOf(task)),
    remove: (task) => heap.remove(task.place),
    [Symbol.iterator]: () => heap[Symbol.iterator](),
  };
}

/** In order of arrival while `isNewestFirst` says no, the other way round while it says yes. */
export function twoEndedQueue(isNewestFirst: () => boolean): TaskQueue {
  const oldest = new KeyedHeap<BaselineTask>();
  const newest = new KeyedHeap<BaselineTask>();
  const heap = (): KeyedHeap<BaselineTask> => (isNewestFirst() ? newest : oldest);
  return {
    get size() {
      return oldest.size;
    },
    get leastKey() {
      return heap().leastKey;
    },
    peek: () => heap().peek(),
    push(task) {
      oldest.push(task.place, task.order);
      newest.push(task.newestPlace, -task.order);
    },
    remove(task) {
      oldest.remove(task.place);
      newest.remove(task.newestPlace);
    },
    [Symbol.iterator]: () => oldest[Symbol.iterator](),
  };
}
