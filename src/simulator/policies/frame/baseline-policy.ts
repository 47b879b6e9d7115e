/**
 * The part that all baselines share: the table of tasks, books, nodes with a simple view of their health, retries. The rule
 * itself is a discipline.
 *
 * Health, as balancers have it: a node takes nothing while its probe says that it is not alive, nor for a cooldown after a
 * number of failures in a row; when that leaves no node, nodes in cooldown are used after all. A task whose attempt failed is
 * tried on another node, as often as `attempts` says and never twice on one node. Numbers from outside pass the same
 * door as Spillway's (`saneTask`).
 *
 * Invariants: arrived = outcomes + queued + running; a task is in `#tasks` until it has its outcome and no attempt is under
 * way; a node that does not answer and a node that is removed keep nothing that waits for them.
 */
import { createPrng, type Prng } from '../../../base/prng.ts';
import type { DurationUs, MonoUs, NodeId, TaskId } from '../../../base/units.ts';
import type { SchedulerConfig } from '../../../core/config/types.ts';
import type { AttemptResult, EvictReason, Outcome, RejectReason } from '../../../core/request/outcome.ts';
import type { TaskSpec } from '../../../core/request/task.ts';
import type { AttemptLimits } from '../../../core/scheduler/contract.ts';
import type { EffectSink } from '../../../core/scheduler/effects.ts';
import type { NodeMemory, SchedulerEvent } from '../../../core/scheduler/events.ts';
import { saneTask, SILENT_SINK } from '../../../core/scheduler/index.ts';
import type { Accounts } from '../../../core/scheduler/views.ts';
import type { Policy, PolicyContext } from '../policy.ts';
import type { BaselineNode } from './baseline-node.ts';
import { BaselineTask } from './baseline-task.ts';
import type { Desk, Discipline } from './discipline.ts';
import { memoryOf, NodeTable } from './node-table.ts';

export interface BaselineOptions {
  /** Most attempts of a task. */
  readonly attempts: number;
  /** Failures in a row that close a node; 0 for never. */
  readonly failuresMax: number;
  readonly cooldownUs: DurationUs;
  /** An attempt that is silent for so long has failed; 0 for never. */
  readonly timeoutUs: DurationUs;
}

export type DisciplineFactory = (desk: Desk) => Discipline;

type Counts = { -readonly [Name in keyof Accounts]: number };

export class BaselinePolicy implements Policy, Desk {
  now: MonoUs = 0;
  config: SchedulerConfig;
  readonly prng: Prng;
  readonly #table: NodeTable = new NodeTable();
  readonly #tasks: Map<TaskId, BaselineTask> = new Map();
  readonly #options: BaselineOptions;
  readonly #discipline: Discipline;
  readonly #limits: AttemptLimits;
  readonly #counts: Counts = {
    arrived: 0,
    served: 0,
    degraded: 0,
    rejected: 0,
    evicted: 0,
    failed: 0,
    cancelled: 0,
    queued: 0,
    running: 0,
  };
  #ranks: ReadonlyMap<string, number> = new Map();
  #order = 0;
  #isShuttingDown = false;
  #out: EffectSink = SILENT_SINK;

  constructor(context: PolicyContext, options: BaselineOptions, create: DisciplineFactory) {
    this.config = context.config;
    this.prng = createPrng(context.seed);
    this.#options = options;
    this.#limits = { firstByteUs: options.timeoutUs, idleUs: 0 };
    this.#configure(context.config);
    this.#discipline = create(this);
  }

  get nodes(): readonly BaselineNode[] {
    return this.#table.nodes;
  }

  accounts(): Accounts {
    return { ...this.#counts };
  }

  attemptLimits(_taskId: TaskId): AttemptLimits {
    return this.#limits;
  }

  nextWakeAt(): MonoUs {
    return Math.min(this.#table.opensAt, this.#discipline.nextWakeAt?.() ?? Number.POSITIVE_INFINITY);
  }

  drainUs(nodeId: NodeId): DurationUs {
    return this.#table.get(nodeId)?.workLeftUs(this.now) ?? 0;
  }

  /** Nodes are its configuration, which outlives it; what it learned of them does not. */
  nodeMemory(nodeId: NodeId): NodeMemory | undefined {
    const node = this.#table.get(nodeId);
    return node === undefined ? undefined : memoryOf(node);
  }

  apply(event: SchedulerEvent, now: MonoUs, out: EffectSink): void {
    this.now = now;
    this.#out = out;
    if (this.nextWakeAt() <= now) this.#wake();
    this.#handle(event);
    this.#out = SILENT_SINK;
  }

  candidates(task: BaselineTask): readonly BaselineNode[] {
    return this.#table.candidates(task, this.now);
  }

  mayTake(node: BaselineNode, task: BaselineTask): boolean {
    return this.#table.mayTake(node, task, this.now);
  }

  admit(task: BaselineTask): void {
    if (task.isAdmitted) return;
    task.isAdmitted = true;
    this.#out.admitted(task.spec.id);
  }

  start(task: BaselineTask, node: BaselineNode): void {
    this.admit(task);
    task.node = node;
    task.isRunning = true;
    task.attempts += 1;
    task.firstByteAt = -1;
    node.run(task, this.now);
    this.#counts.queued -= 1;
    this.#counts.running += 1;
    this.#out.assign(task.spec.id, node.spec.id, task.attempts);
  }

  reject(task: BaselineTask, reason: RejectReason, afterUs: DurationUs = 0): void {
    if (task.isAdmitted) return this.evict(task, 'no-node');
    this.#settle(task, { kind: 'rejected', reason, hint: { retryable: true, afterUs } });
  }

  evict(task: BaselineTask, reason: EvictReason): void {
    this.#settle(task, { kind: 'evicted', reason, hint: { retryable: true, afterUs: 0 } });
  }

  #wake(): void {
    if (this.#table.opensAt <= this.now)
      for (const node of this.#table.takeOpened(this.now)) this.#discipline.offer(node);
    if ((this.#discipline.nextWakeAt?.() ?? Number.POSITIVE_INFINITY) <= this.now) this.#discipline.wake?.();
  }

  #handle(event: SchedulerEvent): void {
    switch (event.kind) {
      case 'submit':
        return this.#submit(saneTask(event.task, this.now));
      case 'attempt-first-byte':
      case 'attempt-ended':
      case 'cancel':
        return this.#handleTask(event);
      case 'node-registered':
        return this.#register(event);
      case 'config':
        return this.#configure(event.config);
      case 'shutdown':
        this.#isShuttingDown = true;
        for (const task of [...this.#discipline.waiting()]) this.#dismiss(task, 'shutting-down');
        return;
      default:
        if ('nodeId' in event) this.#handleNode(event);
    }
  }

  #configure(config: SchedulerConfig): void {
    this.config = config;
    this.#ranks = new Map(config.classes.map(({ name }, index) => [name, index]));
    this.#table.describe(config);
  }

  #submit(spec: TaskSpec): void {
    const { arrived } = this.#counts;
    const rank = this.#ranks.get(spec.className) ?? this.#ranks.size;
    const task = new BaselineTask(spec, this.#order++, { arrivedAt: this.now, rank });
    this.#counts.arrived = arrived + 1;
    this.#counts.queued += 1;
    this.#tasks.set(spec.id, task);
    if (this.#isShuttingDown) return this.reject(task, 'shutting-down');
    if (!this.#table.anyFits(spec)) return this.reject(task, 'no-node');
    this.#discipline.enter(task);
  }

  #handleTask(event: Extract<SchedulerEvent, { taskId: number }>): void {
    const task = this.#tasks.get(event.taskId);
    if (task === undefined) return;
    if (event.kind === 'attempt-first-byte') task.firstByteAt = this.now;
    else if (event.kind === 'cancel') this.#cancel(task);
    else if (event.kind === 'attempt-ended' && task.isRunning) this.#end(task, event.result);
  }

  #cancel(task: BaselineTask): void {
    if (task.isSettled) return;
    const node = task.isRunning ? task.node : null;
    if (node === null) this.#discipline.leave(task);
    this.#settle(task, { kind: 'cancelled' });
    if (node !== null) this.#out.abort(task.spec.id, node.spec.id);
  }

  #end(task: BaselineTask, result: AttemptResult): void {
    const node = task.node as BaselineNode;
    node.release(task);
    this.#discipline.ended?.(task, node, result);
    this.#judge(task, node, result);
    if (task.isSettled) this.#tasks.delete(task.spec.id);
    else this.#conclude(task, node, result);
    if (!node.isGone) this.#discipline.offer(node);
  }

  /** What the attempt says of its node. */
  #judge(task: BaselineTask, node: BaselineNode, result: AttemptResult): void {
    if (result.kind === 'ok') {
      node.failures = 0;
      node.closedUntil = 0;
      const { model, workUs } = task.spec;
      if (!task.isSettled) node.pace.observe(model, workUs, Math.max(1, this.now - task.startedAt));
    }
    if (result.kind !== 'failed') return;
    node.failures += 1;
    const { failuresMax } = this.#options;
    const closes =
      this.#discipline.closes?.(task, node, result) ?? (failuresMax > 0 && node.failures >= failuresMax);
    if (!closes) return;
    this.#table.coolDown(node, this.#options.cooldownUs, this.now);
    this.#unbind(node);
  }

  #conclude(task: BaselineTask, node: BaselineNode, result: AttemptResult): void {
    if (result.kind === 'ok') return this.#settle(task, { kind: 'served' });
    if (result.kind === 'aborted') return this.#settle(task, { kind: 'cancelled' });
    if (result.kind === 'failed' && result.retryable && this.#mayRetry(task, node)) {
      task.isRunning = false;
      task.node = null;
      this.#counts.running -= 1;
      this.#counts.queued += 1;
      return this.#discipline.enter(task);
    }
    const isSilence = result.kind === 'failed' && result.failure === 'timeout';
    const reason = result.kind === 'declined' ? 'declined' : isSilence ? 'node-timeout' : 'node-failed';
    this.#settle(task, { kind: 'failed', reason, hint: { retryable: true, afterUs: 0 } });
  }

  #mayRetry(task: BaselineTask, node: BaselineNode): boolean {
    if (!task.tried.includes(node)) task.tried.push(node);
    if (task.attempts >= this.#options.attempts || this.#isShuttingDown) return false;
    return this.#table.anyLeft(task);
  }

  /** Stays in the table while its attempt is under way. */
  #settle(task: BaselineTask, outcome: Outcome): void {
    task.isSettled = true;
    this.#counts[task.isRunning ? 'running' : 'queued'] -= 1;
    this.#counts[outcome.kind] += 1;
    if (!task.isRunning || !isUnderWay(task)) this.#tasks.delete(task.spec.id);
    this.#out.outcome(task.spec.id, outcome);
  }

  #dismiss(task: BaselineTask, reason: EvictReason): void {
    this.#discipline.leave(task);
    this.evict(task, reason);
  }

  #register(event: Extract<SchedulerEvent, { kind: 'node-registered' }>): void {
    const { node, isNew, isChanged } = this.#table.register(event, this.config);
    if (isNew) this.#out.nodeState(node.spec.id, 'active');
    if (isChanged) this.#unbind(node);
    this.#discipline.offer(node);
    if (isChanged) this.#dismissUnfit();
  }

  #handleNode(event: Extract<SchedulerEvent, { nodeId: NodeId }>): void {
    const node = this.#table.get(event.nodeId);
    if (node === undefined) return;
    if (event.kind === 'node-removed') return this.#remove(node);
    this.#table.note(node, event, this.now);
    if (!node.isAlive) this.#unbind(node);
    this.#discipline.offer(node);
  }

  #remove(node: BaselineNode): void {
    this.#table.remove(node);
    this.#out.nodeState(node.spec.id, 'gone');
    this.#unbind(node);
    this.#discipline.offer(node);
    this.#dismissUnfit();
  }

  /** What waits for the node alone is placed anew. */
  #unbind(node: BaselineNode): void {
    const bound = [...(this.#discipline.boundTo?.(node) ?? [])];
    for (const task of bound) this.#discipline.leave(task);
    for (const task of bound) {
      if (this.#table.anyFits(task.spec)) this.#discipline.enter(task);
      else this.evict(task, 'no-node');
    }
  }

  /** Nobody will ever take these. */
  #dismissUnfit(): void {
    for (const task of [...this.#discipline.waiting()])
      if (!this.#table.anyLeft(task)) this.#dismiss(task, 'no-node');
  }
}

function isUnderWay(task: BaselineTask): boolean {
  return task.node?.running.includes(task) === true;
}
