/**
 * Late binding: tasks wait in one central queue, and a node that has a free slot takes the first one that it fits. The rule
 * is the order of the queue and what becomes of a task whose turn it is; of several free nodes the fastest for the
 * task's model is offered first.
 *
 * A task whose turn it is may be dropped, or stepped over for this node; at most `SKIPPED_MAX` are stepped over for one
 * node at a time.
 */
import type { EvictReason, RejectReason } from '../../../core/request/outcome.ts';
import type { BaselineNode } from './baseline-node.ts';
import type { BaselineTask } from './baseline-task.ts';
import type { Desk, Discipline } from './discipline.ts';
import { Lanes, type TaskQueue } from './lanes.ts';

const SKIPPED_MAX = 64;

export interface QueueRule {
  createQueue(): TaskQueue;
  /** Whether the task may wait; absent: always. `waiting` does not count it. */
  refuse?(task: BaselineTask, waiting: number): RejectReason | undefined;
  /** What becomes of the task whose turn it is on this node. Called once per time that it is looked at. */
  turn?(task: BaselineTask, node: BaselineNode): Turn;
}

export type Turn = 'take' | 'skip' | EvictReason;

export function lateBinding(create: (desk: Desk) => QueueRule): (desk: Desk) => Discipline {
  return (desk) => {
    const rule = create(desk);
    return new CentralQueue(desk, rule);
  };
}

class CentralQueue implements Discipline {
  readonly #desk: Desk;
  readonly #rule: QueueRule;
  readonly #lanes: Lanes;

  constructor(desk: Desk, rule: QueueRule) {
    this.#desk = desk;
    this.#rule = rule;
    this.#lanes = new Lanes(() => rule.createQueue());
  }

  enter(task: BaselineTask): void {
    const refusal = task.isAdmitted ? undefined : this.#rule.refuse?.(task, this.#lanes.size);
    if (refusal !== undefined) return this.#desk.reject(task, refusal);
    this.#desk.admit(task);
    this.#lanes.push(task);
    const { model } = task.spec;
    const free = this.#desk.candidates(task).filter((node) => node.hasRoom);
    if (free.length > 1) free.sort((one, other) => fasterFirst(one, other, model));
    for (const node of free) {
      if (task.lane === '') return;
      this.#fill(node);
    }
  }

  leave(task: BaselineTask): void {
    if (task.lane !== '') this.#lanes.remove(task);
  }

  offer(node: BaselineNode): void {
    if (!node.isGone) this.#lanes.learn(node);
    if (node.isAlive && this.#lanes.size > 0) this.#fill(node);
  }

  waiting(): Iterable<BaselineTask> {
    return this.#lanes;
  }

  #fill(node: BaselineNode): void {
    const { now, nodes } = this.#desk;
    if (!node.isOpen(now) && nodes.some((other) => other.isOpen(now))) return;
    const skipped: BaselineTask[] = [];
    while (node.hasRoom && skipped.length < SKIPPED_MAX) {
      const task = this.#lanes.first(node);
      if (task === undefined) break;
      const turn = this.#desk.mayTake(node, task) ? (this.#rule.turn?.(task, node) ?? 'take') : 'skip';
      this.#lanes.remove(task);
      if (turn === 'take') this.#desk.start(task, node);
      else if (turn === 'skip') skipped.push(task);
      else this.#desk.evict(task, turn);
    }
    for (const task of skipped) this.#lanes.push(task);
  }
}

function fasterFirst(one: BaselineNode, other: BaselineNode, model: string): number {
  return other.pace.rate(model) - one.pace.rate(model) || one.order - other.order;
}
