/**
 * Tasks of one flow in one lane and size octave, earliest deadline first: an intrusive pairing heap.
 * push O(1), peek O(1), pop and remove by handle O(log n) amortised (Fredman, Sedgewick, Sleator, Tarjan 1986).
 * Empty flows cost one object, which matters with ten thousand tenants.
 */
import { isMoreUrgent, type TaskRecord } from './task-record.ts';

/**
 * Deadlines are compared by turns first: a small integer lies in the record, an exact instant in a box of its own behind
 * it, which is a second cache miss. 65 ms, so that turns of some years are small integers.
 */
const TURN_US = 65_536;

export class DeadlineHeap {
  #root: TaskRecord | null = null;

  peek(): TaskRecord | null {
    return this.#root;
  }

  push(task: TaskRecord): void {
    task.deadlineTurn = Math.floor(task.deadlineAt / TURN_US);
    this.#root = this.#root === null ? task : meld(this.#root, task);
  }

  remove(task: TaskRecord): void {
    const children = mergePairs(task.child);
    task.child = null;
    if (task === this.#root) {
      this.#root = children;
    } else {
      detach(task);
      if (children !== null) this.#root = meld(this.#root as TaskRecord, children);
    }
    task.sibling = null;
    task.previous = null;
  }

  /** Visits every task in no particular order; for people, never on the hot path. */
  forEach(visit: (task: TaskRecord) => void): void {
    const pending: TaskRecord[] = this.#root === null ? [] : [this.#root];
    for (let task = pending.pop(); task !== undefined; task = pending.pop()) {
      if (task.child !== null) pending.push(task.child);
      if (task.sibling !== null) pending.push(task.sibling);
      visit(task);
    }
  }
}

/** Whether a queued task is more urgent than another queued one. */
export function isAhead(a: TaskRecord, b: TaskRecord): boolean {
  return a.deadlineTurn === b.deadlineTurn ? isMoreUrgent(a, b) : a.deadlineTurn < b.deadlineTurn;
}

/** Joins two heaps; both are roots without siblings. */
function meld(a: TaskRecord, b: TaskRecord): TaskRecord {
  const isFirst = isAhead(a, b);
  const winner = isFirst ? a : b;
  const loser = isFirst ? b : a;
  loser.sibling = winner.child;
  if (winner.child !== null) winner.child.previous = loser;
  loser.previous = winner;
  winner.child = loser;
  winner.sibling = null;
  winner.previous = null;
  return winner;
}

/** Unlinks a task, together with its subtree, from its parent or left sibling. */
function detach(task: TaskRecord): void {
  const previous = task.previous as TaskRecord;
  if (previous.child === task) previous.child = task.sibling;
  else previous.sibling = task.sibling;
  if (task.sibling !== null) task.sibling.previous = previous;
}

/** Joins a list of siblings in pairs from the left, then all from the right. Iterative: lists grow with load. */
function mergePairs(first: TaskRecord | null): TaskRecord | null {
  let pairs: TaskRecord | null = null;
  let next = first;
  while (next !== null) {
    const a = next;
    const b: TaskRecord | null = a.sibling;
    next = b === null ? null : b.sibling;
    a.sibling = null;
    a.previous = null;
    let joined = a;
    if (b !== null) {
      b.sibling = null;
      b.previous = null;
      joined = meld(a, b);
    }
    joined.sibling = pairs;
    pairs = joined;
  }
  let result: TaskRecord | null = null;
  while (pairs !== null) {
    const following: TaskRecord | null = pairs.sibling;
    pairs.sibling = null;
    result = result === null ? pairs : meld(result, pairs);
    pairs = following;
  }
  return result;
}
