/**
 * Early binding: a task is given to a node when it arrives, and waits there in order of arrival until the node has a slot.
 * It leaves that place only by a cancel, or when the node closes: then it is placed anew, as balancers do that keep a queue
 * per server. The rule is the choice of the node.
 */
import type { DurationUs, MonoUs } from '../../../base/units.ts';
import type { AttemptResult } from '../../../core/request/outcome.ts';
import type { BaselineNode } from './baseline-node.ts';
import type { BaselineTask } from './baseline-task.ts';
import type { Desk, Discipline } from './discipline.ts';

export interface FailedAttempt {
  readonly task: BaselineTask;
  readonly node: BaselineNode;
  readonly result: AttemptResult;
}

export interface ChoiceRule {
  /** One of `nodes`, which is not empty; undefined refuses. */
  choose(task: BaselineTask, nodes: readonly BaselineNode[], desk: Desk): BaselineNode | undefined;
  /** When a refusal says to come back; absent: it does not say. */
  readonly refusedForUs?: DurationUs;
  ended?(task: BaselineTask, node: BaselineNode, result: AttemptResult, now: MonoUs): void;
  closes?(failure: FailedAttempt, desk: Desk): boolean;
}

export function earlyBinding(create: () => ChoiceRule): (desk: Desk) => Discipline {
  return (desk) => {
    const rule = create();
    function offer(node: BaselineNode): void {
      for (let task = node.waiting.first; task !== null && node.hasRoom; task = node.waiting.first) {
        node.unwait(task);
        desk.start(task, node);
      }
    }
    function leave(task: BaselineTask): void {
      task.node?.unwait(task);
      task.node = null;
    }
    return {
      enter(task) {
        const nodes = desk.candidates(task);
        const node = nodes.length === 0 ? undefined : rule.choose(task, nodes, desk);
        if (node === undefined) return desk.reject(task, 'no-node', rule.refusedForUs);
        desk.admit(task);
        task.node = node;
        node.wait(task);
        offer(node);
      },
      leave,
      offer(node) {
        // What is bound to a node stays bound while it is cordoned, draining or cooling; it must answer to be sent anything.
        if (node.isAlive) offer(node);
      },
      ended: (task, node, result) => rule.ended?.(task, node, result, desk.now),
      ...(rule.closes === undefined
        ? {}
        : { closes: (task, node, result) => rule.closes?.({ task, node, result }, desk) === true }),
      *waiting() {
        for (const node of desk.nodes) yield* node.waiting;
      },
      boundTo: (node) => node.waiting,
    };
  };
}

/** The node with the least value; of equal ones the first drawn, so that ties go by chance. O(n). */
export function leastOf(
  nodes: readonly BaselineNode[],
  value: (node: BaselineNode) => number,
  ties: (equal: readonly BaselineNode[]) => BaselineNode,
): BaselineNode {
  let least = Number.POSITIVE_INFINITY;
  let equal: BaselineNode[] = [];
  for (const node of nodes) {
    const own = value(node);
    if (own < least) {
      least = own;
      equal = [node];
    } else if (own === least) equal.push(node);
  }
  return equal.length === 1 ? (equal[0] as BaselineNode) : ties(equal);
}

/** Of equal nodes one by chance. */
export function anyOf(desk: Desk): (equal: readonly BaselineNode[]) => BaselineNode {
  return (equal) => equal[desk.prng.nextBelow(equal.length)] as BaselineNode;
}

/** Of equal nodes the fastest for the model, the first registered among those. */
export function fastestOf(model: string): (equal: readonly BaselineNode[]) => BaselineNode {
  return (equal) =>
    equal.reduce((best, node) => (node.pace.rate(model) > best.pace.rate(model) ? node : best));
}
