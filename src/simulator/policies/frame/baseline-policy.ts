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
import { msToUs, type DurationUs, type MonoUs, type NodeId, type TaskId } from '../../../base/units.ts';
import type { SchedulerConfig } from '../../../core/config/types.ts';
import type { AttemptResult, EvictReason, Outcome, RejectReason } from '../../../core/request/outcome.ts';
import type { TaskSpec } from '../../../core/request/task.ts';
import type { AttemptLimits } from '../../../core/scheduler/contract.ts';
import type { EffectSink } from '../../../core/scheduler/effects.ts';
import type { NodeMemory, NodeSpec, SchedulerEvent } from '../../../core/scheduler/events.ts';
import { saneMemory, saneNode, saneTask, SILENT_SINK } from '../../../core/scheduler/index.ts';
import type { Accounts } from '../../../core/scheduler/views.ts';
import type { Policy, PolicyContext } from '../policy.ts';
import { BaselineNode } from './baseline-node.ts';
import { BaselineTask } from './baseline-task.ts';
import type { Desk, Discipline } from './discipline.ts';

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
  readonly nodes: BaselineNode[] = [];
  readonly #byId: Map<NodeId, BaselineNode> = new Map();
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
  #nodeOrder = 0;
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

  accounts(): Accounts {
    return { ...this.#counts };
  }

  attemptLimits(_taskId: TaskId): AttemptLimits {
    return this.#limits;
  }

  nextWakeAt(): MonoUs {
    let at = this.#discipline.nextWakeAt?.() ?? Number.POSITIVE_INFINITY;
    for (const node of this.nodes) if (node.closedUntil > this.now) at = Math.min(at, node.closedUntil);
    return at;
  }

  drainUs(nodeId: NodeId): DurationUs {
    return this.#byId.get(nodeId)?.workLeftUs(this.now) ?? 0;
  }

  /** Nodes are its configuration, which outlives it; what it learned of them does not. */
  nodeMemory(nodeId: NodeId): NodeMemory | undefined {
    const node = this.#byId.get(nodeId);
    if (node === undefined) return undefined;
    const { cordoned, draining, pace } = node;
    return { cordoned, draining, ejectedForUs: 0, ejections: 0, rates: pace.remembered };
  }

  apply(event: SchedulerEvent, now: MonoUs, out: EffectSink): void {
    const before = this.now;
    this.now = now;
    this.#out = out;
    this.#wake(before);
    this.#handle(event);
    this.#out = SILENT_SINK;
  }

  candidates(task: BaselineTask): readonly BaselineNode[] {
    const fitting = this.nodes.filter((node) => node.fits(task.spec) && !task.tried.includes(node));
    const open = fitting.filter((node) => node.isOpen(this.now));
    return open.length > 0 ? open : fitting.filter(isOpenButCooling);
  }

  mayTake(node: BaselineNode, task: BaselineTask): boolean {
    if (!node.fits(task.spec) || task.tried.includes(node)) return false;
    return node.isOpen(this.now) || (isOpenButCooling(node) && this.candidates(task).includes(node));
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

  #wake(before: MonoUs): void {
    for (const node of this.nodes)
      if (node.closedUntil > before && node.closedUntil <= this.now) this.#discipline.offer(node);
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
        return this.#register(saneNode(event.node), event.memory);
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
    for (const node of this.nodes) node.describe(node.spec, config);
  }

  #submit(spec: TaskSpec): void {
    const { arrived } = this.#counts;
    const rank = this.#ranks.get(spec.className) ?? this.#ranks.size;
    const task = new BaselineTask(spec, this.#order++, { arrivedAt: this.now, rank });
    this.#counts.arrived = arrived + 1;
    this.#counts.queued += 1;
    this.#tasks.set(spec.id, task);
    if (this.#isShuttingDown) return this.reject(task, 'shutting-down');
    if (!this.nodes.some((node) => node.fits(spec))) return this.reject(task, 'no-node');
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
      this.#discipline.closes?.(node, result) ?? (failuresMax > 0 && node.failures >= failuresMax);
    if (!closes) return;
    node.failures = 0;
    node.closedUntil = this.now + this.#options.cooldownUs;
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
    return this.nodes.some((other) => other.fits(task.spec) && !task.tried.includes(other));
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

  #register(spec: NodeSpec, memory: NodeMemory | undefined): void {
    const known = this.#byId.get(spec.id);
    const sane = memory === undefined ? undefined : saneMemory(memory, msToUs(60_000));
    const node = known ?? new BaselineNode(spec, this.#nodeOrder++, sane?.rates ?? []);
    const isChanged = known !== undefined && JSON.stringify(known.spec) !== JSON.stringify(spec);
    node.describe(spec, this.config);
    node.isAlive = true;
    node.cordoned = sane?.cordoned ?? node.cordoned;
    node.draining = sane?.draining ?? node.draining;
    if (known === undefined) {
      this.#byId.set(spec.id, node);
      this.nodes.push(node);
      this.#out.nodeState(spec.id, 'active');
    }
    if (isChanged) this.#unbind(node);
    this.#discipline.offer(node);
    if (isChanged) this.#dismissUnfit();
  }

  #handleNode(event: Extract<SchedulerEvent, { nodeId: NodeId }>): void {
    const node = this.#byId.get(event.nodeId);
    if (node === undefined) return;
    if (event.kind === 'node-removed') return this.#remove(node);
    if (event.kind === 'node-reading') {
      node.reading = event.reading;
      node.readAt = this.now;
    } else if (event.kind === 'node-cordoned') node.cordoned = event.cordoned;
    else if (event.kind === 'node-draining') node.draining = event.draining;
    else if (event.kind === 'node-heartbeat') node.isAlive = true;
    else if (event.kind === 'node-probed') {
      node.isAlive = event.alive;
      if (!event.alive) this.#unbind(node);
    }
    this.#discipline.offer(node);
  }

  #remove(node: BaselineNode): void {
    node.isGone = true;
    node.isAlive = false;
    this.#byId.delete(node.spec.id);
    this.nodes.splice(this.nodes.indexOf(node), 1);
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
      if (this.nodes.some((other) => other.fits(task.spec))) this.#discipline.enter(task);
      else this.evict(task, 'no-node');
    }
  }

  /** Nobody will ever take these. */
  #dismissUnfit(): void {
    for (const task of [...this.#discipline.waiting()])
      if (!this.nodes.some((node) => node.fits(task.spec) && !task.tried.includes(node)))
        this.#dismiss(task, 'no-node');
  }
}

function isUnderWay(task: BaselineTask): boolean {
  return task.node?.running.includes(task) === true;
}

function isOpenButCooling(node: BaselineNode): boolean {
  return node.isAlive && !node.cordoned && !node.draining;
}
