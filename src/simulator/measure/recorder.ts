/**
 * Watches a run as clients and machines see it, in one pass and bounded memory, and says in the end what it came to.
 *
 * Users who arrive within the window count, each once and in each of his groups: all, class, stream, tenant, size. Goodput
 * is the true work of answers that were complete, in time, within the window, over what the fleet could do in it.
 */
import type { DurationUs, MonoUs, NodeId, Ratio, RefUs } from '../../base/units.ts';
import type { User, UserEnd, UserObserver } from '../clients/user.ts';
import type { AttemptEnd, JobEnd, Observer, TrackedJob } from '../observer.ts';
import type { SimNode } from '../sim-node.ts';
import { Cells } from './cells.ts';
import type { Ending, Group } from './group.ts';
import { bucketOf, TimedValue } from './log-histogram.ts';
import { Phases } from './phases.ts';
import { type Disturbance, Recovery } from './recovery.ts';
import { Prefixes } from './prefixes.ts';
import type { NodeReport, PolicyReport } from './report.ts';
import { RetryDelays } from './retry-delays.ts';
import { type Levels, SAMPLED_ENDS, type Sampler } from './sampler.ts';
import { type Tenant, Tenants, type Window } from './tenants.ts';
import type { UserLog } from './user-log.ts';
import { WaitBounds } from './wait-bound.ts';

export interface RecorderOptions {
  readonly window: Window;
  /** Most important first; and the part of the capacity that each is promised. */
  readonly classes: readonly string[];
  readonly classShares: ReadonlyMap<string, Ratio>;
  readonly streams: readonly string[];
  readonly tenantWeights: readonly { readonly id: string; readonly weight: number }[];
  readonly nodes: readonly SimNode[];
  /** By stream: work per microsecond that the fleet can do of its mix. */
  readonly capacity: readonly number[];
  /** The same of the fastest node alone. */
  readonly fastestRate: number;
  /** Instants at which a rate changes. */
  readonly changes: readonly MonoUs[];
  readonly disturbance: Disturbance | undefined;
  /** Of the second class, or of the only one: whose waits tell of a recovery. */
  readonly deadlineUs: DurationUs;
  readonly sampler: Sampler | undefined;
  /** Where each user who counts is to be told of. */
  readonly users?: UserLog | undefined;
}

/** What the recorder cannot see itself. */
export interface RunFacts
  extends Pick<PolicyReport, 'decisionHash' | 'wallSeconds' | 'crashes' | 'resumeSeconds'> {
  readonly now: MonoUs;
}

class NodeTally {
  served = 0;
  workUs: RefUs = 0;
  /** What it had computed at the beginning and at the end of the window. */
  busyFromUs: DurationUs = 0;
  busyUntilUs: DurationUs = 0;
}

export class Recorder implements Observer, UserObserver {
  readonly #options: RecorderOptions;
  readonly #cells: Cells;
  readonly #tenants: Tenants;
  readonly #nodes: readonly NodeTally[];
  readonly #phases: Phases;
  readonly #waitBounds: WaitBounds;
  readonly #recovery: Recovery | undefined;
  readonly #prefixes: Prefixes | undefined;
  /** By stream, and there by position: its classes in the configuration, and its tenants. */
  readonly #classRows: readonly number[][];
  readonly #tenantRows: readonly Tenant[][];
  readonly #retryDelays = new RetryDelays();
  readonly #watchedClass: number;
  readonly #queued: number[];
  readonly #ending: Ending = {
    kind: 'served',
    inTime: false,
    inTimeOfTry: false,
    wait: new TimedValue(),
    response: new TimedValue(),
    firstByte: new TimedValue(),
    workUs: 0,
  };
  /** The request whose outcome is being told. */
  #settling: TrackedJob | undefined;
  /** Whose request had its outcome last, and the node of its last attempt. */
  #settledUser: User | undefined;
  #settledNode = -1;
  #running = 0;
  #open = 0;
  #peakOpen = 0;
  #requests = 0;
  #dispatched = 0;
  #goodUs = 0;
  #goodByTryUs = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    const { classes, streams, nodes, window, disturbance } = options;
    this.#cells = new Cells(classes.length, streams.length);
    this.#tenants = new Tenants(window, options.tenantWeights);
    this.#classRows = streams.map(() => []);
    this.#tenantRows = streams.map(() => []);
    this.#nodes = nodes.map(() => new NodeTally());
    this.#phases = new Phases({ changes: options.changes, window, classes });
    this.#waitBounds = new WaitBounds({ shares: options.classShares, fastestRate: options.fastestRate });
    this.#recovery = disturbance === undefined ? undefined : new Recovery(disturbance, options.deadlineUs);
    this.#prefixes = Prefixes.of(nodes);
    this.#watchedClass = Math.min(1, classes.length - 1);
    this.#queued = classes.map(() => 0);
  }

  userArrived(user: User, now: MonoUs): void {
    // The record of one who ended may be another's now.
    if (user === this.#settledUser) this.#settledUser = undefined;
    this.#options.sampler?.arrived(user.workUs);
    this.#recovery?.arrived(now);
    if (!this.#counts(user)) return;
    this.#phases.arrived(now, this.#classIn(user), this.#fleetUs(user, user.workUs));
    this.#cellOf(user).offered += 1;
    this.#tenantOf(user).offered += 1;
    this.#options.users?.arrived(user);
  }

  userEnded(user: User, end: UserEnd, now: MonoUs): void {
    const ending = this.#endingOf(user, end, now);
    const isAnswer = ending.kind === 'served' || ending.kind === 'degraded';
    this.#options.sampler?.ended(SAMPLED_ENDS.indexOf(isAnswer && !ending.inTime ? 'late' : ending.kind));
    if (isAnswer) this.#answered(user, now);
    else if (this.#classIn(user) === this.#watchedClass) this.#recovery?.turnedAway(now);
    if (!this.#counts(user)) return;
    this.#phases.ended(user.arrivedAt, this.#classIn(user), ending);
    this.#retryDelays.userEnded(user.index);
    this.#cellOf(user).end(ending);
    this.#tenantOf(user).end(ending);
    const node = this.#settledUser === user ? this.#settledNode : -1;
    this.#options.users?.ended(user, ending, { node, afterUs: now - user.arrivedAt });
  }

  submitted(job: TrackedJob, now: MonoUs): void {
    this.#requests += 1;
    this.#open += 1;
    if (this.#open > this.#peakOpen) this.#peakOpen = this.#open;
    this.#options.sampler?.tried();
    this.#expect(job);
    this.#queue(job, now);
  }

  assigned(job: TrackedJob, _nodeId: NodeId, now: MonoUs): void {
    this.#unqueue(job, now);
    this.#running += 1;
    this.#attempt(job, now);
    if (job.attempts > 1) return;
    this.#dispatched += 1;
    this.#prefixes?.asked(job.demand);
    const { user, submittedAt } = job;
    this.#waitBounds.starts(job, now - submittedAt);
    this.#waited(job, now - submittedAt);
    const waitUs = now - (user?.arrivedAt ?? submittedAt);
    if (this.#options.sampler === undefined && this.#recovery === undefined) return;
    this.#options.sampler?.dispatched(bucketOf(waitUs));
    if (this.#classOf(job) === this.#watchedClass) this.#recovery?.waited(waitUs, now - submittedAt, now);
  }

  attemptEnded(job: TrackedJob, end: AttemptEnd, now: MonoUs): void {
    this.#running -= 1;
    const node = this.#options.nodes[job.nodeIndex] as SimNode;
    const aloneUs = node.machine.serviceUs(job.demand) * job.noise;
    this.#tenant(job).acceleratorUs += Math.min(aloneUs, now - job.sentAt);
    this.#lossOf(job, end, now);
    if (!job.isSettled) this.#queue(job, now);
  }

  outcome(job: TrackedJob, end: JobEnd, now: MonoUs): void {
    this.#open -= 1;
    if (!job.isRunning) this.#unqueue(job, now);
    if (job.firstSentAt < 0) this.#gaveUpWaiting(job, now);
    this.#settledUser = job.user;
    this.#settledNode = job.nodeIndex;
    const isAnswer = end.kind === 'served' || end.kind === 'degraded';
    this.#settling = isAnswer ? job : undefined;
    if (!isAnswer && this.#classOf(job) === this.#watchedClass) this.#recovery?.tryTurnedAway(now);
  }

  /** To be called at the beginning and at the end of the window. */
  markWindow(edge: 'from' | 'until', now: MonoUs): void {
    for (const [index, tally] of this.#nodes.entries()) {
      const busyUs = (this.#options.nodes[index] as SimNode).machine.busyUs(now);
      if (edge === 'from') tally.busyFromUs = busyUs;
      else tally.busyUntilUs = busyUs;
    }
  }

  /** Requests that wait by class, and those on nodes. */
  levels(): Pick<Levels, 'queued' | 'running'> {
    return { queued: this.#queued, running: this.#running };
  }

  /** `open` are the requests that never had an outcome. */
  report(open: Iterable<TrackedJob>, facts: RunFacts): PolicyReport {
    for (const job of open) if (job.firstSentAt < 0) this.#gaveUpWaiting(job, facts.now);
    const { classes, streams, nodes, window } = this.#options;
    const swaps = nodes.reduce((sum, { machine }) => sum + machine.swaps, 0);
    const nodeReports = nodes.map((_, index) => this.#nodeReport(index));
    return {
      decisionHash: facts.decisionHash,
      requests: this.#requests,
      simulatedSeconds: facts.now / 1e6,
      wallSeconds: facts.wallSeconds,
      crashes: facts.crashes,
      resumeSeconds: facts.resumeSeconds,
      goodputRatio: this.#goodUs / (window.until - window.from),
      goodputByTryRatio: this.#goodByTryUs / (window.until - window.from),
      busyRatio: mean(this.#nodes.map((_, index) => this.#busyRatio(index))),
      swapsPerRequest: this.#dispatched === 0 ? 0 : swaps / this.#dispatched,
      ...optional('jain', this.#tenants.jain(facts.now)),
      peakOpen: this.#peakOpen,
      all: this.#cells.all(),
      byClass: this.#cells.byClass(classes),
      byStream: this.#cells.byStream(streams),
      byTenant: this.#tenants.report(),
      bySize: this.#cells.bySize(),
      ...optional('byPhase', this.#phases.report()),
      ...optional('waitBound', this.#waitBounds.report()),
      nodes: Object.fromEntries(nodes.map(({ spec }, index) => [spec.id, nodeReports[index] as NodeReport])),
      ...optional('prefixes', this.#prefixes?.report(nodeReports)),
      ...this.#recoveries(facts.now),
      ...this.#retryDelays.report(),
    };
  }

  #counts({ arrivedAt }: User): boolean {
    const { from, until } = this.#options.window;
    return arrivedAt >= from && arrivedAt < until;
  }

  #cellOf(user: User): Group {
    return this.#cells.of(this.#classIn(user), user.stream, user.workUs);
  }

  /** How long the whole fleet needs for it. */
  #fleetUs({ stream }: User, workUs: RefUs): DurationUs {
    return workUs / (this.#options.capacity[stream] as number);
  }

  #classOf({ user, task }: TrackedJob): number {
    return user === undefined ? this.#options.classes.indexOf(task.className) : this.#classIn(user);
  }

  /** Looked up by name once per stream and class: every event of every request asks. */
  #classIn({ stream, classAt, className }: User): number {
    const row = this.#classRows[stream] as number[];
    return (row[classAt] ??= this.#options.classes.indexOf(className));
  }

  #tenant({ user, task }: TrackedJob): Tenant {
    return user === undefined ? this.#tenants.of(task.tenant) : this.#tenantOf(user);
  }

  /** Looked up by name once per stream and tenant. */
  #tenantOf({ stream, tenantAt, tenant }: User): Tenant {
    const row = this.#tenantRows[stream] as Tenant[];
    return (row[tenantAt] ??= this.#tenants.of(tenant));
  }

  #endingOf(user: User, { kind }: UserEnd, now: MonoUs): Ending {
    const ending = this.#ending;
    ending.kind = kind;
    ending.inTime = false;
    ending.inTimeOfTry = false;
    if (kind !== 'served' && kind !== 'degraded') return ending;
    const job = this.#settling as TrackedJob;
    const isStreamed = job.task.stream && job.firstByteAt >= 0;
    const firstByteUs = isStreamed ? job.firstByteAt - user.arrivedAt : -1;
    const responseUs = now - user.arrivedAt;
    ending.wait.set(job.firstSentAt < 0 ? 0 : job.firstSentAt - user.arrivedAt);
    ending.response.set(responseUs);
    ending.firstByte.set(firstByteUs);
    const doneUs = isStreamed ? firstByteUs : responseUs;
    ending.inTime = doneUs <= user.deadlineUs;
    ending.inTimeOfTry = doneUs + user.arrivedAt - job.submittedAt <= user.deadlineUs;
    ending.workUs = user.workUs * job.share;
    return ending;
  }

  #answered(user: User, now: MonoUs): void {
    const { window } = this.#options;
    const { inTime, inTimeOfTry, workUs } = this.#ending;
    const { nodeIndex, sentAt } = this.#settling as TrackedJob;
    const tally = this.#nodes[nodeIndex];
    if (tally !== undefined) {
      tally.served += 1;
      tally.workUs += workUs;
    }
    this.#recovery?.answered(user.arrivedAt);
    if (inTime) this.#recovery?.servedInTime(user.arrivedAt, now);
    this.#tenants.served(this.#tenantOf(user), workUs, { since: sentAt < 0 ? now : sentAt, now });
    if (now < window.from || now >= window.until) return;
    const fleetUs = this.#fleetUs(user, workUs);
    if (inTimeOfTry) this.#goodByTryUs += fleetUs;
    if (!inTime) return;
    this.#goodUs += fleetUs;
    this.#phases.answered(now, fleetUs);
  }

  #attempt(job: TrackedJob, now: MonoUs): void {
    const { user, nodeIndex } = job;
    if (user === undefined || !this.#counts(user)) return;
    this.#cellOf(user).attempts += 1;
    this.#tenantOf(user).attempts += 1;
    this.#retryDelays.started(user.index, this.#options.nodes[nodeIndex] as SimNode, now);
  }

  /** A policy that stops an attempt on a node that is well, and for which it has no outcome, took its place away. */
  #lossOf(job: TrackedJob, end: AttemptEnd, now: MonoUs): void {
    const { user, nodeIndex, sentAt, isSettled } = job;
    if (end.kind === 'ok' || user === undefined || !this.#counts(user)) return;
    const node = this.#options.nodes[nodeIndex] as SimNode;
    if (end.kind === 'aborted' && !isSettled && node.isReachable) {
      this.#cellOf(user).preempted += 1;
      this.#tenantOf(user).preempted += 1;
    }
    this.#retryDelays.attemptEnded(user.index, { end, node, sentAt }, now);
  }

  #queue(job: TrackedJob, now: MonoUs): void {
    const index = this.#classOf(job);
    this.#queued[index] = (this.#queued[index] as number) + 1;
    this.#tenants.waits(this.#tenant(job), now);
  }

  #unqueue(job: TrackedJob, now: MonoUs): void {
    const index = this.#classOf(job);
    this.#queued[index] = (this.#queued[index] as number) - 1;
    this.#tenants.leaves(this.#tenant(job), now);
  }

  /** What fair shares promise the try. */
  #expect(job: TrackedJob): void {
    const { user } = job;
    if (user === undefined) return;
    const capacity = this.#options.capacity[user.stream] as number;
    this.#waitBounds.waits(job, { workUs: user.workUs, capacity, counts: this.#counts(user) });
  }

  #gaveUpWaiting(job: TrackedJob, now: MonoUs): void {
    const waitUs = now - job.submittedAt;
    this.#waitBounds.ends(job, waitUs);
    this.#waited(job, waitUs);
  }

  /** Only tries of users who count. */
  #waited({ user }: TrackedJob, waitUs: DurationUs): void {
    if (waitUs === 0 || user === undefined || !this.#counts(user)) return;
    this.#cellOf(user).waited(waitUs);
    this.#tenantOf(user).waited(waitUs);
  }

  #busyRatio(index: number): Ratio {
    const { busyFromUs, busyUntilUs } = this.#nodes[index] as NodeTally;
    const { window, nodes } = this.#options;
    const slots = Math.max(1, (nodes[index] as SimNode).spec.slots);
    return (busyUntilUs - busyFromUs) / ((window.until - window.from) * slots);
  }

  #nodeReport(index: number): NodeReport {
    const { served, workUs } = this.#nodes[index] as NodeTally;
    return { served, busyRatio: this.#busyRatio(index), workSeconds: workUs / 1e6 };
  }

  #recoveries(now: MonoUs): Partial<PolicyReport> {
    const recovery = this.#recovery;
    if (recovery === undefined) return {};
    const until = Math.min(now, this.#options.window.until);
    return {
      recoverySeconds: recovery.waitsSeconds(now),
      tryRecoverySeconds: recovery.tryWaitsSeconds(now),
      goodputRecoverySeconds: recovery.goodputSeconds(0.95, until),
      goodputRecovery98Seconds: recovery.goodputSeconds(0.98, until),
      rateRecoverySeconds: recovery.rateSeconds(0.95, until),
      answersRecoverySeconds: recovery.answersSeconds(0.95, until),
    };
  }
}

function optional<Key extends string, T>(key: Key, value: T | undefined): { readonly [K in Key]?: T } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [K in Key]: T });
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
