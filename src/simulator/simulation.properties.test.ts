/**
 * The driver against anything: policies that assign, abort, refuse and forget as they please, clients that leave, faults at
 * any time. What must hold is what every policy, machine and measurement relies on.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nodeGroup } from '../../test/support/scenarios.ts';
import { nodeSpec, S, taskSpec } from '../../test/support/specs.ts';
import { createPrng } from '../base/prng.ts';
import type { MonoUs, NodeId, TaskId } from '../base/units.ts';
import type { EffectSink } from '../core/scheduler/effects.ts';
import type { SchedulerEvent } from '../core/scheduler/events.ts';
import type { Clients } from './clients/clients.ts';
import { scheduleFaults } from './faults/faults.ts';
import type { Job, Machine } from './machines/machine.ts';
import { SlotMachine } from './machines/slot-machine.ts';
import type { TrackedJob } from './observer.ts';
import type { Policy } from './policies/policy.ts';
import type { FaultSpec } from './scenario/types.ts';
import { SimNode } from './sim-node.ts';
import { Simulation } from './simulation.ts';

const SPAN = 60 * S;
const NO_REFUSAL = { hint: { retryable: false, afterUs: 0 } };

/** Does whatever its draws say, within the contract; keeps books of what it was told. */
class RandomPolicy implements Policy {
  readonly prng: ReturnType<typeof createPrng>;
  readonly waiting: Set<TaskId> = new Set();
  readonly running: Map<TaskId, NodeId> = new Map();
  readonly nodes: NodeId[] = [];
  now: MonoUs = 0;
  assigned = 0;
  ended = 0;
  /** Attempts of tasks that already have their outcome. */
  readonly #settled: Set<TaskId> = new Set();
  readonly #attempts: Map<TaskId, number> = new Map();

  constructor(seed: number) {
    this.prng = createPrng(seed);
  }

  apply(event: SchedulerEvent, now: MonoUs, out: EffectSink): void {
    if (now < this.now) throw new Error('Time went back');
    this.now = now;
    if (event.kind === 'node-registered' && !this.nodes.includes(event.node.id))
      this.nodes.push(event.node.id);
    if (event.kind === 'submit') this.waiting.add(event.task.id);
    if (event.kind === 'cancel') this.#cancel(event.taskId, out);
    if (event.kind === 'attempt-ended') this.#ended(event.taskId, event.result.kind, out);
    this.#decide(out);
  }

  nextWakeAt(): MonoUs {
    return this.waiting.size + this.running.size > 0 ? this.now + 700_000 : Number.POSITIVE_INFINITY;
  }

  attemptLimits(): { readonly firstByteUs: number; readonly idleUs: number } {
    return { firstByteUs: this.prng.nextBelow(3) === 0 ? 2 * S : 0, idleUs: 0 };
  }

  accounts(): never {
    throw new Error('No accounts');
  }

  #cancel(taskId: TaskId, out: EffectSink): void {
    if (this.waiting.delete(taskId)) return out.outcome(taskId, { kind: 'cancelled' });
    if (this.running.has(taskId) && !this.#settled.has(taskId))
      this.#abort(taskId, out, { kind: 'cancelled' });
  }

  #ended(taskId: TaskId, kind: string, out: EffectSink): void {
    if (!this.running.delete(taskId)) throw new Error('An attempt ended that was not under way');
    this.ended += 1;
    if (this.#settled.delete(taskId)) return;
    if (kind === 'ok') out.outcome(taskId, { kind: 'served' });
    else if (kind === 'failed' && (this.#attempts.get(taskId) ?? 0) > 3)
      out.outcome(taskId, { kind: 'failed', reason: 'node-failed', ...NO_REFUSAL });
    else this.waiting.add(taskId);
  }

  /** Either for good, with its outcome, or to be tried again. */
  #abort(taskId: TaskId, out: EffectSink, end: { readonly kind: 'cancelled' } | undefined): void {
    out.abort(taskId, this.running.get(taskId) as NodeId);
    if (end === undefined || this.#settled.has(taskId)) return;
    this.#settled.add(taskId);
    out.outcome(taskId, end);
  }

  #decide(out: EffectSink): void {
    for (const taskId of this.waiting) {
      const roll = this.prng.nextBelow(20);
      if (roll === 0) {
        this.waiting.delete(taskId);
        out.outcome(taskId, { kind: 'evicted', reason: 'wait-expired', ...NO_REFUSAL });
      } else if (roll < 12 && this.nodes.length > 0) {
        this.waiting.delete(taskId);
        this.assigned += 1;
        const nodeId = this.nodes[this.prng.nextBelow(this.nodes.length)] as NodeId;
        const attempt = (this.#attempts.get(taskId) ?? 0) + 1;
        this.#attempts.set(taskId, attempt);
        this.running.set(taskId, nodeId);
        out.assign(taskId, nodeId, attempt);
      }
    }
    for (const taskId of [...this.running.keys()])
      if (this.prng.nextBelow(60) === 0)
        this.#abort(taskId, out, this.prng.nextBelow(2) === 0 ? { kind: 'cancelled' } : undefined);
  }
}

/** Sees that a job is on a machine at most once, and taken off each that it was cut from. */
class WatchedMachine extends SlotMachine {
  readonly on: Set<Job> = new Set();

  override start(job: Job, model: string, now: MonoUs): void {
    if (this.on.has(job)) throw new Error('A job was started twice on one machine');
    this.on.add(job);
    super.start(job, model, now);
  }

  override abort(job: Job, now: MonoUs): void {
    this.on.delete(job);
    super.abort(job, now);
  }

  override advance(now: MonoUs, sink: Parameters<Machine['advance']>[1]): void {
    super.advance(now, {
      firstByte: (job) => sink.firstByte(job),
      ended: (job, result) => {
        this.on.delete(job);
        sink.ended(job, result);
      },
    });
  }

  override drop(now: MonoUs): readonly Job[] {
    this.on.clear();
    return super.drop(now);
  }
}

/** What a machine works on is what was sent there and not ended, but for nodes that cannot be told. */
function checkMachines(fleet: readonly SimNode[]): void {
  for (const { machine, faults, index } of fleet) {
    if (faults.partitioned) continue;
    for (const job of (machine as WatchedMachine).on as Set<TrackedJob>)
      if (!job.isRunning || job.nodeIndex !== index) throw new Error('A machine works for nobody');
  }
}

/** Poisson-like arrivals, some of whom leave after a while. */
function crowd(seed: number, ends: Map<TaskId, number>): Clients {
  const prng = createPrng(seed);
  const leaves: { readonly at: MonoUs; readonly id: TaskId }[] = [];
  let nextAt = 0;
  let id = 1;
  const due = (): MonoUs =>
    Math.min(nextAt < SPAN ? nextAt : Number.POSITIVE_INFINITY, leaves[0]?.at ?? Number.POSITIVE_INFINITY);
  return {
    nextAt: due,
    advance(now, sink) {
      if (leaves[0] !== undefined && leaves[0].at <= now)
        return sink.cancel((leaves.shift() as { id: TaskId }).id);
      nextAt = now + 1 + prng.nextBelow(S / 2);
      const task = taskSpec(id++, { stream: prng.nextBelow(2) === 0 });
      if (prng.nextBelow(3) === 0) leaves.push({ at: now + 3 * S, id: task.id });
      sink.submit({ task, demand: { kind: 'work', workUs: 1 + prng.nextBelow(2 * S) }, noise: 1 });
    },
    outcome: (taskId) => void ends.set(taskId, (ends.get(taskId) ?? 0) + 1),
  };
}

const nodes = fc.record({ group: fc.constant(''), count: fc.integer({ min: 0, max: 3 }) });
const time = fc.integer({ min: 0, max: SPAN });
const forUs = fc.integer({ min: 1, max: 20 * S });
const fault: fc.Arbitrary<FaultSpec> = fc.oneof(
  fc.record({
    at: time,
    kind: fc.constantFrom(
      'dead' as const,
      'hang' as const,
      'refuse' as const,
      'partition' as const,
      'stale-readings' as const,
      'restart' as const,
    ),
    nodes,
    forUs,
  }),
  fc.record({
    at: time,
    kind: fc.constant('slow' as const),
    nodes,
    times: fc.integer({ min: 1, max: 9 }),
    forUs,
  }),
  fc.record({
    at: time,
    kind: fc.constant('gray' as const),
    nodes,
    failShare: fc.constantFrom(0.2, 1),
    forUs,
  }),
  fc.record({ at: time, kind: fc.constant('mass-reconnect' as const), nodes }),
  fc.record({
    at: time,
    kind: fc.constant('clock-skew' as const),
    nodes,
    skewUs: fc.integer({ min: -9 * S, max: 9 * S }),
    forUs,
  }),
  fc.record({
    at: time,
    kind: fc.constant('cpu-spike' as const),
    nodes,
    load: fc.integer({ min: 1, max: 4 }),
    forUs,
  }),
);
const crash: fc.Arbitrary<FaultSpec> = fc.record({
  at: time,
  kind: fc.constant('scheduler-crash' as const),
  downUs: fc.integer({ min: 0, max: 5 * S }),
});

interface Case {
  readonly seed: number;
  readonly slots: number;
  readonly rttUs: number;
  readonly tasksMax: number;
  readonly faults: readonly FaultSpec[];
}

function play({ seed, slots, rttUs, tasksMax, faults }: Case): {
  readonly simulation: Simulation;
  readonly policies: readonly RandomPolicy[];
  readonly ends: ReadonlyMap<TaskId, number>;
  readonly seen: { submitted: number; open: number; running: number };
} {
  const ends = new Map<TaskId, number>();
  const policies: RandomPolicy[] = [];
  const seen = { submitted: 0, open: 0, running: 0 };
  const fleet = Array.from({ length: 3 }, (_, index) => {
    const machine = new WatchedMachine({
      slots,
      serviceUs: (demand) => (demand.kind === 'work' ? Number(demand.workUs) : S),
    });
    return new SimNode({ spec: nodeSpec(`n${index}`), machine, rttUs, beatUs: index * S }, index);
  });
  const simulation = new Simulation({
    createPolicy: () => {
      policies.push(new RandomPolicy(seed + policies.length));
      return policies.at(-1) as RandomPolicy;
    },
    nodes: fleet,
    clients: crowd(seed, ends),
    observer: {
      submitted: () => void [(seen.submitted += 1), (seen.open += 1)],
      assigned: () => {
        seen.running += 1;
        checkMachines(fleet);
      },
      attemptEnded: () => {
        seen.running -= 1;
        checkMachines(fleet);
      },
      outcome: () => void (seen.open -= 1),
    },
    process: { tasksMax, restartUs: S, registryIsDurable: true },
  });
  scheduleFaults(simulation, faults, [nodeGroup({ name: 'n', count: 3 })]);
  simulation.runUntil(600 * S);
  return { simulation, policies, ends, seen };
}

const cases = (withCrash: boolean): fc.Arbitrary<Case> =>
  fc.record({
    seed: fc.integer({ min: 1, max: 1e6 }),
    slots: fc.integer({ min: 1, max: 3 }),
    rttUs: fc.constantFrom(0, 30_000),
    tasksMax: withCrash ? fc.constantFrom(0, 12) : fc.constant(0),
    faults: fc.array(withCrash ? fc.oneof(fault, crash) : fault, { maxLength: 6 }),
  });

describe('Simulation, whatever the policy and the faults,', () => {
  test('ends every assignment once and every request once, and is empty at the end', () => {
    fc.assert(
      fc.property(cases(false), (one) => {
        const { simulation, policies, ends, seen } = play(one);
        const [policy] = policies as [RandomPolicy];
        expect(policy.ended).toBe(policy.assigned);
        expect(policy.running.size).toBe(0);
        expect([...ends.values()].every((count) => count === 1)).toBe(true);
        expect(ends.size).toBe(seen.submitted);
        expect([seen.open, seen.running, simulation.openJobs]).toEqual([0, 0, 0]);
        for (const { machine, unsent, unstopped } of simulation.nodes.values()) {
          expect([machine.inflight, unsent.length, unstopped.size]).toEqual([0, 0, 0]);
          expect((machine as WatchedMachine).on.size).toBe(0);
        }
      }),
      { numRuns: 150 },
    );
  });

  test('loses what a crash takes, once, and leaves nothing behind', () => {
    fc.assert(
      fc.property(cases(true), (one) => {
        const { simulation, ends, seen } = play(one);
        expect([...ends.values()].every((count) => count === 1)).toBe(true);
        expect(ends.size).toBe(seen.submitted);
        expect([seen.open, seen.running, simulation.openJobs]).toEqual([0, 0, 0]);
        for (const { machine, unstopped } of simulation.nodes.values())
          expect([machine.inflight, unstopped.size]).toEqual([0, 0]);
      }),
      { numRuns: 150 },
    );
  });

  test('decides the same twice', () => {
    fc.assert(
      fc.property(cases(true), (one) => {
        expect(play(one).simulation.hash.digest()).toBe(play(one).simulation.hash.digest());
      }),
      { numRuns: 20 },
    );
  });
});
