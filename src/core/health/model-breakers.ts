/**
 * What is broken when a model fails: the node, the model on that node, or the model wherever it runs.
 *
 *   node                 failure score over all it serves (`NodeRecord.failures`); ejection
 *   model on one node    failure score of that model there; closes the node for the model alone
 *   model everywhere     half of its last outcomes failed, and three quarters of the nodes that could serve it failed it
 *                        last; refuses the model at the door
 *
 * A node of one model has no score of the second kind: its ejection is that breaker. The records are made by a first
 * failure and forgotten when nothing speaks against the model any more, so a healthy fleet has none.
 */
import type { MonoUs } from '../../base/units.ts';
import { Breaker, type BreakerMemory } from './breaker.ts';
import { type FailureMemory, FailureScore } from './failure-score.ts';
import type { NodeRecord } from './node-record.ts';
import { OutcomeWindow } from './outcome-window.ts';

/** Models watched at once; as many as have learned work. Beyond it nodes are ejected one by one, as without it. */
export const WATCHED_MODELS_MAX = 10_000;
/** Distinct nodes that must have failed a model last before it is the model. */
const FAILING_NODES_MIN = 2;
const FAILING_NODES_RATIO = 0.75;
/** Of a model's name in a sentence for people. */
const NAME_LENGTH_MAX = 80;

/** One model on one node that serves several. */
export class ModelOnNode {
  readonly model: string;
  readonly breaker: Breaker = new Breaker();
  readonly failures: FailureScore = new FailureScore();

  constructor(model: string) {
    this.model = model;
  }

  get isSpotless(): boolean {
    return !this.breaker.isTrial && this.breaker.opens === 0 && this.failures.isSpotless;
  }
}

/** One model wherever it runs. */
export class ModelAnywhere {
  readonly model: string;
  readonly breaker: Breaker = new Breaker();
  readonly window: OutcomeWindow = new OutcomeWindow();
  /** Nodes whose last outcome of the model was a failure. At most the nodes that offer it. */
  readonly failing: Set<NodeRecord> = new Set();
  /** Why it is open, for people. */
  cause = '';

  constructor(model: string) {
    this.model = model;
  }

  get isSpotless(): boolean {
    const { breaker, window } = this;
    return !breaker.isTrial && breaker.opens === 0 && this.failing.size === 0 && window.failures === 0;
  }

  /** Whether it fails wherever it runs. `open`: seats of nodes that could take it now. O(failing nodes). */
  failsEverywhere(openSeats: number, now: MonoUs): boolean {
    if (this.failing.size < FAILING_NODES_MIN || !this.window.isOverLimit(now)) return false;
    let candidates = openSeats;
    for (const node of this.failing) if (!node.isSeatedFor(this.model)) candidates += 1;
    return this.failing.size >= candidates * FAILING_NODES_RATIO;
  }

  explain(): void {
    const { size, failures } = this.window;
    const seen =
      size === 0
        ? 'it failed on all nodes before the restart'
        : `${failures} of its last ${size} attempts failed, on ${this.failing.size} nodes`;
    this.cause = `Breaker of model ${this.model.slice(0, NAME_LENGTH_MAX)}: ${seen}`;
  }
}

/** A breaker in a node's memory. The one of the whole model is remembered by each node that failed it. */
export interface ModelMemory extends BreakerMemory {
  readonly model: string;
  readonly scope: 'node' | 'everywhere';
  readonly failures?: FailureMemory;
}

/** A breaker for people. */
export interface BreakerView {
  readonly model: string;
  /** `node`: the model on this node alone. `everywhere`: the model on all nodes. */
  readonly scope: 'node' | 'everywhere';
  readonly state: 'closed' | 'open' | 'half-open';
  readonly openForMs: number;
  readonly opens: number;
  /** Share of successes among the last 20 outcomes of the model there. */
  readonly successRatio: number;
}
