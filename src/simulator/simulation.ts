/**
 * One run: clients, a policy and nodes in virtual time. Four agendas, and whoever is due first goes first: machines,
 * the script of faults, clients, the policy's own wake. At equal instants they go in that order, so that what ended
 * is known before what comes.
 *
 * The policy is the very scheduler of the gateway, or a baseline behind the same contract. Its effects are performed as
 * they come; what must be answered by an event (an abort) waits until the event under way is applied.
 *
 * Invariants: a job has at most one attempt on a machine; each assignment ends exactly once; a job leaves the table when
 * it has both its outcome and no attempt under way.
 */
import { HeapSlot, KeyedHeap } from '../base/keyed-heap.ts';
import type { DurationUs, MonoUs, NodeId, Ratio, TaskId } from '../base/units.ts';
import type { AttemptResult, FailureKind } from '../core/request/outcome.ts';
import type { TaskSpec } from '../core/request/task.ts';
import type { EffectSink } from '../core/scheduler/effects.ts';
import type { NodeMemory, SchedulerEvent } from '../core/scheduler/events.ts';
import type { Clients, ClientSink, Request } from './clients/clients.ts';
import { DecisionHash } from './decision-hash.ts';
import { EventQueue } from './event-queue.ts';
import type { User } from './clients/user.ts';
import type { Demand, Job, MachineSink } from './machines/machine.ts';
import type { JobEnd, Observer, TrackedJob } from './observer.ts';
import type { Policy } from './policies/policy.ts';
import type { SimNode } from './sim-node.ts';

/** What a refusal or a closed port costs. */
const FAST_FAILURE_US: DurationUs = 1_000;
/** How long a connection is tried that nobody answers. */
const CONNECT_TIMEOUT_US: DurationUs = 1_000_000;

export interface SimulationOptions {
  /** Called at the start and after each crash. */
  readonly createPolicy: () => Policy;
  readonly nodes: readonly SimNode[];
  readonly clients: Clients;
  readonly observer?: Observer;
}

/** A job's attempt on a node. */
interface Attempt {
  readonly node: SimNode;
  readonly number: number;
  /** Its place among the bounds on silence; outside while it has none. */
  readonly silence: HeapSlot<SimJob>;
}

class SimJob implements TrackedJob {
  task: TaskSpec;
  demand: Demand;
  readonly noise: number;
  readonly user: User | undefined;
  readonly submittedAt: MonoUs;
  attempts = 0;
  sentAt: MonoUs = -1;
  firstSentAt: MonoUs = -1;
  firstByteAt: MonoUs = -1;
  nodeIndex = -1;
  share: Ratio = 1;
  attempt: Attempt | undefined = undefined;
  isSettled = false;

  constructor({ task, demand, noise, user }: Request, submittedAt: MonoUs) {
    this.task = task;
    this.demand = demand;
    this.noise = noise;
    this.user = user;
    this.submittedAt = submittedAt;
  }

  get isRunning(): boolean {
    return this.attempt !== undefined;
  }
}

export class Simulation {
  now: MonoUs = 0;
  readonly hash: DecisionHash = new DecisionHash();
  readonly nodes: ReadonlyMap<NodeId, SimNode>;
  readonly #createPolicy: () => Policy;
  readonly #clients: Clients;
  readonly #observer: Observer;
  readonly #jobs: Map<TaskId, SimJob> = new Map();
  readonly #machines = new KeyedHeap<SimNode>();
  readonly #script = new EventQueue();
  readonly #silences = new KeyedHeap<SimJob>();
  readonly #aborted: SimJob[] = [];
  readonly #ended: { job: SimJob; result: AttemptResult }[] = [];
  readonly #begun: SimJob[] = [];
  readonly #sink: EffectSink;
  readonly #machineSink: MachineSink;
  readonly #clientSink: ClientSink;
  /** Undefined while its process is down. */
  #policy: Policy | undefined;
  readonly #registered: Set<NodeId> = new Set();

  constructor(options: SimulationOptions) {
    this.nodes = new Map(options.nodes.map((node) => [node.spec.id, node]));
    this.#createPolicy = options.createPolicy;
    this.#clients = options.clients;
    this.#observer = options.observer ?? {};
    this.#sink = this.#createSink();
    this.#machineSink = {
      firstByte: (job) => void this.#begun.push(job as SimJob),
      ended: (job, result) => void this.#ended.push({ job: job as SimJob, result }),
    };
    this.#clientSink = {
      submit: (request) => this.#submit(request),
      cancel: (taskId) => this.#apply({ kind: 'cancel', taskId }),
    };
    for (const node of options.nodes) this.#machines.push(node.place, node.nextAt());
    this.#policy = this.#createPolicy();
    for (const node of options.nodes) this.#register(node, node.memory);
    for (const node of options.nodes) if (node.beatUs > 0) this.#beatLater(node);
  }

  /** The policy of this moment; undefined while its process is down. */
  get policy(): Policy | undefined {
    return this.#policy;
  }

  /** Requests without an outcome, and attempts under way for those that have one. */
  get openJobs(): number {
    return this.#jobs.size;
  }

  /** Those requests, in order of submission. */
  jobs(): IterableIterator<TrackedJob> {
    return this.#jobs.values();
  }

  /** Calls `action` at a virtual instant: faults, changes, samples. */
  at(instant: MonoUs, action: () => void): void {
    this.#script.push(Math.max(instant, this.now), action);
  }

  /** Tells the policy something that happened; ignored while it is down. */
  apply(event: SchedulerEvent): void {
    this.#apply(event);
  }

  /** Advances virtual time up to and including `until`. */
  runUntil(until: MonoUs): void {
    while (this.#step(until));
    this.now = until;
  }

  /** What changed on a node may change when it is due. */
  touch(node: SimNode): void {
    this.#machines.update(node.place, node.nextAt());
  }

  /** A node's process died or its connections broke: what ran there ends as reset. */
  breakOff(node: SimNode): void {
    const jobs = node.machine.drop(this.now) as readonly SimJob[];
    this.touch(node);
    for (const job of jobs) this.#end(job, failed('reset'));
    for (const job of [...this.#jobs.values()])
      if (job.attempt?.node === node) this.#end(job, failed('reset'));
  }

  /**
   * The policy's process dies and is back after `downUs`. Everybody who waits loses the connection; work under way is
   * for nobody. What its registry kept is known at once; other nodes are known again at their next beat.
   */
  crash(downUs: DurationUs): void {
    const dead = this.#policy;
    if (dead === undefined) return;
    const memories = new Map<NodeId, NodeMemory | undefined>();
    for (const id of this.#registered)
      if (dead.nodeMemory !== undefined) memories.set(id, dead.nodeMemory(id, this.now));
    this.#policy = undefined;
    this.#registered.clear();
    for (const job of this.#jobs.values()) this.#lose(job);
    this.#jobs.clear();
    this.at(this.now + downUs, () => {
      this.#policy = this.#createPolicy();
      for (const [id, memory] of memories) this.#register(this.nodes.get(id) as SimNode, memory);
    });
  }

  #step(until: MonoUs): boolean {
    const machineAt = this.#machines.leastKey;
    const scriptAt = this.#script.nextAt();
    const clientAt = this.#clients.nextAt();
    const silenceAt = this.#silences.leastKey;
    const wakeAt = this.#policy === undefined ? Number.POSITIVE_INFINITY : this.#policy.nextWakeAt();
    const next = Math.max(this.now, Math.min(machineAt, scriptAt, clientAt, silenceAt, wakeAt));
    if (next > until) return false;
    this.now = next;
    if (machineAt <= next) this.#advanceMachine(this.#machines.peek() as SimNode);
    else if (scriptAt <= next) (this.#script.pop() as () => void)();
    else if (silenceAt <= next) this.#end(this.#silences.peek() as SimJob, failed('timeout'));
    else if (clientAt <= next) this.#clients.advance(next, this.#clientSink);
    else this.#apply({ kind: 'tick' });
    return true;
  }

  #advanceMachine(node: SimNode): void {
    node.machine.advance(this.now, this.#machineSink);
    this.touch(node);
    for (const job of this.#begun) this.#report(node, () => this.#begin(job));
    this.#begun.length = 0;
    for (const { job, result } of this.#ended.splice(0)) this.#answer(node, job, result);
  }

  /** What a node says arrives after its way through the network, unless it is cut off. */
  #answer(node: SimNode, job: SimJob, result: AttemptResult): void {
    if (node.rttUs === 0 && !node.faults.partitioned) return this.#end(job, result);
    const { attempt } = job;
    this.#report(node, () => {
      if (job.attempt === attempt) this.#end(job, result);
    });
  }

  #report(node: SimNode, tell: () => void): void {
    if (node.faults.partitioned) return;
    if (node.rttUs === 0) tell();
    else this.#script.push(this.now + node.rttUs, tell);
  }

  #begin(job: SimJob): void {
    if (job.attempt === undefined || job.isSettled) return;
    if (job.attempt.silence.isInHeap) this.#silences.remove(job.attempt.silence);
    job.firstByteAt = this.now;
    this.#observer.firstByte?.(job, this.now);
    this.#clients.firstByte?.(job.task.id, this.now);
    this.#apply({ kind: 'attempt-first-byte', taskId: job.task.id });
  }

  #submit(request: Request): void {
    const { task } = request;
    const job = new SimJob(request, this.now);
    this.#observer.submitted?.(job, this.now);
    if (this.#policy === undefined) return this.#settle(job, { kind: 'lost' });
    this.#jobs.set(task.id, job);
    this.#apply({ kind: 'submit', task });
  }

  #apply(event: SchedulerEvent): void {
    if (this.#policy === undefined) return;
    this.#policy.apply(event, this.now, this.#sink);
    while (this.#aborted.length > 0) this.#end(this.#aborted.pop() as SimJob, ABORTED);
  }

  #createSink(): EffectSink {
    return {
      admitted() {},
      assign: (taskId, nodeId, attempt) => this.#start(taskId, nodeId, attempt),
      degraded: (taskId, { index, verdict }) => {
        if (verdict === 'taken') this.#lessen(taskId, index);
      },
      abort: (taskId) => {
        const job = this.#jobs.get(taskId);
        if (job?.attempt !== undefined) this.#aborted.push(job);
      },
      outcome: (taskId, outcome) => {
        const job = this.#jobs.get(taskId);
        if (job === undefined) return;
        this.hash.add(OUTCOME_KINDS.indexOf(outcome.kind), taskId, this.now);
        this.#settle(job, outcome);
      },
      nodeState() {},
      nodeDrained() {},
    };
  }

  #start(taskId: TaskId, nodeId: NodeId, number: number): void {
    const job = this.#jobs.get(taskId) as SimJob;
    const node = this.nodes.get(nodeId) as SimNode;
    this.hash.add(ASSIGNED + node.index, taskId, this.now);
    job.attempts = number;
    job.sentAt = this.now;
    job.firstByteAt = -1;
    job.nodeIndex = node.index;
    if (job.firstSentAt < 0) job.firstSentAt = this.now;
    job.attempt = { node, number, silence: new HeapSlot<SimJob>(job, taskId) };
    this.#observer.assigned?.(job, nodeId, this.now);
    const { firstByteUs } = (this.#policy as Policy).attemptLimits(taskId);
    if (firstByteUs > 0) this.#silences.push(job.attempt.silence, this.now + firstByteUs);
    const failure = failureOf(node, job);
    if (failure !== undefined) return this.#failLater(job, failure);
    if (node.faults.hangs) return;
    node.machine.start(job, job.task.model, this.now);
    this.touch(node);
  }

  #failLater(job: SimJob, failure: FailureKind): void {
    const { attempt } = job;
    const afterUs = attempt?.node.faults.partitioned === true ? CONNECT_TIMEOUT_US : FAST_FAILURE_US;
    this.#script.push(this.now + afterUs, () => {
      if (job.attempt === attempt) this.#end(job, failed(failure));
    });
  }

  #lessen(taskId: TaskId, index: number): void {
    const job = this.#jobs.get(taskId);
    const alternative = job?.task.alternatives?.[index];
    if (job === undefined || alternative === undefined || !('workUs' in alternative)) return;
    const { model, needs, workUs, firstByteWorkUs } = alternative;
    const share = workUs / job.task.workUs;
    job.demand = lessDemand(job.demand, share);
    job.share *= share;
    job.task = { ...job.task, model, needs, workUs, firstByteWorkUs };
  }

  #end(job: SimJob, result: AttemptResult): void {
    const { attempt } = job;
    if (attempt === undefined) return;
    job.attempt = undefined;
    if (attempt.silence.isInHeap) this.#silences.remove(attempt.silence);
    if (result.kind !== 'ok') {
      attempt.node.machine.abort(job, this.now);
      this.touch(attempt.node);
    }
    this.#observer.attemptEnded?.(job, attempt.node.spec.id, this.now);
    if (job.isSettled) this.#jobs.delete(job.task.id);
    this.#apply({ kind: 'attempt-ended', taskId: job.task.id, result });
  }

  #settle(job: SimJob, end: JobEnd): void {
    job.isSettled = true;
    if (job.attempt === undefined) this.#jobs.delete(job.task.id);
    this.#observer.outcome?.(job, end, this.now);
    this.#clients.outcome(job.task.id, end, this.now);
  }

  #lose(job: SimJob): void {
    const { attempt } = job;
    if (attempt !== undefined) {
      job.attempt = undefined;
      if (attempt.silence.isInHeap) this.#silences.remove(attempt.silence);
      attempt.node.machine.abort(job, this.now);
      this.touch(attempt.node);
      this.#observer.attemptEnded?.(job, attempt.node.spec.id, this.now);
    }
    if (job.isSettled) return;
    job.isSettled = true;
    this.#observer.outcome?.(job, { kind: 'lost' }, this.now);
    this.#clients.outcome(job.task.id, { kind: 'lost' }, this.now);
  }

  #register(node: SimNode, memory: NodeMemory | undefined): void {
    this.#registered.add(node.spec.id);
    this.#apply({ kind: 'node-registered', node: node.spec, ...(memory === undefined ? {} : { memory }) });
  }

  #beatLater(node: SimNode): void {
    this.#script.push(this.now + node.beatUs, () => {
      this.#beat(node);
      this.#beatLater(node);
    });
  }

  /** A heartbeat and a probe in one: whether it answers, and what it says of itself. */
  #beat(node: SimNode): void {
    const { dead, partitioned, staleReadings } = node.faults;
    const nodeId = node.spec.id;
    const isReached = !dead && !partitioned;
    if (this.#policy === undefined) return;
    if (!this.#registered.has(nodeId)) {
      if (isReached) this.#register(node, undefined);
      return;
    }
    this.#apply({ kind: 'node-probed', nodeId, alive: isReached });
    if (!isReached) return;
    if (node.spec.heartbeats) this.#apply({ kind: 'node-heartbeat', nodeId });
    const reading = staleReadings ? undefined : node.machine.reading?.(this.now);
    if (reading !== undefined) this.#apply({ kind: 'node-reading', nodeId, reading });
  }
}

const ABORTED: AttemptResult = Object.freeze({ kind: 'aborted' });
/** What is hashed of an assignment is its node, above all kinds of outcomes. */
const OUTCOME_KINDS = ['served', 'degraded', 'rejected', 'evicted', 'failed', 'cancelled'];
const ASSIGNED = 16;

function failed(failure: FailureKind): AttemptResult {
  return { kind: 'failed', failure, retryable: true };
}

/** How an attempt fails at once, by the node's faults; undefined when it does not. */
function failureOf({ faults }: SimNode, job: SimJob): FailureKind | undefined {
  if (faults.dead || faults.partitioned) return 'connect';
  if (faults.refuses) return 'refused';
  if (faults.failShare > 0 && drawOf(job) < faults.failShare) return 'server-error';
  return undefined;
}

/** Uniform in [0, 1), the same for the same attempt under every policy. */
function drawOf({ task, attempts }: SimJob): number {
  const hash = new DecisionHash();
  hash.add(attempts, task.id, 0);
  return Number.parseInt(hash.digest().slice(0, 8), 16) / 4_294_967_296;
}

function lessDemand(demand: Job['demand'], share: number): Job['demand'] {
  if (demand.kind === 'work') return { ...demand, workUs: Math.max(1, Math.round(demand.workUs * share)) };
  if (demand.kind === 'image') return { ...demand, units: demand.units * share };
  if (demand.kind === 'text')
    return { ...demand, outputTokens: Math.max(1, Math.round(demand.outputTokens * share)) };
  return demand;
}
