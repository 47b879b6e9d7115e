/** What a baseline keeps of one request until it has both its outcome and no attempt under way. */
import { HeapSlot } from '../../../base/keyed-heap.ts';
import type { DurationUs, MonoUs, RefUs } from '../../../base/units.ts';
import type { TaskSpec } from '../../../core/request/task.ts';
import type { BaselineNode } from './baseline-node.ts';
import type { TaskList } from './task-list.ts';

export class BaselineTask {
  readonly spec: TaskSpec;
  /** Unique, growing in order of arrival. */
  readonly order: number;
  readonly arrivedAt: MonoUs;
  /** Position of its class in the configuration, the most important first. */
  readonly rank: number;
  /** Where it runs, or waits because it is bound there. */
  node: BaselineNode | null = null;
  isRunning = false;
  isAdmitted = false;
  isSettled = false;
  attempts = 0;
  /** Nodes that failed it, each once. */
  readonly tried: BaselineNode[] = [];
  startedAt: MonoUs = 0;
  firstByteAt: MonoUs = -1;
  /** Time on its node by the node's pace when it was bound; what the node's ledger holds of it. */
  boundUs: DurationUs = 0;
  /** Tasks on the node when it started, itself included. */
  startInflight = 0;
  /** Where late-binding cores keep it while it waits; '' outside. */
  lane = '';
  /** Its place in the heap of its lane, and in a second one for queues with two ends. */
  readonly place: HeapSlot<BaselineTask>;
  readonly newestPlace: HeapSlot<BaselineTask>;
  /** Links of the list that it is in. */
  list: TaskList | null = null;
  previous: BaselineTask | null = null;
  next: BaselineTask | null = null;

  constructor(spec: TaskSpec, order: number, { arrivedAt, rank }: { arrivedAt: MonoUs; rank: number }) {
    this.spec = spec;
    this.order = order;
    this.arrivedAt = arrivedAt;
    this.rank = rank;
    this.place = new HeapSlot<BaselineTask>(this, order);
    this.newestPlace = new HeapSlot<BaselineTask>(this, order);
  }

  /** Work until what the deadline bounds: a stream's first content byte, else the whole answer. */
  get deadlineWorkUs(): RefUs {
    return this.spec.stream ? this.spec.firstByteWorkUs : this.spec.workUs;
  }
}
