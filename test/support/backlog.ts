/** Load in virtual time: flows that always have something waiting, and what each of them was served. */
import { createPrng, type Prng } from '../../src/base/prng.ts';
import type { NodeSpec } from '../../src/core/scheduler/events.ts';
import { type SchedulerOverrides, defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import { VirtualRun } from './virtual-run.ts';
import { MS, nodeSpec, S, taskSpec } from './specs.ts';

const HOUR = 3_600 * S;
const REFILL_US = 100 * MS;

/** No gate and no deadline in the way: what is measured is the order of service alone. */
export const OPEN_GATE: SchedulerOverrides = {
  admission: { flowWaitMsMax: 86_400_000, flowWaitDeadlineShare: 1 },
};

export interface FlowLoad {
  readonly className: string;
  readonly tenant: string;
  readonly models: readonly string[];
  /** Sizes are drawn evenly from here. */
  readonly workUs: readonly [least: number, most: number];
  /** How many tasks are kept waiting; 0 for a flow that is driven by hand. */
  readonly depth: number;
}

export interface Assignment {
  readonly at: number;
  readonly task: TaskSpec;
  readonly nodeId: string;
}

export class BackloggedRun {
  readonly run: VirtualRun;
  readonly assignments: Assignment[] = [];
  readonly submittedAt: Map<number, number> = new Map();
  readonly doneAt: Map<number, number> = new Map();
  readonly refused: TaskSpec[] = [];
  readonly #waiting: Map<string, number> = new Map();
  readonly #seen: Set<number> = new Set();
  readonly #prng: Prng;
  readonly #flows: readonly FlowLoad[];
  #nextId = 1;

  constructor(flows: readonly FlowLoad[], seed: number, overrides: SchedulerOverrides = {}) {
    this.#flows = flows;
    this.#prng = createPrng(seed);
    this.run = new VirtualRun(defaultSchedulerConfig({ ...OPEN_GATE, ...overrides, seed }), {
      assigned: (task, nodeId, at) => {
        this.assignments.push({ at, task, nodeId });
        if (!this.#seen.has(task.id)) this.#leave(task);
        this.#seen.add(task.id);
      },
      outcome: (task, outcome, at) => {
        this.doneAt.set(task.id, at);
        if (outcome.kind !== 'served') this.refused.push(task);
        if (!this.#seen.has(task.id)) this.#leave(task);
      },
    });
  }

  /** A node whose true speed the scheduler is not told. */
  addNode(id: string, speed: number, change: Partial<NodeSpec> & { readonly sigma?: number } = {}): void {
    const { sigma = 0, ...spec } = change;
    this.run.addNode({ spec: nodeSpec(id, spec), speed, sigma });
  }

  submit(flow: FlowLoad, change: Partial<TaskSpec> = {}): TaskSpec {
    const [least, most] = flow.workUs;
    const task = taskSpec(this.#nextId++, {
      className: flow.className,
      tenant: flow.tenant,
      model: flow.models[this.#prng.nextBelow(flow.models.length)] as string,
      workUs: least + this.#prng.nextBelow(most - least + 1),
      deadlineAt: this.run.now + HOUR,
      ...change,
    });
    this.submittedAt.set(task.id, this.run.now);
    this.#waiting.set(keyOf(flow), (this.#waiting.get(keyOf(flow)) ?? 0) + 1);
    this.run.submit(task);
    return task;
  }

  /** Runs with every flow kept at its depth. */
  runUntil(until: number): void {
    while (this.run.now < until) {
      for (const flow of this.#flows) {
        while ((this.#waiting.get(keyOf(flow)) ?? 0) < flow.depth) this.submit(flow);
      }
      this.run.runUntil(Math.min(until, this.run.now + REFILL_US));
    }
  }

  /** Work sent to nodes from `from` until before `until`, by whatever names a task. */
  servedUs(from: number, until: number, nameOf: (task: TaskSpec) => string): Map<string, number> {
    const served = new Map<string, number>();
    for (const { at, task } of this.assignments) {
      if (at < from || at >= until) continue;
      served.set(nameOf(task), (served.get(nameOf(task)) ?? 0) + task.workUs);
    }
    return served;
  }

  waitsUs(of: (task: TaskSpec) => boolean): number[] {
    return this.assignments
      .filter(({ task }) => of(task))
      .map(({ at, task }) => at - (this.submittedAt.get(task.id) as number))
      .sort((a, b) => a - b);
  }

  #leave(task: TaskSpec): void {
    const key = keyOf(task);
    this.#waiting.set(key, (this.#waiting.get(key) as number) - 1);
  }
}

function keyOf(flow: { readonly className: string; readonly tenant: string }): string {
  return `${flow.className}/${flow.tenant}`;
}

export function quantile(sorted: readonly number[], at: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? 0;
}

export function jainIndex(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  const squares = values.reduce((total, value) => total + value * value, 0);
  return (sum * sum) / (values.length * squares);
}
