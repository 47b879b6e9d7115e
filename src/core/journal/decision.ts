/**
 * Decisions of the scheduler as values: what a journal holds, and what a replay compares. Two runs decided alike when
 * their digests are equal: a hash over all decisions in order, each with its instant.
 */
import { DecisionHash } from '../../base/decision-hash.ts';
import type { MonoUs, NodeId, TaskId } from '../../base/units.ts';
import type { DegradeStep } from '../degrade/alternative.ts';
import type { NodeState } from '../health/state.ts';
import type { Outcome } from '../request/outcome.ts';
import type { EffectSink } from '../scheduler/effects.ts';

export const DECISION_KINDS = [
  'admitted',
  'assign',
  'degraded',
  'abort',
  'outcome',
  'node-state',
  'node-drained',
] as const;

export type DecisionKind = (typeof DECISION_KINDS)[number];

/** One effect. `what` holds the rest of it in words: attempt, step, outcome or state. */
export interface Decision {
  readonly kind: DecisionKind;
  /** 0 where it is about a node alone. */
  readonly taskId: TaskId;
  readonly nodeId: NodeId | '';
  readonly what: string;
}

const CODE: Readonly<Record<DecisionKind, number>> = {
  admitted: 1,
  assign: 2,
  degraded: 3,
  abort: 4,
  outcome: 5,
  'node-state': 6,
  'node-drained': 7,
};

/** Turns effects into decisions. What is for people only (cause, limits left) is no part of one. */
export abstract class DecisionSink implements EffectSink {
  protected abstract decide(kind: DecisionKind, taskId: TaskId, nodeId: NodeId, what: string): void;

  admitted(taskId: TaskId): void {
    this.decide('admitted', taskId, '', '');
  }

  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    this.decide('assign', taskId, nodeId, attempt === 1 ? '1' : String(attempt));
  }

  degraded(taskId: TaskId, { index, verdict }: DegradeStep): void {
    this.decide('degraded', taskId, '', `${index} ${verdict}`);
  }

  abort(taskId: TaskId, nodeId: NodeId): void {
    this.decide('abort', taskId, nodeId, '');
  }

  outcome(taskId: TaskId, outcome: Outcome): void {
    this.decide('outcome', taskId, '', outcomeText(outcome));
  }

  nodeState(nodeId: NodeId, state: NodeState): void {
    this.decide('node-state', 0, nodeId, state);
  }

  nodeDrained(nodeId: NodeId): void {
    this.decide('node-drained', 0, nodeId, '');
  }
}

/** Kind, and where there is one reason, hint and lesser answer. */
function outcomeText(outcome: Outcome): string {
  if (outcome.kind === 'degraded') return `degraded ${outcome.alternative}`;
  if (!('hint' in outcome)) return outcome.kind;
  const { kind, reason, hint } = outcome;
  return hint.retryable ? `${kind} ${reason} ${hint.afterUs}` : `${kind} ${reason}`;
}

/** The hash of all decisions so far. O(length of names) per decision. */
export class DecisionDigest {
  readonly #hash = new DecisionHash();
  #count = 0;

  /** Decisions so far. */
  get count(): number {
    return this.#count;
  }

  /** The instant of the decisions that follow. */
  at: MonoUs = 0;

  add(kind: DecisionKind, taskId: TaskId, nodeId: NodeId, what: string): void {
    this.#count += 1;
    this.#hash.add(CODE[kind], taskId, this.at);
    if (nodeId !== '') this.#hash.addText(nodeId);
    if (what !== '') this.#hash.addText(what);
  }

  digest(): string {
    return this.#hash.digest();
  }
}
