/**
 * A policy of the simulator under watch: after every event its books are compared with a model that knows only who was
 * submitted, who is under way and who has had an outcome; and no task is sent to a node that was not there to take it.
 */
import { expect } from 'vitest';
import type { MonoUs, NodeId, TaskId } from '../../src/base/units.ts';
import type { AttemptResult, Outcome } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { EffectSink } from '../../src/core/scheduler/effects.ts';
import type { NodeSpec, SchedulerEvent } from '../../src/core/scheduler/events.ts';
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type { Policy } from '../../src/simulator/policies/policy.ts';
import { createPolicy } from '../../src/simulator/policies/registry.ts';
import type { FuzzWorld } from './fuzz.ts';
import { nodeSpec } from './specs.ts';

export class CheckedPolicy implements FuzzWorld {
  now: MonoUs = 0;
  readonly policy: Policy;
  readonly log: string[] = [];
  readonly specs: Map<TaskId, TaskSpec> = new Map();
  readonly outcomes: Map<TaskId, Outcome> = new Map();
  readonly tried: Map<TaskId, NodeId[]> = new Map();
  /** Assigned and not ended. */
  readonly permits: Map<TaskId, NodeId> = new Map();
  readonly #nodes: Map<NodeId, NodeSpec> = new Map();
  readonly #admitted: Set<TaskId> = new Set();
  readonly #aborted: Set<TaskId> = new Set();
  readonly #out: EffectSink;

  constructor(policy: Policy) {
    this.policy = policy;
    this.#out = this.#sink();
  }

  apply(event: SchedulerEvent): void {
    if (event.kind === 'submit') this.specs.set(event.task.id, event.task);
    if (event.kind === 'node-registered') this.#nodes.set(event.node.id, event.node);
    if (event.kind === 'node-removed') this.#nodes.delete(event.nodeId);
    if (event.kind === 'attempt-ended') {
      this.permits.delete(event.taskId);
      this.#aborted.delete(event.taskId);
    }
    this.policy.apply(event, this.now, this.#out);
    this.#check();
  }

  submit(task: TaskSpec): Outcome | undefined {
    this.apply({ kind: 'submit', task });
    return this.outcomes.get(task.id);
  }

  end(taskId: TaskId, result: AttemptResult = { kind: 'ok' }): void {
    this.apply({ kind: 'attempt-ended', taskId, result });
  }

  /** Lets time pass, waking the policy exactly when it asks for it. */
  advance(durationUs: number): void {
    const until = this.now + durationUs;
    for (let wakes = 0; this.policy.nextWakeAt() <= until; wakes++) {
      expect(wakes, 'the policy asks to be woken without time passing').toBeLessThan(100_000);
      this.now = Math.max(this.now, this.policy.nextWakeAt());
      this.apply({ kind: 'tick' });
    }
    this.now = until;
    this.apply({ kind: 'tick' });
  }

  /** Ends everything that is under way, again and again until nothing is. */
  endAll(result: AttemptResult = { kind: 'ok' }): void {
    for (let rounds = 0; this.permits.size > 0; rounds++) {
      expect(rounds, 'work never ends').toBeLessThan(10_000);
      for (const taskId of [...this.permits.keys()]) this.end(taskId, result);
    }
  }

  runningOn(nodeId: NodeId): TaskId[] {
    return [...this.permits].filter(([, id]) => id === nodeId).map(([taskId]) => taskId);
  }

  #check(): void {
    const { arrived, ...ends } = this.policy.accounts();
    const running = [...this.permits.keys()].filter((id) => !this.outcomes.has(id)).length;
    const { queued, running: ownRunning, ...settled } = ends;
    const sum = Object.values(settled).reduce((total, count) => total + count, 0);
    const open = this.specs.size - this.outcomes.size;
    const seen = { arrived, running: ownRunning, settled: sum, queued };
    const expected = {
      arrived: this.specs.size,
      running,
      settled: this.outcomes.size,
      queued: open - running,
    };
    if (JSON.stringify(seen) !== JSON.stringify(expected)) expect(seen).toEqual(expected);
  }

  #sink(): EffectSink {
    const note = (line: string): void => void this.log.push(`${this.now} ${line}`);
    return {
      admitted: (taskId) => {
        note(`admitted ${taskId}`);
        if (this.#admitted.has(taskId)) throw new Error(`Task ${taskId} was admitted twice`);
        this.#admitted.add(taskId);
      },
      assign: (taskId, nodeId, attempt) => {
        note(`assign ${taskId} ${nodeId} ${attempt}`);
        this.#checkAssignment(taskId, nodeId, attempt);
        this.permits.set(taskId, nodeId);
      },
      degraded: () => {
        throw new Error('No baseline gives lesser answers');
      },
      abort: (taskId, nodeId) => {
        note(`abort ${taskId} ${nodeId}`);
        if (this.permits.get(taskId) !== nodeId) throw new Error(`Task ${taskId} does not run on ${nodeId}`);
        if (this.#aborted.has(taskId)) throw new Error(`Task ${taskId} was aborted twice`);
        this.#aborted.add(taskId);
      },
      outcome: (taskId, outcome) => {
        note(`outcome ${taskId} ${JSON.stringify(outcome)}`);
        if (this.outcomes.has(taskId)) throw new Error(`Task ${taskId} has two outcomes`);
        if (!this.specs.has(taskId)) throw new Error(`Task ${taskId} was never submitted`);
        this.outcomes.set(taskId, outcome);
      },
      nodeState() {},
      nodeDrained() {},
    };
  }

  #checkAssignment(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    const spec = this.specs.get(taskId);
    const node = this.#nodes.get(nodeId);
    if (this.outcomes.has(taskId)) throw new Error(`Task ${taskId} was assigned after its outcome`);
    if (!this.#admitted.has(taskId)) throw new Error(`Task ${taskId} was assigned before it was admitted`);
    if (this.permits.has(taskId)) throw new Error(`Task ${taskId} was assigned twice at once`);
    if (node === undefined) throw new Error(`Task ${taskId} was sent to ${nodeId}, which is gone`);
    if (!node.models.some(({ model }) => model === spec?.model))
      throw new Error(`Task ${taskId} was sent to ${nodeId}, which does not offer its model`);
    const tried = this.tried.get(taskId) ?? [];
    if (tried.includes(nodeId)) throw new Error(`Task ${taskId} was retried on ${nodeId}`);
    if (attempt !== tried.length + 1)
      throw new Error(`Task ${taskId} counts attempt ${attempt} after ${tried.length}`);
    this.tried.set(taskId, [...tried, nodeId]);
  }
}

/** A node of this true rate, as its registration tells it. */
export interface NodeOfRate {
  readonly rate: number;
  readonly slots?: number;
}

/** A policy with nodes `n0`, `n1` and so on, of one slot each and known rates. */
export function policyWorld(
  policy: string,
  nodes: readonly NodeOfRate[],
  options: Readonly<Record<string, number | string>> = {},
): CheckedPolicy {
  const config = defaultSchedulerConfig();
  const world = new CheckedPolicy(createPolicy({ policy, config, options }, 1));
  for (const [index, { rate, slots = 1 }] of nodes.entries()) {
    const rates = [{ model: 'm', rate, observations: 100 }];
    const memory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates };
    world.apply({ kind: 'node-registered', node: nodeSpec(`n${index}`, { slots }), memory });
  }
  return world;
}
