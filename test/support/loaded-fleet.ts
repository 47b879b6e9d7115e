/** A scheduler in virtual time under load, for tests of the overload ladder. */
import type { DurationUs, MonoUs } from '../../src/base/units.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../../src/core/config/defaults.ts';
import type { LadderView, ModelLadderView } from '../../src/core/overload/index.ts';
import type { Outcome } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { NodeSpec } from '../../src/core/scheduler/events.ts';
import { VirtualRun } from './virtual-run.ts';
import { nodeSpec, S, taskSpec } from './specs.ts';

export class LoadedFleet {
  readonly run: VirtualRun;
  readonly ends: { readonly task: TaskSpec; readonly outcome: Outcome; readonly at: MonoUs }[] = [];
  #nextId = 1;

  constructor(overrides: SchedulerOverrides = {}) {
    this.run = new VirtualRun(defaultSchedulerConfig(overrides), {
      outcome: (task, outcome, at) => void this.ends.push({ task, outcome, at }),
    });
  }

  /** A node at the speed of the reference, with lognormal noise of `sigma`. */
  node(id: string, change: Partial<NodeSpec> = {}, sigma = 0): this {
    this.run.addNode({ spec: nodeSpec(id, change), speed: 1, sigma });
    return this;
  }

  /** Submits a task and tells how it ended at once; undefined when it was let in. */
  submit(change: Partial<TaskSpec> = {}): Outcome | undefined {
    const task = taskSpec(this.#nextId++, { deadlineAt: this.run.now + 30 * S, ...change });
    this.run.submit(task);
    const last = this.ends.at(-1);
    return last?.task === task ? last.outcome : undefined;
  }

  /** For a number of seconds, each class and model offers this many tasks of a second's work a second. */
  load(seconds: number, perSecond: number, change: Partial<TaskSpec> = {}): void {
    for (let i = 0; i < seconds * perSecond; i++) {
      this.run.runUntil(this.run.now + Math.round(S / perSecond));
      this.submit({ tenant: `t${i % 4}`, ...change });
    }
  }

  set(stage: LadderView['stage'], forUs: DurationUs = 3_600 * S): void {
    this.run.apply({ kind: 'ladder-override', override: { stage, forUs, who: 'ops', why: 'drill' } });
  }

  get view(): LadderView {
    return this.run.scheduler.ladder(this.run.now);
  }

  model(model = 'm'): ModelLadderView {
    return this.view.models.find((row) => row.model === model) as ModelLadderView;
  }

  reasons(className: string): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { task, outcome } of this.ends) {
      if (task.className !== className) continue;
      const name = 'reason' in outcome ? outcome.reason : outcome.kind;
      counts[name] = (counts[name] ?? 0) + 1;
    }
    return counts;
  }
}
