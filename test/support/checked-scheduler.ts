/**
 * The scheduler under watch: after every event the books are compared with a model that knows nothing of queues or
 * nodes, only who was submitted, who holds a permit and who has had an outcome.
 */
import { expect } from 'vitest';
import type { MonoUs, NodeId, TaskId } from '../../src/base/units.ts';
import type { SchedulerConfig } from '../../src/core/config/types.ts';
import type { NodeState } from '../../src/core/health/state.ts';
import type { AttemptResult, Outcome } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { Scheduler } from '../../src/core/scheduler/contract.ts';
import type { EffectSink } from '../../src/core/scheduler/effects.ts';
import type { SchedulerEvent } from '../../src/core/scheduler/events.ts';
import { createScheduler } from '../../src/core/scheduler/scheduler.ts';
import type { Accounts, QueueGroupView } from '../../src/core/scheduler/views.ts';

export interface Permit {
  readonly nodeId: NodeId;
  readonly attempt: number;
  readonly takenAt: MonoUs;
  isAborted: boolean;
}

/** Events between two recounts of the queue, at least; and a part of the tasks that ever were, since a recount looks at each of them. */
const RECOUNT_EVERY = 29;
const RECOUNT_PARTS = 8;

function sumOf(groups: Readonly<Record<string, QueueGroupView>>): number {
  return Object.values(groups).reduce((sum, { depth }) => sum + depth, 0);
}

export class CheckedScheduler {
  readonly scheduler: Scheduler;
  readonly config: SchedulerConfig;
  now: MonoUs = 0;
  /** Every effect as a line of text: what "byte for byte" compares. */
  readonly log: string[] = [];
  readonly specs: Map<TaskId, TaskSpec> = new Map();
  readonly outcomes: Map<TaskId, Outcome> = new Map();
  /** Nodes that each task was sent to, in order. */
  readonly tried: Map<TaskId, NodeId[]> = new Map();
  /** Alternatives that stood in for each task, in order. */
  readonly taken: Map<TaskId, number[]> = new Map();
  /** Permits that are out: assigned and not yet given back. */
  readonly permits: Map<TaskId, Permit> = new Map();
  /** Tasks that were asked for their place, in order, and those whose attempt ended by that. */
  readonly asked: TaskId[] = [];
  readonly gaveWay: Set<TaskId> = new Set();
  /** Called at every assignment, once it is booked. */
  onAssign: (taskId: TaskId, nodeId: NodeId) => void = () => {};
  /** The state of every node that was told last. */
  readonly nodeStates: Map<NodeId, NodeState> = new Map();
  readonly #admitted: Set<TaskId> = new Set();
  readonly #submittedAt: Map<TaskId, MonoUs> = new Map();
  #events = 0;
  #recountAt = RECOUNT_EVERY;
  readonly #out: EffectSink;

  constructor(config: SchedulerConfig) {
    this.config = config;
    this.scheduler = createScheduler(config);
    this.#out = this.#sink();
  }

  get accounts(): Accounts {
    return this.scheduler.accounts();
  }

  apply(event: SchedulerEvent): void {
    if (event.kind === 'submit') {
      this.specs.set(event.task.id, event.task);
      this.#submittedAt.set(event.task.id, this.now);
    }
    if (event.kind === 'attempt-ended') {
      if (this.#isGivingWay(event.taskId, event.result)) this.gaveWay.add(event.taskId);
      this.permits.delete(event.taskId);
    }
    this.scheduler.apply(event, this.now, this.#out);
    this.check();
    this.#events += 1;
    if (this.#events < this.#recountAt) return;
    this.#recountAt = this.#events + Math.max(RECOUNT_EVERY, this.specs.size / RECOUNT_PARTS);
    this.recountQueue();
  }

  submit(task: TaskSpec): Outcome | undefined {
    this.apply({ kind: 'submit', task });
    return this.outcomes.get(task.id);
  }

  end(taskId: TaskId, result: AttemptResult = { kind: 'ok' }): void {
    this.apply({ kind: 'attempt-ended', taskId, result });
  }

  /** Lets time pass, waking the scheduler exactly when it asks for it. */
  advance(durationUs: number): void {
    const until = this.now + durationUs;
    for (let wakes = 0; ; wakes++) {
      const at = this.scheduler.nextWakeAt();
      if (at > until) break;
      expect(wakes, 'the scheduler asks to be woken again and again without time passing').toBeLessThan(
        100_000,
      );
      this.now = Math.max(this.now, at);
      this.apply({ kind: 'tick' });
    }
    this.now = until;
    this.apply({ kind: 'tick' });
  }

  /** Gives every permit back, again and again until none is out. */
  endAll(result: (taskId: TaskId) => AttemptResult = () => ({ kind: 'ok' })): void {
    for (let rounds = 0; this.permits.size > 0; rounds++) {
      expect(rounds, 'work never ends').toBeLessThan(100_000);
      for (const taskId of [...this.permits.keys()]) this.end(taskId, result(taskId));
    }
  }

  runningOn(nodeId: NodeId): TaskId[] {
    return [...this.permits].filter(([, permit]) => permit.nodeId === nodeId).map(([id]) => id);
  }

  /** The books, as integers, and the permits of every node. */
  check(): void {
    const accounts = this.accounts;
    const { arrived, ...ends } = accounts;
    for (const [name, count] of Object.entries(accounts)) {
      if (!Number.isInteger(count) || count < 0) expect(count, `${name} is a count`).toBe('a count');
    }
    const sum = Object.values(ends).reduce((total, count) => total + count, 0);
    if (sum !== arrived || arrived !== this.specs.size) {
      expect({ ...accounts, sum }, 'arrived is the sum of the rest').toMatchObject({
        arrived: sum,
        sum: this.specs.size,
      });
    }
    const running = [...this.permits.keys()].filter((id) => !this.outcomes.has(id)).length;
    if (accounts.running !== running) expect(accounts.running, 'running tasks').toBe(running);
    const settled =
      accounts.served +
      accounts.degraded +
      accounts.rejected +
      accounts.evicted +
      accounts.failed +
      accounts.cancelled;
    if (settled !== this.outcomes.size) expect(settled, 'outcomes').toBe(this.outcomes.size);
    const inflight = new Map<NodeId, number>();
    for (const { nodeId } of this.permits.values()) inflight.set(nodeId, (inflight.get(nodeId) ?? 0) + 1);
    for (const node of this.scheduler.nodes(this.now)) {
      const own = inflight.get(node.id) ?? 0;
      if (node.inflight > own) expect(node.inflight, `permits of ${node.id}`).toBe(own);
    }
  }

  /** The view of the queue, which reads counters, against a count of who waits. Lesser answers may be of another model. */
  recountQueue(): void {
    const view = this.scheduler.queue(this.now);
    const byModel = new Map<string, number>();
    let depth = 0;
    let submittedAt = this.now;
    let isLaidAgain = false;
    for (const taskId of this.#admitted) {
      if (this.outcomes.has(taskId) || this.permits.has(taskId)) continue;
      depth += 1;
      const { model } = this.specs.get(taskId) as TaskSpec;
      byModel.set(model, (byModel.get(model) ?? 0) + 1);
      submittedAt = Math.min(submittedAt, this.#submittedAt.get(taskId) ?? this.now);
      isLaidAgain ||= this.tried.has(taskId) || this.taken.has(taskId);
    }
    const sums = [view.byClass, view.byModel, ...Object.values(view.byClassAndModel)].map(sumOf);
    const [ofClasses, ofModels, ...ofClassAndModel] = sums;
    const both = ofClassAndModel.reduce((sum, one) => sum + one, 0);
    expect([view.depth, ofClasses, ofModels, both], 'queued').toEqual([depth, depth, depth, depth]);
    if (Object.keys(view.byTenant).length < 100) expect(sumOf(view.byTenant), 'of tenants').toBe(depth);
    const longestMs = (this.now - submittedAt) / 1_000;
    // Who was tried, or became a lesser one, stands behind those that came meanwhile.
    if (isLaidAgain) expect(view.oldestWaitMs).toBeLessThanOrEqual(longestMs + 0.1);
    else expect(view.oldestWaitMs, 'who waits longest').toBeCloseTo(longestMs, 0);
    if (this.taken.size > 0) return;
    const shown = Object.entries(view.byModel).map(([model, group]) => [model, group.depth] as const);
    expect(new Map(shown), 'by model').toEqual(byModel);
  }

  /** An abort without an outcome takes its place: the node is none that failed, and may get the task again. */
  #isGivingWay(taskId: TaskId, result: AttemptResult): boolean {
    const permit = this.permits.get(taskId);
    if (permit?.isAborted !== true || this.outcomes.has(taskId)) return false;
    if (result.kind !== 'aborted' || result.passed !== undefined) return false;
    this.tried.set(taskId, (this.tried.get(taskId) ?? []).slice(0, -1));
    return true;
  }

  #sink(): EffectSink {
    const note = (line: string): void => void this.log.push(`${this.now} ${line}`);
    return {
      admitted: (taskId) => {
        note(`admitted ${taskId}`);
        this.#admitted.add(taskId);
      },
      assign: (taskId, nodeId, attempt) => {
        note(`assign ${taskId} ${nodeId} ${attempt}`);
        if (this.outcomes.has(taskId)) throw new Error(`Task ${taskId} was assigned after its outcome`);
        if (!this.#admitted.has(taskId))
          throw new Error(`Task ${taskId} was assigned before it was admitted`);
        if (this.permits.has(taskId)) throw new Error(`Task ${taskId} was assigned twice at once`);
        const tried = this.tried.get(taskId) ?? [];
        if (tried.includes(nodeId)) throw new Error(`Task ${taskId} was retried on ${nodeId}`);
        const before = tried.length + (this.gaveWay.has(taskId) ? 1 : 0);
        if (attempt !== before + 1)
          throw new Error(`Task ${taskId} counts attempt ${attempt} after ${before}`);
        this.tried.set(taskId, [...tried, nodeId]);
        this.permits.set(taskId, { nodeId, attempt, takenAt: this.now, isAborted: false });
        this.onAssign(taskId, nodeId);
      },
      degraded: (taskId, { index, because, verdict }) => {
        note(`degraded ${taskId} ${index} ${because} ${verdict}`);
        if (this.outcomes.has(taskId)) throw new Error(`Task ${taskId} was degraded after its outcome`);
        if (verdict !== 'taken') return;
        const taken = this.taken.get(taskId) ?? [];
        if (index <= (taken.at(-1) ?? -1)) throw new Error(`Task ${taskId} took alternative ${index} again`);
        this.taken.set(taskId, [...taken, index]);
      },
      abort: (taskId, nodeId) => {
        note(`abort ${taskId} ${nodeId}`);
        const permit = this.permits.get(taskId);
        if (permit === undefined || permit.nodeId !== nodeId)
          throw new Error(`Task ${taskId} does not run on ${nodeId}`);
        if (permit.isAborted) throw new Error(`Task ${taskId} was aborted twice`);
        permit.isAborted = true;
        if (this.outcomes.has(taskId)) return;
        if (this.asked.includes(taskId)) throw new Error(`Task ${taskId} was asked for its place twice`);
        this.asked.push(taskId);
      },
      outcome: (taskId, outcome) => {
        note(`outcome ${taskId} ${JSON.stringify(outcome)}`);
        if (this.outcomes.has(taskId)) throw new Error(`Task ${taskId} has two outcomes`);
        if (!this.specs.has(taskId)) throw new Error(`Task ${taskId} was never submitted`);
        this.outcomes.set(taskId, outcome);
      },
      nodeState: (nodeId, state) => {
        note(`node ${nodeId} ${state}`);
        this.nodeStates.set(nodeId, state);
      },
      nodeDrained: (nodeId) => note(`drained ${nodeId}`),
    };
  }
}
