import { describe, expect, test } from 'vitest';
import { nodeGroup, policySpec, scenarioSpec, streamSpec } from '../../../test/support/scenarios.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import type { MonoUs, NodeId } from '../../base/units.ts';
import { defaultSchedulerConfig } from '../../core/config/defaults.ts';
import { createScheduler } from '../../core/scheduler/index.ts';
import type { Clients } from '../clients/clients.ts';
import type { Machine } from '../machines/machine.ts';
import { SlotMachine } from '../machines/slot-machine.ts';
import type { PolicyReport } from '../measure/report.ts';
import { runScenario } from '../run-scenario.ts';
import type { FaultSpec, ProcessSpec } from '../scenario/types.ts';
import { SimNode } from '../sim-node.ts';
import { Simulation } from '../simulation.ts';
import { nodesOf, scheduleFaults } from './faults.ts';

const FIRST = { group: 'node', count: 1 };
const END = 400 * S;

interface Seen {
  readonly simulation: Simulation;
  /** Instants at which requests were sent to a node, and how they ended. */
  sent(node: NodeId, from: MonoUs, until: MonoUs): number;
  ended(kind: string, from: MonoUs, until: MonoUs): number;
  attemptsMean(from: MonoUs, until: MonoUs): number;
}

interface Setting {
  readonly process?: ProcessSpec;
  readonly beatUs?: number;
  readonly machine?: (inner: Machine) => Machine;
  readonly policy?: 'spillway' | 'round-robin';
}

/** Four nodes of one slot, 60 % busy: a request of a second every 417 ms, 20 s of time. */
function run(faults: readonly FaultSpec[], setting: Setting = {}): Seen {
  const sent: { readonly node: NodeId; readonly at: MonoUs }[] = [];
  const ends: { readonly kind: string; readonly at: MonoUs; readonly attempts: number }[] = [];
  let next = 1;
  const at = (): MonoUs => (next * 417_000 > END ? Number.POSITIVE_INFINITY : next * 417_000);
  const clients: Clients = {
    nextAt: at,
    advance(now, sink) {
      const task = taskSpec(next++, { deadlineAt: now + 20 * S });
      sink.submit({ task, demand: { kind: 'work', workUs: S }, noise: 1 });
    },
    outcome() {},
  };
  const nodes = Array.from({ length: 4 }, (_, index) => {
    const inner = new SlotMachine({ slots: 1, serviceUs: () => S });
    const spec = nodeSpec(`node-${index + 1}`, { heartbeats: true });
    const machine = setting.machine?.(inner) ?? inner;
    return new SimNode({ spec, machine, rttUs: 2_000, beatUs: setting.beatUs ?? 5 * S }, index);
  });
  const simulation = new Simulation({
    createPolicy: () => createScheduler(defaultSchedulerConfig({ policy: setting.policy ?? 'spillway' })),
    nodes,
    clients,
    observer: {
      assigned: (_job, node, now) => void sent.push({ node, at: now }),
      outcome: (job, { kind }, now) => void ends.push({ kind, at: now, attempts: job.attempts }),
    },
    ...(setting.process === undefined ? {} : { process: setting.process }),
  });
  scheduleFaults(simulation, faults, [nodeGroup()]);
  simulation.runUntil(END + 60 * S);
  const within = <T extends { readonly at: MonoUs }>(rows: readonly T[], from: MonoUs, until: MonoUs): T[] =>
    rows.filter((row) => row.at >= from && row.at < until);
  return {
    simulation,
    sent: (node, from, until) => within(sent, from, until).filter((row) => row.node === node).length,
    ended: (kind, from, until) => within(ends, from, until).filter((row) => row.kind === kind).length,
    attemptsMean: (from, until) => {
      const rows = within(ends, from, until);
      return rows.reduce((sum, { attempts }) => sum + attempts, 0) / rows.length;
    },
  };
}

const served = (seen: Seen, from: number, until: number): number => seen.ended('served', from * S, until * S);

/**
 * In the last hundred seconds everything is as it was: all served at the first attempt, no node left out. How soon a node is
 * trusted again is up to the policy.
 */
function expectBack(seen: Seen): void {
  expect(served(seen, 300, 400)).toBeGreaterThanOrEqual(237);
  expect(seen.attemptsMean(300 * S, 400 * S)).toBe(1);
  for (let i = 1; i <= 4; i++)
    expect(seen.sent(`node-${i}`, 300 * S, 400 * S), `node-${i}`).toBeGreaterThan(0);
  expect(seen.simulation.openJobs).toBe(0);
  for (const node of seen.simulation.nodes.values()) expect(node.machine.inflight).toBe(0);
}

const CALM = run([]);

describe('scheduleFaults', () => {
  test('without faults leaves everything as it is', () => {
    expectBack(CALM);
    expect(CALM.attemptsMean(0, END)).toBe(1);
  });

  test.each(['dead', 'restart'] as const)(
    '%s: what ran is done elsewhere, nothing is sent, then all is back',
    (kind) => {
      const seen = run([{ at: 100 * S, kind, nodes: FIRST, forUs: 60 * S }]);
      expect(seen.attemptsMean(100 * S, 160 * S)).toBeGreaterThan(1);
      expect(seen.ended('served', 0, Number.POSITIVE_INFINITY)).toBe(
        CALM.ended('served', 0, Number.POSITIVE_INFINITY),
      );
      expect(seen.sent('node-1', 110 * S, 160 * S)).toBeLessThan(10);
      expectBack(seen);
    },
  );

  test('slow: the node does less, and as much as before when it is over', () => {
    const seen = run([{ at: 100 * S, kind: 'slow', nodes: FIRST, times: 5, forUs: 60 * S }]);
    expect(seen.sent('node-1', 100 * S, 160 * S)).toBeLessThan(0.5 * CALM.sent('node-1', 100 * S, 160 * S));
    expectBack(seen);
  });

  test('slow: overlapping ones multiply, and end each by itself', () => {
    const work = { kind: 'work', workUs: S } as const;
    const seen = run([
      { at: 100 * S, kind: 'slow', nodes: FIRST, times: 2, forUs: 60 * S },
      { at: 120 * S, kind: 'cpu-spike', nodes: FIRST, load: 3, forUs: 20 * S },
    ]);
    const other = run([]);
    const node = other.simulation.nodes.get('node-1') as SimNode;
    node.addSpeed(1 / 2, END);
    node.addSpeed(1 / 3, END);
    expect(node.machine.serviceUs(work)).toBe(6 * S);
    node.removeSpeed(1 / 2, END);
    expect(node.machine.serviceUs(work)).toBe(3 * S);
    expect(seen.simulation.nodes.get('node-1')?.machine.serviceUs(work)).toBe(S);
    expect(seen.simulation.nodes.get('node-1')?.faults.hostLoad).toBe(1);
    expectBack(seen);
  });

  test('gray: part of the attempts fails and is repaired elsewhere', () => {
    const seen = run([{ at: 100 * S, kind: 'gray', nodes: FIRST, failShare: 0.5, forUs: 60 * S }]);
    expect(seen.attemptsMean(100 * S, 160 * S)).toBeGreaterThan(1);
    expect(seen.attemptsMean(100 * S, 160 * S)).toBeLessThan(1.5);
    expectBack(seen);
  });

  test('refuse: is left alone although it looks healthy', () => {
    const seen = run([{ at: 100 * S, kind: 'refuse', nodes: FIRST, forUs: 60 * S }]);
    expect(seen.attemptsMean(100 * S, 160 * S)).toBeGreaterThan(1);
    expect(served(seen, 100, 170)).toBeGreaterThanOrEqual(served(CALM, 100, 170) - 2);
    expectBack(seen);
  });

  test('hang: what it took is not answered until it goes on', () => {
    const seen = run([{ at: 100 * S, kind: 'hang', nodes: { group: '', count: 0 }, forUs: 5 * S }]);
    expect(seen.ended('served', 100.1 * S, 105 * S)).toBe(0);
    expect(served(seen, 105, 125)).toBeGreaterThan(served(CALM, 105, 125));
    expectBack(seen);
  });

  test('partition: its answers of that time come when it is over', () => {
    const fault: FaultSpec = { at: 100 * S, kind: 'partition', nodes: { group: '', count: 0 }, forUs: 5 * S };
    // A policy that does not cut silent attempts.
    const seen = run([fault], { policy: 'round-robin' });
    expect(seen.ended('served', 100.1 * S, 105 * S)).toBe(0);
    // Up to one per node, at the moment at which the way is open again.
    expect(seen.ended('served', 105 * S, 105.003 * S)).toBeGreaterThan(0);
    expectBack(seen);
  });

  test('partition: a node that could not be told to stop is told afterwards', () => {
    const seen = run([{ at: 100 * S, kind: 'partition', nodes: FIRST, forUs: 120 * S }]);
    expect(seen.simulation.nodes.get('node-1')?.unstopped.size).toBe(0);
    expect(seen.simulation.nodes.get('node-1')?.unsent).toEqual([]);
    expectBack(seen);
  });

  test('stale-readings: the last one is repeated', () => {
    let count = 0;
    const told: number[] = [];
    const machine = (inner: Machine): Machine =>
      new Proxy(inner, {
        get: (target, key) => {
          if (key === 'reading') return () => ({ running: 0, waiting: 0, cacheUse: count++ / 1e6 });
          const value = Reflect.get(target, key, target) as unknown;
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    const fault: FaultSpec = { at: 100 * S, kind: 'stale-readings', nodes: FIRST, forUs: 60 * S };
    const { simulation } = run([fault], { machine });
    const node = simulation.nodes.get('node-1') as SimNode;
    node.faults.staleReadings = true;
    told.push(node.reading(END)?.cacheUse ?? -1, node.reading(END)?.cacheUse ?? -1);
    node.faults.staleReadings = false;
    told.push(node.reading(END)?.cacheUse ?? -1);
    expect(told[1]).toBe(told[0]);
    expect(told[2]).toBeGreaterThan(told[0] as number);
    // 92 beats of each of four nodes, of which twelve of one repeat what was said before.
    expect(count).toBeGreaterThan(340);
    expect(count).toBeLessThan(4 * 92 - 9);
  });

  test.each([-60, -3, 3, 60])('clock-skew by %i s has no influence on what is served', (skewS) => {
    const fault: FaultSpec = {
      at: 100 * S,
      kind: 'clock-skew',
      nodes: FIRST,
      skewUs: skewS * S,
      forUs: 60 * S,
    };
    const seen = run([fault]);
    expect(seen.ended('served', 0, Number.POSITIVE_INFINITY)).toBe(
      CALM.ended('served', 0, Number.POSITIVE_INFINITY),
    );
    expect(seen.attemptsMean(0, END)).toBe(1);
    // A clock that goes back delays a heartbeat: beyond what silence is allowed, and only then, the node rests meanwhile.
    const sentWhile = seen.sent('node-1', 100 * S, 160 * S);
    if (skewS > -60) expect(sentWhile).toBeGreaterThan(20);
    expectBack(seen);
  });

  test('mass-reconnect: all lose what they ran, join at one instant, and go on', () => {
    const seen = run([{ at: 100 * S, kind: 'mass-reconnect', nodes: { group: '', count: 0 } }]);
    expect(seen.attemptsMean(99 * S, 103 * S)).toBeGreaterThan(1);
    expect(served(seen, 100, 120)).toBeGreaterThan(40);
    expectBack(seen);
  });

  test('scheduler-crash: loses what was open; a durable registry is back with it, others wait for a beat', () => {
    const fault: FaultSpec = { at: 100 * S, kind: 'scheduler-crash', downUs: 10 * S };
    const durable = run([fault], { beatUs: 30 * S });
    expect(durable.ended('lost', 100 * S, 111 * S)).toBeGreaterThan(20);
    expect(durable.ended('served', 111 * S, 116 * S)).toBeGreaterThan(8);
    const forgetful = run([fault], {
      beatUs: 30 * S,
      process: { tasksMax: 0, restartUs: 0, registryIsDurable: false },
    });
    expect(forgetful.ended('served', 100 * S, 140 * S)).toBeLessThan(
      durable.ended('served', 100 * S, 140 * S),
    );
    expect(durable.simulation.resumeUs).toBeLessThan(S);
    expect(forgetful.simulation.resumeUs).toBeGreaterThan(durable.simulation.resumeUs);
    expectBack(durable);
    expectBack(forgetful);
  });

  test('cpu-spike: everything on the hosts takes as many times as long, for every policy', () => {
    const spike: FaultSpec = {
      at: 100 * S,
      kind: 'cpu-spike',
      nodes: { group: '', count: 0 },
      load: 3,
      forUs: 60 * S,
    };
    for (const policy of ['spillway', 'round-robin'] as const) {
      const seen = run([spike], { policy });
      expect(served(seen, 105, 160), policy).toBeLessThan(0.7 * served(CALM, 105, 160));
      expect(served(seen, 300, 400), policy).toBeGreaterThanOrEqual(237);
    }
  });

  test('a process that does not notice hang-ups works for nobody, and holds what it would have let go', () => {
    const streams = [
      streamSpec({
        arrivals: { kind: 'poisson', rate: { kind: 'load', load: 2 } },
        classes: [{ name: 'normal', share: 1, deadlineUs: 10 * S }],
        users: { ...streamSpec().users, triesMax: 2, hangsUp: true },
      }),
    ];
    const process = { tasksMax: 0, restartUs: 0, registryIsDurable: true };
    const of = (noticesHangUps: boolean): PolicyReport =>
      runScenario(
        scenarioSpec({ streams }),
        policySpec({ policy: 'fifo', process: { ...process, noticesHangUps } }),
        1,
      ).report;
    const [noticing, blind] = [of(true), of(false)];
    expect(blind.busyRatio).toBeGreaterThan(0.95);
    expect(blind.peakOpen).toBeGreaterThan(5 * noticing.peakOpen);
    expect(blind.all.served + blind.all.gaveUp).toBe(blind.all.offered);
  });

  test('a process that holds more than it can dies of it, and is back after its time', () => {
    const hang: FaultSpec = { at: 100 * S, kind: 'hang', nodes: { group: '', count: 0 }, forUs: 60 * S };
    const process = { tasksMax: 30, restartUs: 5 * S, registryIsDurable: true };
    const seen = run([hang], { process, policy: 'round-robin' });
    expect(seen.simulation.crashes).toBeGreaterThanOrEqual(2);
    expect(seen.ended('lost', 100 * S, 170 * S)).toBeGreaterThan(60);
    expect(run([hang], { policy: 'round-robin' }).simulation.crashes).toBe(0);
    expect(served(seen, 300, 400)).toBeGreaterThanOrEqual(237);
    expect(seen.simulation.openJobs).toBe(0);
  });
});

describe('nodesOf', () => {
  test('takes the first of a group, of the fleet, or all, and refuses an unknown group', () => {
    const node = (index: number): SimNode =>
      new SimNode(
        {
          spec: nodeSpec(`n${index}`),
          machine: new SlotMachine({ slots: 1, serviceUs: () => S }),
          rttUs: 0,
          beatUs: 0,
        },
        index,
      );
    const nodes = new Map(Array.from({ length: 5 }, (_, i) => [`n${i}`, node(i)]));
    const groups = [nodeGroup({ name: 'a', count: 2 }), nodeGroup({ name: 'b', count: 3 })];
    const ids = (group: string, count: number): string[] =>
      nodesOf({ group, count }, { nodes }, groups).map(({ spec }) => spec.id);
    expect(ids('b', 2)).toEqual(['n2', 'n3']);
    expect(ids('b', 0)).toEqual(['n2', 'n3', 'n4']);
    expect(ids('', 3)).toEqual(['n0', 'n1', 'n2']);
    expect(ids('', 0)).toHaveLength(5);
    expect(() => ids('c', 0)).toThrow(RangeError);
  });
});
