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

/** Kinds of decisions, as a journal and the digest have them. */
export const DECISION = {
  admitted: 0,
  assign: 1,
  degraded: 2,
  abort: 3,
  outcome: 4,
  nodeState: 5,
  nodeDrained: 6,
} as const;

/** By their number. */
export const DECISION_NAMES: readonly string[] = [
  'admitted',
  'assign',
  'degraded',
  'abort',
  'outcome',
  'node-state',
  'node-drained',
];

/** One effect. */
export interface Decision {
  /** One of `DECISION`. */
  readonly code: number;
  /** 0 where it is about a node alone. */
  readonly taskId: TaskId;
  readonly nodeId: NodeId | '';
  /** State, verdict of a step, or outcome with its reason; '' where there is none. */
  readonly what: string;
  /** Which attempt, which lesser answer, or microseconds until trying again can help: -1 where it cannot. */
  readonly number: number;
}

const NEVER = -1;

/** Turns effects into decisions. What is for people only (cause, limits left) is no part of one. */
export abstract class DecisionSink implements EffectSink {
  protected abstract decide(decision: Decision): void;

  admitted(taskId: TaskId): void {
    this.decide({ code: DECISION.admitted, taskId, nodeId: '', what: '', number: 0 });
  }

  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    this.decide({ code: DECISION.assign, taskId, nodeId, what: '', number: attempt });
  }

  degraded(taskId: TaskId, { index, verdict }: DegradeStep): void {
    this.decide({ code: DECISION.degraded, taskId, nodeId: '', what: verdict, number: index });
  }

  abort(taskId: TaskId, nodeId: NodeId): void {
    this.decide({ code: DECISION.abort, taskId, nodeId, what: '', number: 0 });
  }

  outcome(taskId: TaskId, outcome: Outcome): void {
    const what = 'reason' in outcome ? `${outcome.kind} ${outcome.reason}` : outcome.kind;
    this.decide({ code: DECISION.outcome, taskId, nodeId: '', what, number: numberOf(outcome) });
  }

  nodeState(nodeId: NodeId, state: NodeState): void {
    this.decide({ code: DECISION.nodeState, taskId: 0, nodeId, what: state, number: 0 });
  }

  nodeDrained(nodeId: NodeId): void {
    this.decide({ code: DECISION.nodeDrained, taskId: 0, nodeId, what: '', number: 0 });
  }
}

function numberOf(outcome: Outcome): number {
  if (outcome.kind === 'degraded') return outcome.alternative;
  if (!('hint' in outcome)) return 0;
  return outcome.hint.retryable ? outcome.hint.afterUs : NEVER;
}

/** A text as one word of the digest: 32 bits of FNV-1a. Who has few texts may keep them. */
export function textWord(text: string): number {
  let word = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) word = Math.imul(word ^ text.charCodeAt(at), 0x01000193);
  return word;
}

const WORDS = 7;
const HIGH = 2 ** 32;

/** The hash of all decisions so far, each with its instant. */
export class DecisionDigest {
  readonly #hash = new DecisionHash();
  readonly #words = new Float64Array(WORDS);
  #count = 0;

  /** Decisions so far. */
  get count(): number {
    return this.#count;
  }

  /** The instant of the decisions that follow. */
  at: MonoUs = 0;

  /** `node` and `what` as `textWord` has them. */
  add({ code, taskId, number }: Omit<Decision, 'nodeId' | 'what'>, node: number, what: number): void {
    const words = this.#words;
    words[0] = code;
    words[1] = taskId;
    words[2] = this.at;
    words[3] = Math.floor(this.at / HIGH);
    words[4] = node;
    words[5] = what;
    words[6] = number;
    this.#hash.addWords(words);
    this.#count += 1;
  }

  digest(): string {
    return this.#hash.digest();
  }
}
