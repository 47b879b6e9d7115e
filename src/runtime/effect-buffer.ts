/**
 * The reusable sink: effects of one event in parallel arrays, so that the hot path allocates nothing for them.
 * Records are valid until `clear`. The arrays keep the size of a usual burst and give a rare big one back.
 */
import { assertNever } from '../base/assert.ts';
import type { NodeId, TaskId } from '../base/units.ts';
import type { DegradeStep } from '../core/degrade/index.ts';
import type { NodeState } from '../core/health/state.ts';
import type { Outcome } from '../core/request/outcome.ts';
import type { EffectSink } from '../core/scheduler/effects.ts';

/** Performs effects; one method for each kind. */
export type EffectPerformer = EffectSink;

/** Effects that the arrays keep room for; a mass refusal at shutdown may need far more, once. */
const KEPT_EFFECTS_MAX = 4_096;

type EffectKind = 'admitted' | 'assign' | 'degraded' | 'abort' | 'outcome' | 'node-state' | 'node-drained';

/** A class, since its methods share arrays on the hot path. */
export class EffectBuffer implements EffectSink {
  #length = 0;
  readonly #kinds: EffectKind[] = [];
  readonly #taskIds: TaskId[] = [];
  readonly #nodeIds: NodeId[] = [];
  readonly #attempts: number[] = [];
  readonly #outcomes: (Outcome | undefined)[] = [];
  readonly #states: (NodeState | undefined)[] = [];
  readonly #steps: (DegradeStep | undefined)[] = [];

  get length(): number {
    return this.#length;
  }

  admitted(taskId: TaskId): void {
    this.#push('admitted', taskId, '');
  }

  assign(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    this.#attempts[this.#length] = attempt;
    this.#push('assign', taskId, nodeId);
  }

  degraded(taskId: TaskId, step: DegradeStep): void {
    this.#steps[this.#length] = step;
    this.#push('degraded', taskId, '');
  }

  abort(taskId: TaskId, nodeId: NodeId): void {
    this.#push('abort', taskId, nodeId);
  }

  outcome(taskId: TaskId, outcome: Outcome): void {
    this.#outcomes[this.#length] = outcome;
    this.#push('outcome', taskId, '');
  }

  nodeState(nodeId: NodeId, state: NodeState): void {
    this.#states[this.#length] = state;
    this.#push('node-state', 0, nodeId);
  }

  nodeDrained(nodeId: NodeId): void {
    this.#push('node-drained', 0, nodeId);
  }

  /** Performs everything in order, then forgets it. The performer must not apply another event meanwhile. */
  drain(performer: EffectPerformer): void {
    this.show(performer);
    this.#clear();
  }

  /** Calls the performer with everything in order, and keeps it. */
  show(performer: EffectPerformer): void {
    for (let i = 0; i < this.#length; i += 1) this.#perform(i, performer);
  }

  #push(kind: EffectKind, taskId: TaskId, nodeId: NodeId): void {
    const i = this.#length;
    this.#kinds[i] = kind;
    this.#taskIds[i] = taskId;
    this.#nodeIds[i] = nodeId;
    this.#length = i + 1;
  }

  #perform(i: number, performer: EffectPerformer): void {
    const kind = this.#kinds[i] as EffectKind;
    const taskId = this.#taskIds[i] as TaskId;
    const nodeId = this.#nodeIds[i] as NodeId;
    switch (kind) {
      case 'admitted':
        return performer.admitted(taskId);
      case 'assign':
        return performer.assign(taskId, nodeId, this.#attempts[i] as number);
      case 'degraded':
        return performer.degraded(taskId, this.#steps[i] as DegradeStep);
      case 'abort':
        return performer.abort(taskId, nodeId);
      case 'outcome':
        return performer.outcome(taskId, this.#outcomes[i] as Outcome);
      case 'node-state':
        return performer.nodeState(nodeId, this.#states[i] as NodeState);
      case 'node-drained':
        return performer.nodeDrained(nodeId);
      default:
        return assertNever(kind);
    }
  }

  #clear(): void {
    if (this.#length > KEPT_EFFECTS_MAX) {
      for (const array of [this.#kinds, this.#taskIds, this.#nodeIds, this.#attempts]) array.length = 0;
      this.#outcomes.length = 0;
      this.#states.length = 0;
      this.#steps.length = 0;
    }
    this.#length = 0;
  }
}
