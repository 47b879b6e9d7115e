/**
 * One run: clients, a policy and nodes in virtual time. Several agendas, and whoever is due first goes first: machines,
 * news on their way through the network, the script of faults, heartbeats, bounds on silence, clients, the policy's own
 * wake. At equal instants they go in that order, so that what ended is known before what comes.
 *
 * The policy is the very scheduler of the gateway, or a baseline behind the same contract. Its effects are performed as
 * they come; what must be answered by an event (an abort) waits until the event under way is applied.
 *
 * Invariants: a job has at most one attempt under way, and each assignment ends exactly once; a job leaves the table when
 * it has its outcome and no attempt under way; an attempt that ends in another way than by its machine is aborted there.
 */
import { KeyedHeap } from '../base/keyed-heap.ts';
import type { DurationUs, MonoUs, NodeId, TaskId } from '../base/units.ts';
import type { AttemptResult, FailureKind, Outcome } from '../core/request/outcome.ts';
import type { EffectSink } from '../core/scheduler/effects.ts';
import type { NodeMemory, SchedulerEvent } from '../core/scheduler/events.ts';
import type { Clients, ClientSink, Request } from './clients/clients.ts';
import { DecisionHash } from '../base/decision-hash.ts';
import { EventQueue } from './event-queue.ts';
import type { MachineSink } from './machines/machine.ts';
import type { AttemptEnd, JobEnd, Observer } from './observer.ts';
import type { Policy } from './policies/policy.ts';
import type { ProcessSpec } from './scenario/types.ts';
import { RefilledList } from './refilled-list.ts';
import { Silences } from './silences.ts';
import { SimJob } from './sim-job.ts';
import type { Letter, SimNode } from './sim-node.ts';
import { TaskTable } from './task-table.ts';

/** What a refusal or a closed port costs. */
const FAST_FAILURE_US: DurationUs = 1_000;
/** How long a connection is tried that nobody answers. */
const CONNECT_TIMEOUT_US: DurationUs = 1_000_000;
/** Nodes do not beat in step: each begins at another part of its period (the fractional parts of the golden ratio). */
const GOLDEN_RATIO = 0.618_033_988_749_895;

/** Records of jobs that wait for another request: as many as one burst leaves, no more. */
const SPARE_JOBS_MAX = 16_384;
const NEVER: MonoUs = Number.POSITIVE_INFINITY;

/** Never dies of itself, and what its registry knows outlives a crash. */
const STURDY: ProcessSpec = { tasksMax: 0, restartUs: 0, registryIsDurable: true };

export interface SimulationOptions {
  /** Called at the start and after each crash. */
  readonly createPolicy: () => Policy;
  readonly nodes: readonly SimNode[];
  readonly clients: Clients;
  readonly observer?: Observer;
  /** In which the policy runs. */
  readonly process?: ProcessSpec;
}

export class Simulation {
  now: MonoUs = 0;
  readonly hash: DecisionHash = new DecisionHash();
  readonly nodes: ReadonlyMap<NodeId, SimNode>;
  /** How often the policy's process died. */
  crashes = 0;
  readonly #createPolicy: () => Policy;
  readonly #process: ProcessSpec;
  readonly #clients: Clients;
  readonly #observer: Observer;
  readonly #jobs = new TaskTable<SimJob>();
  readonly #machines = new KeyedHeap<SimNode>();
  readonly #mail = new EventQueue<Letter>();
  readonly #script = new EventQueue();
  readonly #beats = new KeyedHeap<SimNode>();
  readonly #silences = new Silences();
  readonly #aborted: SimJob[] = [];
  /** Jobs that left during the event under way, and records of those who left before. */
  readonly #left = new RefilledList<SimJob>();
  readonly #spare: SimJob[] = [];
  /** What a machine reported while it was advanced: jobs, how they ended (undefined for a first byte), of which attempt. */
  readonly #reported = new RefilledList<SimJob>();
  readonly #results = new RefilledList<AttemptResult | undefined>();
  readonly #turns = new RefilledList<number>();
  #advancing: SimNode | undefined;
  readonly #sink: EffectSink = this.#createSink();
  readonly #machineSink: MachineSink = this.#createMachineSink();
  readonly #clientSink: ClientSink;
  /** Undefined while its process is down. */
  #policy: Policy | undefined;
  /** When it wants to be woken; asked again after each event. */
  #wakeAt: MonoUs = Number.POSITIVE_INFINITY;
  /** Since when it is up again without having sent a request; NEVER when it has. */
  #idleSince: MonoUs = NEVER;
  #resumeUs: DurationUs = 0;
  readonly #registered: Set<NodeId> = new Set();

  constructor(options: SimulationOptions) {
    this.nodes = new Map(options.nodes.map((node) => [node.spec.id, node]));
    this.#createPolicy = options.createPolicy;
    this.#process = options.process ?? STURDY;
    this.#clients = options.clients;
    this.#observer = options.observer ?? {};
    this.#clientSink = {
      submit: (request) => this.#submit(request),
      cancel: (taskId) => this.#hangUp(taskId),
    };
    this.#policy = this.#createPolicy();
    for (const node of options.nodes) {
      this.#machines.push(node.place, node.nextAt());
      this.register(node, node.memory);
      const phase = ((node.index + 1) * GOLDEN_RATIO) % 1;
      if (node.beatUs > 0) this.#beats.push(node.beatPlace, Math.ceil(node.beatUs * phase));
    }
  }

  /** The policy of this moment; undefined while its process is down. */
  get policy(): Policy | undefined {
    return this.#policy;
  }

  /** The longest that the process was up again before a request was on its way to a node that can be reached. */
  get resumeUs(): DurationUs {
    return Math.max(this.#resumeUs, this.#idleSince === NEVER ? 0 : this.now - this.#idleSince);
  }

  /** Requests without an outcome, and attempts under way for those that have one. */
  get openJobs(): number {
    return this.#jobs.size;
  }

  /** Those requests, in order of submission. O(n log n). */
  jobs(): readonly SimJob[] {
    return this.#jobs.all();
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
    if (node !== this.#advancing) this.#machines.update(node.place, node.nextAt());
  }

  /** The node joins, or joins anew. */
  register(node: SimNode, memory?: NodeMemory): void {
    if (this.#policy === undefined) return;
    this.#registered.add(node.spec.id);
    this.#apply({ kind: 'node-registered', node: node.spec, ...(memory === undefined ? {} : { memory }) });
  }

  /** A node's process dies: what ran there is gone. */
  die(node: SimNode): void {
    node.machine.drop(this.now);
    node.unstopped.clear();
    this.touch(node);
    this.#resetAll(node);
  }

  /** All connections to a node break; the engine stops what nobody waits for. */
  disconnect(node: SimNode): void {
    for (const job of this.#jobs.all()) if (job.node === node) node.machine.abort(job, this.now);
    this.touch(node);
    this.#resetAll(node);
  }

  /** The way to a node is open again: it hears what it was to stop, and says what it could not. */
  reconnect(node: SimNode): void {
    for (const job of node.unstopped) node.machine.abort(job, this.now);
    node.unstopped.clear();
    this.touch(node);
    for (const letter of node.unsent.splice(0)) this.#mail.push(this.now + node.rttUs, letter);
  }

  /** Its next beat comes so much later, or earlier where negative. */
  shiftBeat(node: SimNode, byUs: DurationUs): void {
    if (!node.beatPlace.isInHeap) return;
    this.#beats.update(node.beatPlace, Math.max(this.now, this.#beats.keyOf(node.beatPlace) + byUs));
  }

  /**
   * The policy's process dies and is back after `downUs`. Everybody who waits loses the connection; work under way is
   * for nobody. What a durable registry kept is known at once, as are nodes that never beat, which somebody must have
   * configured; others are known again at their next beat.
   */
  crash(downUs: DurationUs): void {
    const dead = this.#policy;
    if (dead === undefined) return;
    this.crashes += 1;
    const memories = this.#memories(dead);
    this.#policy = undefined;
    this.#wakeAt = Number.POSITIVE_INFINITY;
    if (this.#idleSince !== NEVER) this.#resume();
    this.#registered.clear();
    const jobs = this.#jobs.all();
    this.#jobs.clear();
    for (const job of jobs) this.#lose(job);
    this.at(this.now + downUs, () => {
      this.#policy = this.#createPolicy();
      this.#idleSince = this.now;
      for (const [node, memory] of memories) this.register(node, memory);
    });
  }

  #memories(policy: Policy): ReadonlyMap<SimNode, NodeMemory | undefined> {
    const memories = new Map<SimNode, NodeMemory | undefined>();
    const keeps = this.#process.registryIsDurable && policy.nodeMemory !== undefined;
    for (const node of this.nodes.values()) {
      const isKnown = this.#registered.has(node.spec.id);
      if (keeps && isKnown) memories.set(node, policy.nodeMemory?.(node.spec.id, this.now));
      else if (node.beatUs === 0) memories.set(node, undefined);
    }
    return memories;
  }

  #step(until: MonoUs): boolean {
    if (this.#left.size > 0) this.#reuse();
    const machineAt = this.#machines.leastKey;
    const mailAt = this.#mail.nextAt();
    const scriptAt = this.#script.nextAt();
    const beatAt = this.#beats.leastKey;
    const silenceAt = this.#silences.nextAt();
    const clientAt = this.#clients.nextAt();
    const next = Math.max(
      this.now,
      Math.min(machineAt, mailAt, scriptAt, beatAt, silenceAt, clientAt, this.#wakeAt),
    );
    if (next > until) return false;
    this.now = next;
    if (machineAt <= next) this.#advanceMachine(this.#machines.peek() as SimNode);
    else if (mailAt <= next) this.#read(this.#mail.pop() as Letter);
    else if (scriptAt <= next) (this.#script.pop() as () => void)();
    else if (beatAt <= next) this.#beat(this.#beats.peek() as SimNode);
    else if (silenceAt <= next) this.#end(this.#silences.peek(), TIMED_OUT);
    else if (clientAt <= next) this.#clients.advance(next, this.#clientSink);
    else this.#apply(TICK);
    return true;
  }

  #advanceMachine(node: SimNode): void {
    // Moved among the others once, whatever starts here meanwhile.
    this.#advancing = node;
    node.machine.advance(this.now, this.#machineSink);
    // What this brings about may start and abort jobs, but no machine reports before it is advanced again.
    for (let i = 0; i < this.#reported.size; i++) {
      const job = this.#reported.at(i);
      const result = this.#results.at(i);
      if (node.unstopped.size > 0 && result !== undefined) node.unstopped.delete(job);
      if (job.node === node && job.turn === this.#turns.at(i)) this.#say(node, job, result);
    }
    this.#advancing = undefined;
    this.touch(node);
    this.#reported.clear();
    this.#results.clear();
    this.#turns.clear();
  }

  /** What a node says arrives after its way through the network, or when it is no longer cut off. */
  #say(node: SimNode, job: SimJob, result: AttemptResult | undefined): void {
    if (node.faults.partitioned) node.unsent.push({ job, turn: job.turn, result });
    else if (node.rttUs > 0) this.#mail.push(this.now + node.rttUs, { job, turn: job.turn, result });
    else if (result === undefined) this.#begin(job);
    else this.#end(job, result);
  }

  #read({ job, turn, result }: Letter): void {
    if (job.node === undefined || job.turn !== turn) return;
    if (result === undefined) this.#begin(job);
    else this.#end(job, result);
  }

  #begin(job: SimJob): void {
    if (job.isSettled) return;
    job.silentAt = NEVER;
    job.firstByteAt = this.now;
    this.#observer.firstByte?.(job, this.now);
    this.#clients.firstByte?.(job.id, this.now);
    this.#apply({ kind: 'attempt-first-byte', taskId: job.id });
  }

  #submit(request: Request): void {
    const job = this.#spare.pop() ?? new SimJob(request);
    job.begin(request, this.now);
    this.#observer.submitted?.(job, this.now);
    if (this.#policy === undefined) return this.#settle(job, LOST);
    this.#jobs.add(job.id, job);
    const { tasksMax, restartUs } = this.#process;
    if (tasksMax > 0 && this.#jobs.size > tasksMax) return this.crash(restartUs);
    this.#apply({ kind: 'submit', task: request.task });
  }

  /** Who is not noticed to be gone comes back as ever, and leaves a request that waits and runs for nobody. */
  #hangUp(taskId: TaskId): void {
    if (this.#process.noticesHangUps !== false) return this.#apply({ kind: 'cancel', taskId });
    this.#clients.outcome(taskId, CANCELLED, this.now);
  }

  #apply(event: SchedulerEvent): void {
    const policy = this.#policy;
    if (policy === undefined) return;
    policy.apply(event, this.now, this.#sink);
    if (this.#aborted.length > 0) this.#performAborts();
    this.#wakeAt = policy.nextWakeAt();
  }

  #performAborts(): void {
    while (this.#aborted.length > 0) this.#end(this.#aborted.pop() as SimJob, ABORTED);
  }

  #createSink(): EffectSink {
    return {
      admitted() {},
      assign: (taskId, nodeId, attempt) => this.#start(taskId, nodeId, attempt),
      degraded: (taskId, { index, verdict }) => {
        if (verdict === 'taken') this.#jobs.get(taskId)?.lessen(index);
      },
      abort: (taskId) => {
        const job = this.#jobs.get(taskId);
        if (job?.node !== undefined) this.#aborted.push(job);
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

  #createMachineSink(): MachineSink {
    const report = (job: SimJob, result: AttemptResult | undefined): void => {
      this.#reported.push(job);
      this.#results.push(result);
      this.#turns.push(job.turn);
    };
    return {
      firstByte: (job) => report(job as SimJob, undefined),
      ended: (job, result) => report(job as SimJob, result),
    };
  }

  #start(taskId: TaskId, nodeId: NodeId, number: number): void {
    const job = this.#jobs.get(taskId) as SimJob;
    const node = this.nodes.get(nodeId) as SimNode;
    this.hash.add(ASSIGNED + node.index, taskId, this.now);
    job.attempts = number;
    job.turn += 1;
    job.sentAt = this.now;
    if (job.firstSentAt < 0) job.firstSentAt = this.now;
    job.firstByteAt = -1;
    job.nodeIndex = node.index;
    job.node = node;
    this.#observer.assigned?.(job, nodeId, this.now);
    const { firstByteUs } = (this.#policy as Policy).attemptLimits(taskId);
    if (firstByteUs > 0) this.#silences.bound(job, this.now + firstByteUs);
    const failure = node.failureOf(job);
    if (failure !== undefined) return this.#failLater(node, job, failure);
    if (this.#idleSince !== NEVER) this.#resume();
    node.machine.start(job, job.task.model, this.now);
    this.touch(node);
  }

  #resume(): void {
    this.#resumeUs = this.resumeUs;
    this.#idleSince = NEVER;
  }

  #failLater({ faults }: SimNode, job: SimJob, failure: FailureKind): void {
    const afterUs = faults.partitioned ? CONNECT_TIMEOUT_US : Math.ceil(FAST_FAILURE_US * faults.hostLoad);
    this.#mail.push(this.now + afterUs, { job, turn: job.turn, result: failed(failure) });
  }

  #end(job: SimJob, result: AttemptResult): void {
    const { node } = job;
    if (node === undefined) return;
    job.node = undefined;
    job.silentAt = NEVER;
    if (result.kind !== 'ok') this.#stop(node, job);
    this.#observer.attemptEnded?.(job, result, this.now);
    if (job.isSettled) this.#leave(job);
    const isBroken = result.kind === 'failed' && job.task.stream && job.firstByteAt >= 0;
    const told = isBroken ? { ...result, retryable: false } : result;
    this.#apply({ kind: 'attempt-ended', taskId: job.id, result: told });
  }

  /** It has its outcome and no attempt: whoever is told of this now may still look at it. */
  #leave(job: SimJob): void {
    this.#jobs.delete(job.id);
    if (job.isScattered || this.#left.size >= SPARE_JOBS_MAX) this.#silences.forget(job);
    else this.#left.push(job);
  }

  /** Records of jobs that left serve again, between events. */
  #reuse(): void {
    for (let i = 0; i < this.#left.size; i++) {
      const job = this.#left.at(i);
      job.request.release?.();
      if (this.#spare.length < SPARE_JOBS_MAX) this.#spare.push(job);
      else this.#silences.forget(job);
    }
    this.#left.clear();
  }

  /** Whoever cannot be told goes on working for nobody until he can. */
  #stop(node: SimNode, job: SimJob): void {
    job.isScattered = true;
    if (node.faults.partitioned) {
      node.unstopped.add(job);
      return;
    }
    node.machine.abort(job, this.now);
    this.touch(node);
  }

  #settle(job: SimJob, end: JobEnd): void {
    job.isSettled = true;
    if (job.node === undefined) this.#leave(job);
    this.#observer.outcome?.(job, end, this.now);
    this.#clients.outcome(job.id, end, this.now);
  }

  #lose(job: SimJob): void {
    const { node } = job;
    if (node !== undefined) {
      job.node = undefined;
      job.silentAt = NEVER;
      this.#stop(node, job);
      this.#observer.attemptEnded?.(job, LOST, this.now);
    }
    if (!job.isSettled) this.#settle(job, LOST);
  }

  #resetAll(node: SimNode): void {
    for (const job of this.#jobs.all()) if (job.node === node) this.#say(node, job, failed('reset'));
  }

  /** A heartbeat and a probe in one: whether it answers, and what it says of itself; or a look at that alone. */
  #beat(node: SimNode): void {
    this.#beats.update(node.beatPlace, this.now + Math.ceil(node.lookUs * node.faults.hostLoad));
    const isProbed = node.isProbedNow();
    const { isReachable } = node;
    const nodeId = node.spec.id;
    if (this.#policy === undefined) return;
    if (!this.#registered.has(nodeId)) {
      if (isProbed && isReachable) this.register(node);
      return;
    }
    if (isProbed) this.#apply({ kind: 'node-probed', nodeId, alive: isReachable });
    if (!isReachable) return;
    if (isProbed && node.spec.heartbeats) this.#apply({ kind: 'node-heartbeat', nodeId });
    const reading = node.reading(this.now);
    if (reading !== undefined) this.#apply({ kind: 'node-reading', nodeId, reading });
  }
}

const TICK: SchedulerEvent = Object.freeze({ kind: 'tick' });
const ABORTED: AttemptResult = Object.freeze({ kind: 'aborted' });
const CANCELLED: Outcome = Object.freeze({ kind: 'cancelled' });
const TIMED_OUT: AttemptResult = failed('timeout');
const LOST: JobEnd & AttemptEnd = Object.freeze({ kind: 'lost' });
/** What is hashed of an assignment is its node, above all kinds of outcomes. */
const OUTCOME_KINDS = ['served', 'degraded', 'rejected', 'evicted', 'failed', 'cancelled'];
const ASSIGNED = 16;

function failed(failure: FailureKind): AttemptResult {
  return { kind: 'failed', failure, retryable: true };
}
