/**
 * The same arrivals under another policy. Each request takes on each node what it took there in fact, and where it did not
 * run there, its estimated work at the rate that was learned for that node by the end.
 *
 * What that assumes, and cannot know: nodes do not fail; a request takes as long on a node whatever runs beside it; and those who
 * were refused come back when they came back in fact, although another policy would have refused others. So the recorded policy
 * is simulated as well: how far that is from what was recorded is how far to trust the rest.
 */
import { type DurationUs, type MonoUs, msToUs, type TaskId } from '../../base/units.ts';
import type { Clients, ClientSink, Request } from '../clients/clients.ts';
import type { Demand } from '../machines/machine.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import type { JobEnd, TrackedJob } from '../observer.ts';
import { createPolicy } from '../policies/registry.ts';
import { SimNode } from '../sim-node.ts';
import { Simulation } from '../simulation.ts';
import { type RecordedNode, type RecordedRequest, type RecordedRun, serviceKey } from './recorded-run.ts';

/** What is left is given this long after the last event. */
const DRAIN_US: DurationUs = msToUs(600_000);
/** Concurrency of a node that states none, if more were never seen on it. */
const SLOTS_MIN = 1;

export interface WhatIfRow {
  readonly policy: string;
  readonly className: string;
  readonly requests: number;
  /** Answered, whole or by a lesser answer. */
  readonly answered: number;
  /** Answered with what the deadline bounds in time. */
  readonly inTime: number;
  readonly refused: number;
  readonly failed: number;
  readonly cancelled: number;
  /** From arrival to the end, of the answered. */
  readonly responseMs: { readonly p50: number; readonly p95: number };
}

interface Ended {
  readonly className: string;
  readonly end: string;
  readonly isInTime: boolean;
  readonly responseUs: DurationUs;
}

/** One row per class for what was recorded, and for each policy. */
export function whatIf(run: RecordedRun, policies: readonly string[]): readonly WhatIfRow[] {
  const classNames = run.config.classes.map(({ name }) => name);
  return [
    ...rowsOf('recorded', classNames, run.requests.map(recordedEnd)),
    ...policies.flatMap((policy) => rowsOf(policy, classNames, simulate(run, policy))),
  ];
}

function recordedEnd({ task, at, end, endedAt, firstByteAt }: RecordedRequest): Ended {
  const doneAt = task.stream ? firstByteAt : endedAt;
  const isInTime = doneAt >= 0 && doneAt <= task.deadlineAt;
  return { className: task.className, end, isInTime, responseUs: endedAt - at };
}

function simulate(run: RecordedRun, policy: string): readonly Ended[] {
  const ends: Ended[] = [];
  const options = { policy, config: { ...run.config, policy: 'spillway' as const }, options: {} };
  const tasks = new WeakMap<Demand, TaskId>();
  const simulation = new Simulation({
    createPolicy: () => createPolicy(options, run.config.seed),
    nodes: run.nodes.map((node, index) => nodeOf(run, { node, tasks }, index)),
    clients: new JournalClients(run.requests, tasks),
    observer: { outcome: (job, end, now) => void ends.push(endOf(job, end, now)) },
  });
  for (const { spec, from } of run.nodes) if (from > 0) joinLater(simulation, spec.id, from);
  for (const { at, event } of run.changes) simulation.at(at, () => simulation.apply(event));
  simulation.runUntil(run.spanUs + DRAIN_US);
  return ends;
}

/** Nodes are all there from the start: one that came later is cordoned until then. */
function joinLater(simulation: Simulation, nodeId: string, from: MonoUs): void {
  simulation.at(0, () => simulation.apply({ kind: 'node-cordoned', nodeId, cordoned: true }));
  simulation.at(from, () => simulation.apply({ kind: 'node-cordoned', nodeId, cordoned: false }));
}

function nodeOf(
  run: RecordedRun,
  { node, tasks }: { readonly node: RecordedNode; readonly tasks: WeakMap<Demand, TaskId> },
  index: number,
): SimNode {
  const { spec, memory, inflightMax } = node;
  const recorded = (demand: Demand) => {
    const taskId = tasks.get(demand);
    return taskId === undefined ? undefined : run.services.get(serviceKey(taskId, spec.id));
  };
  const byRate = (demand: Demand): DurationUs => workOf(demand) / rateOf(node);
  const wholeUs = (demand: Demand): DurationUs => recorded(demand)?.wholeUs ?? byRate(demand);
  const machine = new SlotMachine({
    slots: spec.slots > 0 ? spec.slots : Math.max(SLOTS_MIN, inflightMax),
    serviceUs: wholeUs,
    // Where no first byte was recorded, the answer is taken to begin when it ends.
    firstByteUs: (demand) => Math.max(1, recorded(demand)?.firstByteUs || wholeUs(demand) - 1),
  });
  return new SimNode({ spec, machine, memory, rttUs: 0, beatUs: 0 }, index);
}

/** Of all models together where each has none of its own: placement's estimates are of the same kind. */
function rateOf({ rates }: RecordedNode): number {
  const known = [...rates.values()].filter((rate) => rate > 0);
  return (
    rates.get('') ?? (known.length === 0 ? 1 : known.reduce((sum, rate) => sum + rate, 0) / known.length)
  );
}

/** The estimated work rides on a demand of text: only such a one has a first byte. A lesser answer takes a part of it away. */
function workOf(demand: Demand): DurationUs {
  return demand.kind === 'text' ? Math.max(1, demand.outputTokens) : 1;
}

function endOf({ task, firstByteAt, submittedAt }: TrackedJob, end: JobEnd, now: MonoUs): Ended {
  const doneAt = task.stream ? firstByteAt : now;
  const isInTime = doneAt >= 0 && doneAt <= task.deadlineAt;
  return { className: task.className, end: end.kind, isInTime, responseUs: now - submittedAt };
}

/** Comes and hangs up when the recorded clients did. */
class JournalClients implements Clients {
  readonly #arrivals: readonly RecordedRequest[];
  readonly #hangUps: readonly { readonly at: MonoUs; readonly taskId: TaskId }[];
  readonly #over: Set<TaskId> = new Set();
  readonly #tasks: WeakMap<Demand, TaskId>;
  #arrived = 0;
  #left = 0;

  constructor(requests: readonly RecordedRequest[], tasks: WeakMap<Demand, TaskId>) {
    this.#arrivals = requests;
    this.#tasks = tasks;
    this.#hangUps = requests
      .flatMap(({ task, cancelledAt }) =>
        cancelledAt === undefined ? [] : [{ at: cancelledAt, taskId: task.id }],
      )
      .sort((a, b) => a.at - b.at);
  }

  nextAt(): MonoUs {
    const arrival = this.#arrivals[this.#arrived]?.at ?? Number.POSITIVE_INFINITY;
    return Math.min(arrival, this.#hangUps[this.#left]?.at ?? Number.POSITIVE_INFINITY);
  }

  advance(now: MonoUs, sink: ClientSink): void {
    for (let next = this.#arrivals[this.#arrived]; next !== undefined && next.at <= now; ) {
      sink.submit(this.#requestOf(next));
      next = this.#arrivals[++this.#arrived];
    }
    for (let next = this.#hangUps[this.#left]; next !== undefined && next.at <= now; ) {
      if (!this.#over.has(next.taskId)) sink.cancel(next.taskId);
      next = this.#hangUps[++this.#left];
    }
  }

  outcome(taskId: TaskId): void {
    this.#over.add(taskId);
  }

  #requestOf({ task }: RecordedRequest): Request {
    const demand: Demand = { kind: 'text', promptTokens: 0, outputTokens: Math.round(task.workUs) };
    this.#tasks.set(demand, task.id);
    return { task, demand, noise: 1 };
  }
}

function rowsOf(policy: string, classNames: readonly string[], ends: readonly Ended[]): readonly WhatIfRow[] {
  return classNames.flatMap((className) => {
    const own = ends.filter((each) => each.className === className);
    return own.length === 0 ? [] : [rowOf(policy, className, own)];
  });
}

function rowOf(policy: string, className: string, ends: readonly Ended[]): WhatIfRow {
  const count = (...kinds: string[]): number => ends.filter(({ end }) => kinds.includes(end)).length;
  const answered = ends.filter(({ end }) => end === 'served' || end === 'degraded');
  const sorted = answered.map(({ responseUs }) => responseUs).sort((a, b) => a - b);
  const quantile = (share: number): number =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0) / 1_000;
  return {
    policy,
    className,
    requests: ends.length,
    answered: answered.length,
    inTime: answered.filter(({ isInTime }) => isInTime).length,
    refused: count('rejected', 'evicted'),
    failed: count('failed', 'lost'),
    cancelled: count('cancelled'),
    responseMs: { p50: quantile(0.5), p95: quantile(0.95) },
  };
}
