/**
 * A discrete-event driver around the scheduler: virtual time, virtual nodes, no sockets. Nodes have a true speed that
 * the scheduler is not told, and noise. Used by tests, benches and experiments; the gateway runs the same scheduler.
 */
import { createPrng, type Prng } from '../../src/base/prng.ts';
import type { MonoUs, NodeId, RefUs, TaskId } from '../../src/base/units.ts';
import type { SchedulerConfig } from '../../src/core/config/types.ts';
import type { LesserTask } from '../../src/core/degrade/index.ts';
import type { AttemptResult, Outcome } from '../../src/core/request/outcome.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { Scheduler } from '../../src/core/scheduler/contract.ts';
import type { EffectSink } from '../../src/core/scheduler/effects.ts';
import type { NodeSpec, SchedulerEvent } from '../../src/core/scheduler/events.ts';
import { createScheduler } from '../../src/core/scheduler/index.ts';
import { EventQueue } from '../../src/simulator/event-queue.ts';
import { SharedEngine } from './shared-engine.ts';

export interface VirtualNode {
  readonly spec: NodeSpec;
  /** True speed in RefUs per microsecond for one task; changed by faults. */
  speed: number;
  /** Lognormal sigma of service times. */
  readonly sigma: number;
  /**
   * Tasks beside each other that the node serves at full speed each. More share it, and it does less: 1 / (1 + crowdLoss)
   * of its most at twice the knee. Absent: tasks do not touch each other.
   */
  readonly knee?: number;
  readonly crowdLoss?: number;
  /** Accepts tasks and never answers; changed by faults. */
  hangs?: boolean;
  /** How the next attempts end; `ok` when undefined. */
  fault?: (task: TaskSpec) => AttemptResult | undefined;
}

export interface RunListener {
  outcome?(task: TaskSpec, outcome: Outcome, now: MonoUs): void;
  assigned?(task: TaskSpec, nodeId: NodeId, now: MonoUs): void;
}

interface Running {
  readonly task: TaskSpec;
  readonly node: VirtualNode;
  readonly attempt: number;
}

export class VirtualRun {
  readonly scheduler: Scheduler;
  readonly nodes: Map<NodeId, VirtualNode> = new Map();
  readonly tasks: Map<TaskId, TaskSpec> = new Map();
  /** Work completed in time by node. */
  readonly workDoneUs: Map<NodeId, RefUs> = new Map();
  now: MonoUs = 0;
  readonly #queue = new EventQueue();
  readonly #running: Map<TaskId, Running> = new Map();
  readonly #prng: Prng;
  readonly #listener: RunListener;
  readonly #sink: EffectSink;
  readonly #pending: (() => void)[] = [];
  readonly #abortedAt: Map<TaskId, MonoUs> = new Map();
  readonly #engines: Map<VirtualNode, SharedEngine> = new Map();
  readonly log: string[] = [];
  keepsLog = false;

  constructor(
    config: SchedulerConfig,
    listener: RunListener = {},
    scheduler: Scheduler = createScheduler(config),
  ) {
    this.scheduler = scheduler;
    this.#prng = createPrng(config.seed + 1);
    this.#listener = listener;
    this.#sink = this.#createSink();
  }

  addNode(node: VirtualNode): void {
    this.nodes.set(node.spec.id, node);
    this.apply({ kind: 'node-registered', node: node.spec });
  }

  submit(task: TaskSpec): void {
    this.tasks.set(task.id, task);
    this.apply({ kind: 'submit', task });
  }

  apply(event: SchedulerEvent): void {
    this.scheduler.apply(event, this.now, this.#sink);
    for (let next = this.#pending.shift(); next !== undefined; next = this.#pending.shift()) next();
  }

  /** Calls `action` at a virtual instant. */
  at(instant: MonoUs, action: () => void): void {
    this.#queue.push(Math.max(instant, this.now), action);
  }

  /** Advances virtual time up to and including `until`. */
  runUntil(until: MonoUs): void {
    for (;;) {
      const wakeAt = Math.max(this.now, this.scheduler.nextWakeAt());
      const eventAt = this.#queue.nextAt();
      const next = Math.min(wakeAt, eventAt);
      if (next > until) break;
      this.now = next;
      if (eventAt <= wakeAt) (this.#queue.pop() as () => void)();
      else this.apply({ kind: 'tick' });
    }
    this.now = until;
    this.apply({ kind: 'tick' });
  }

  /** A node is started again: what ran on it ends with a broken connection. */
  breakOff(nodeId: NodeId): void {
    for (const [taskId, { node }] of this.#running) {
      if (node.spec.id === nodeId)
        this.#end(taskId, -1, { kind: 'failed', failure: 'reset', retryable: true });
    }
  }

  /** When an attempt of the task was last aborted, or now. */
  lastAbortAt(taskId: TaskId): MonoUs {
    return this.#abortedAt.get(taskId) ?? this.now;
  }

  get running(): number {
    return this.#running.size;
  }

  #createSink(): EffectSink {
    return {
      admitted: (taskId) => this.#note(`admitted ${taskId}`),
      assign: (taskId, nodeId, attempt) => {
        this.#note(`assign ${taskId} ${nodeId} ${attempt}`);
        this.#start(taskId, nodeId, attempt);
      },
      degraded: (taskId, { index, verdict }) => {
        this.#note(`degraded ${taskId} ${index} ${verdict}`);
        if (verdict === 'taken') this.#lesser(taskId, index);
      },
      abort: (taskId) => {
        this.#note(`abort ${taskId}`);
        this.#abortedAt.set(taskId, this.now);
        this.#pending.push(() => this.#end(taskId, -1, { kind: 'aborted' }));
      },
      outcome: (taskId, outcome) => {
        this.#note(`outcome ${taskId} ${outcome.kind}${'reason' in outcome ? ` ${outcome.reason}` : ''}`);
        const task = this.tasks.get(taskId);
        this.tasks.delete(taskId);
        if (task !== undefined) this.#listener.outcome?.(task, outcome, this.now);
      },
      nodeState: (nodeId, nodeState) => this.#note(`node ${nodeId} ${nodeState}`),
      nodeDrained: (nodeId) => this.#note(`drained ${nodeId}`),
    };
  }

  /** From now on the nodes have the lesser task to do. */
  #lesser(taskId: TaskId, index: number): void {
    const task = this.tasks.get(taskId) as TaskSpec;
    const alternative = task.alternatives?.[index];
    if (alternative !== undefined && 'workUs' in alternative) {
      this.tasks.set(taskId, { ...task, fingerprint: task.fingerprint, ...workOf(alternative) });
    }
  }

  #note(line: string): void {
    if (this.keepsLog) this.log.push(`${this.now} ${line}`);
  }

  #start(taskId: TaskId, nodeId: NodeId, attempt: number): void {
    const task = this.tasks.get(taskId) as TaskSpec;
    const node = this.nodes.get(nodeId) as VirtualNode;
    const running: Running = { task, node, attempt };
    this.#running.set(taskId, running);
    this.#listener.assigned?.(task, nodeId, this.now);
    const fault = node.fault?.(task);
    const { firstByteUs } = this.scheduler.attemptLimits(taskId);
    if (firstByteUs > 0)
      this.#queue.push(this.now + firstByteUs, () => this.#end(taskId, attempt, TIMED_OUT));
    if (node.hangs === true) return;
    const noise = node.sigma === 0 ? 1 : Math.exp(node.sigma * gaussian(this.#prng));
    if (node.knee !== undefined && fault === undefined)
      return this.#share(node, running, task.workUs * noise);
    const serviceUs =
      fault === undefined ? Math.max(1, Math.round((task.workUs / node.speed) * noise)) : 1_000;
    this.#queue.push(this.now + serviceUs, () => this.#end(taskId, attempt, fault ?? { kind: 'ok' }));
  }

  #share(node: VirtualNode, { task, attempt }: Running, workUs: RefUs): void {
    let engine = this.#engines.get(node);
    if (engine === undefined) {
      engine = new SharedEngine(node.knee as number, node.crowdLoss ?? 0);
      this.#engines.set(node, engine);
    }
    engine.add(task.id, { attempt, workUs }, { now: this.now, speed: node.speed });
    this.#awaitNext(engine);
  }

  /** The next end changes with every task that comes or goes: an outdated one is passed over. */
  #awaitNext(engine: SharedEngine): void {
    const next = engine.next(this.now);
    if (next === undefined) return;
    this.#queue.push(next.at, () => {
      if (engine.changes === next.changes) this.#end(next.id, next.attempt, { kind: 'ok' });
    });
  }

  /** Ends an attempt; attempt -1 ends whichever runs. */
  #end(taskId: TaskId, attempt: number, result: AttemptResult): void {
    const running = this.#running.get(taskId);
    if (running === undefined || (attempt !== -1 && running.attempt !== attempt)) return;
    this.#running.delete(taskId);
    const engine = this.#engines.get(running.node);
    if (engine?.remove(taskId, this.now) === true) this.#awaitNext(engine);
    if (result.kind === 'ok') {
      const { id } = running.node.spec;
      this.workDoneUs.set(id, (this.workDoneUs.get(id) ?? 0) + running.task.workUs);
    }
    this.apply({ kind: 'attempt-ended', taskId, result });
  }
}

function workOf({ model, needs, workUs, firstByteWorkUs }: LesserTask): Partial<TaskSpec> {
  return { model, needs, workUs, firstByteWorkUs };
}

const TIMED_OUT: AttemptResult = Object.freeze({ kind: 'failed', failure: 'timeout', retryable: true });

/** Box and Muller, one of the pair. */
function gaussian(prng: Prng): number {
  const radius = Math.sqrt(-2 * Math.log(1 - prng.nextRatio()));
  return radius * Math.cos(2 * Math.PI * prng.nextRatio());
}
