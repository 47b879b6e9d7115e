/**
 * Waiting tasks of a central queue, in one lane per set of nodes that could take them: so that a node finds the first task
 * that it fits by looking at the heads of its lanes, however many others wait. Tasks of one model that fit the same kinds
 * of nodes share a lane.
 *
 * Cost: O(log n) to enter and leave, O(lanes) to find the first task for a node. Lanes are rebuilt when a kind of node appears
 * that was not there before. Bound: as many lanes as there are models times sets of kinds, empty ones are forgotten.
 */
import { type BaselineNode, kindFits, type NodeKind } from './baseline-node.ts';
import type { BaselineTask } from './baseline-task.ts';

/** Where tasks of one lane wait: least key first, ties by arrival. Keys of several lanes are compared. */
export interface TaskQueue {
  readonly size: number;
  readonly leastKey: number;
  peek(): BaselineTask | undefined;
  push(task: BaselineTask): void;
  remove(task: BaselineTask): void;
  [Symbol.iterator](): Iterator<BaselineTask>;
}

interface Lane {
  readonly queue: TaskQueue;
  readonly model: string;
  /** Kinds of nodes that fit. */
  readonly kinds: ReadonlySet<string>;
}

export class Lanes {
  readonly #createQueue: () => TaskQueue;
  readonly #lanes: Map<string, Lane> = new Map();
  /** By model, kinds of nodes that were seen. */
  readonly #kinds: Map<string, Map<string, NodeKind>> = new Map();
  #size = 0;

  constructor(createQueue: () => TaskQueue) {
    this.#createQueue = createQueue;
  }

  get size(): number {
    return this.#size;
  }

  push(task: BaselineTask): void {
    const { model } = task.spec;
    const kinds: string[] = [];
    for (const kind of this.#kinds.get(model)?.values() ?? [])
      if (kindFits(kind, task.spec)) kinds.push(kind.key);
    const key = [model, ...kinds].join('\n');
    let lane = this.#lanes.get(key);
    if (lane === undefined) {
      lane = { queue: this.#createQueue(), model, kinds: new Set(kinds) };
      this.#lanes.set(key, lane);
    }
    task.lane = key;
    lane.queue.push(task);
    this.#size += 1;
  }

  remove(task: BaselineTask): void {
    const lane = this.#lanes.get(task.lane) as Lane;
    lane.queue.remove(task);
    if (lane.queue.size === 0) this.#lanes.delete(task.lane);
    task.lane = '';
    this.#size -= 1;
  }

  /** The first task that the node fits. */
  first(node: BaselineNode): BaselineTask | undefined {
    let least: TaskQueue | undefined;
    for (const lane of this.#lanes.values()) {
      const kind = node.kindFor(lane.model);
      if (kind === undefined || !lane.kinds.has(kind.key)) continue;
      if (least === undefined || isBefore(lane.queue, least)) least = lane.queue;
    }
    return least?.peek();
  }

  /** Takes note of what the node offers; call when it is registered, before it is offered anything. */
  learn(node: BaselineNode): void {
    let isNew = false;
    for (const { model } of node.spec.models) {
      const kinds = this.#kinds.get(model) ?? new Map<string, NodeKind>();
      const kind = node.kindFor(model) as NodeKind;
      if (kinds.has(kind.key)) continue;
      isNew = true;
      kinds.set(kind.key, kind);
      this.#kinds.set(model, kinds);
    }
    if (!isNew) return;
    const tasks = [...this];
    for (const task of tasks) this.remove(task);
    for (const task of tasks) this.push(task);
  }

  *[Symbol.iterator](): IterableIterator<BaselineTask> {
    for (const lane of this.#lanes.values()) yield* lane.queue;
  }
}

function isBefore(one: TaskQueue, other: TaskQueue): boolean {
  if (one.leastKey !== other.leastKey) return one.leastKey < other.leastKey;
  return (one.peek() as BaselineTask).order < (other.peek() as BaselineTask).order;
}
