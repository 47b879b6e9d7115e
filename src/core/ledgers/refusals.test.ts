import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { FuzzPlayer, sequenceArbitrary, SMALL_BOUNDS } from '../../../test/support/fuzz.ts';
import { LoadedFleet } from '../../../test/support/loaded-fleet.ts';
import { NoisyFleet } from '../../../test/support/noisy-fleet.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { GroupConfig } from '../config/types.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeSpec } from '../scheduler/events.ts';
import type { Lane } from '../queue/lane.ts';
import { EXAMPLES_MAX, isJudged, PENDING_MAX, type Refusal, RefusalLedger } from './refusals.ts';
import type { ClassRefusals } from './view.ts';

const CONFIG = defaultSchedulerConfig({ seed: 5, gates: { ladder: 'off' } });

/** Idle nodes of a gateway that protects itself from an emergency that is none: every class is refused. */
function refusing(nodes = 1, change: Partial<NodeSpec> = {}): CheckedScheduler {
  const world = new CheckedScheduler(CONFIG);
  for (let i = 0; i < nodes; i++) world.apply({ kind: 'node-registered', node: nodeSpec(`n${i}`, change) });
  world.now = S;
  world.apply({ kind: 'survival', shedClasses: 3 });
  return world;
}

let lastId = 0;

function nextTask(world: CheckedScheduler, change: Partial<TaskSpec> = {}): TaskSpec {
  lastId += 1;
  return taskSpec(lastId, { deadlineAt: world.now + 30 * S, ...change });
}

/** Refused at once, due so many seconds from now. */
function refuse(world: CheckedScheduler, seconds: number, change: Partial<TaskSpec> = {}): void {
  const outcome = world.submit(nextTask(world, { deadlineAt: world.now + seconds * S, ...change }));
  expect(outcome?.kind).toBe('rejected');
}

function booked(world: CheckedScheduler, className = 'normal'): ClassRefusals {
  const { classes } = world.scheduler.ledgers(world.now).refusals;
  return classes.find((row) => row.className === className) as ClassRefusals;
}

function expectBalanced(rows: readonly ClassRefusals[]): void {
  for (const { refused, couldHaveServed, couldNot, pending, unjudged } of rows) {
    expect(couldHaveServed + couldNot + pending + unjudged).toBe(refused);
    for (const count of [couldHaveServed, couldNot, pending, unjudged])
      expect(count).toBeGreaterThanOrEqual(0);
  }
}

describe('a refusal', () => {
  test('could have been served by a node that idled for long enough in its time', () => {
    const world = refusing();
    refuse(world, 3);
    world.advance(4 * S);
    expect(booked(world)).toMatchObject({ refused: 1, couldHaveServed: 1, pending: 0 });
    const [example] = world.scheduler.ledgers(world.now).refusals.examples;
    expect(example).toMatchObject({ nodeId: 'n0', reason: 'self-protection', startAt: S, doneAt: 2 * S });
  });

  test('could not where the only node was taken before it would have been done', () => {
    const world = refusing();
    refuse(world, 3, { workUs: 2 * S });
    world.apply({ kind: 'survival', shedClasses: 0 });
    world.advance(1.5 * S);
    world.submit(nextTask(world));
    world.advance(10 * S);
    expect(booked(world)).toMatchObject({ refused: 1, couldHaveServed: 0, couldNot: 1 });
  });

  test('could not where its deadline is shorter than the work', () => {
    const world = refusing();
    refuse(world, 3, { workUs: 4 * S });
    world.advance(10 * S);
    expect(booked(world)).toMatchObject({ couldHaveServed: 0, couldNot: 1 });
  });

  test('could not where no node offers its model, and none of a policy counts at all', () => {
    const world = refusing();
    refuse(world, 3, { model: 'nobody' });
    world.apply({ kind: 'survival', shedClasses: 0 });
    refuse(world, 3, { model: 'nobody' });
    expect(booked(world)).toMatchObject({ refused: 1, couldNot: 1 });
  });

  test('uses a stretch of free time once: ten seconds are ten tasks of a second', () => {
    const world = refusing();
    for (let i = 0; i < 100; i++) refuse(world, 10);
    world.advance(30 * S);
    expect(booked(world)).toMatchObject({ refused: 100, couldHaveServed: 10, couldNot: 90 });
  });

  test('uses what is left beside real work alone', () => {
    const world = refusing();
    world.apply({ kind: 'survival', shedClasses: 1 });
    world.submit(nextTask(world, { className: 'critical', workUs: 6 * S }));
    for (let i = 0; i < 100; i++) refuse(world, 10, { className: 'low' });
    world.advance(6 * S);
    world.endAll();
    world.advance(30 * S);
    expect(booked(world, 'low').couldHaveServed).toBe(4);
  });

  test('could not by a place that is kept for somebody else', () => {
    const group: GroupConfig = {
      name: 'kept',
      nodes: { ids: ['n0'], labels: {} },
      reservedFor: { models: [], tenants: [] },
      shares: [{ holder: 'tenant', name: 'acme', min: 1, max: 1 }],
    };
    const world = new CheckedScheduler(defaultSchedulerConfig({ seed: 5, groups: [group] }));
    world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
    world.now = S;
    world.apply({ kind: 'survival', shedClasses: 3 });
    refuse(world, 5);
    refuse(world, 5, { tenant: 'acme' });
    world.advance(10 * S);
    expect(booked(world)).toMatchObject({ refused: 2, couldHaveServed: 1, couldNot: 1 });
  });

  test('of a stream needs its node beyond the first byte', () => {
    const world = refusing();
    refuse(world, 2, { workUs: 6 * S, firstByteWorkUs: S, stream: true });
    world.apply({ kind: 'survival', shedClasses: 0 });
    world.advance(4 * S);
    world.submit(nextTask(world));
    world.advance(40 * S);
    expect(booked(world).couldHaveServed).toBe(0);
  });

  test('finds the places of a node with several, all at once', () => {
    const world = new CheckedScheduler(CONFIG);
    world.apply({ kind: 'node-registered', node: nodeSpec('n0', { slots: 4 }) });
    world.now = S;
    // A new node is given more with its successes.
    for (let i = 0; i < 8; i++) {
      world.submit(nextTask(world));
      world.advance(S);
      world.endAll();
    }
    world.apply({ kind: 'survival', shedClasses: 3 });
    for (let i = 0; i < 200; i++) refuse(world, 10);
    world.advance(30 * S);
    const { couldHaveServed } = booked(world);
    expect(couldHaveServed).toBeGreaterThan(20);
    expect(couldHaveServed).toBeLessThanOrEqual(44);
  });

  test('is left unjudged when the fleet is laid anew before its time is over', () => {
    const world = refusing();
    refuse(world, 30);
    world.apply({
      kind: 'node-registered',
      node: nodeSpec('other', { models: [{ model: 'm', contextTokensMax: 9 }] }),
    });
    world.advance(40 * S);
    expect(booked(world)).toMatchObject({ refused: 1, unjudged: 1, pending: 0 });
  });
});

describe('the ledger', () => {
  test('holds its bound, and its records then stand for many', () => {
    const world = refusing(4);
    const count = 3 * PENDING_MAX;
    for (let i = 0; i < count; i++) refuse(world, 50);
    const { classes } = world.scheduler.ledgers(world.now).refusals;
    expectBalanced(classes);
    expect(booked(world)).toMatchObject({ refused: count, pending: count });
    world.advance(60 * S);
    const { couldHaveServed, couldNot, pending } = booked(world);
    expect(couldHaveServed, 'four nodes, fifty seconds').toBe(200);
    expect(couldNot).toBeGreaterThan(count / 2);
    expect(pending).toBe(0);
    expect(world.scheduler.ledgers(world.now).refusals.examples).toHaveLength(EXAMPLES_MAX);
    expectBalanced(world.scheduler.ledgers(world.now).refusals.classes);
  });

  test('never keeps more records than its bound', () => {
    const ledger = new RefusalLedger();
    const lane = Object.create(null) as Lane;
    const refusal: Refusal = {
      taskId: 1,
      className: 'normal',
      classIndex: 1,
      tenant: 't',
      model: 'm',
      reason: 'shed',
      at: 0,
      deadlineAt: 60 * S,
      workUs: S,
      deadlineWorkUs: S,
    };
    for (let i = 0; i < 40 * PENDING_MAX; i++)
      if (ledger.count(refusal.className, refusal.reason, lane)) ledger.record(refusal, lane);
    expect(ledger.size).toBe(PENDING_MAX);
    expect(ledger.counts()).toMatchObject([{ refused: 40 * PENDING_MAX, pending: 40 * PENDING_MAX }]);
  });

  test('tells apart a bounded number of classes, and the rest together', () => {
    const ledger = new RefusalLedger();
    for (let i = 0; i < 1_000; i++) ledger.expect(`class-${i}`);
    expect(ledger.counts()).toHaveLength(65);
  });

  test('counts nearly all where a gate is absurdly tight and the fleet idles', () => {
    const fleet = new LoadedFleet({
      seed: 3,
      admission: { flowWaitDeadlineShare: 0.0001, flowWaitMsMax: 0.001 },
    });
    for (let i = 0; i < 4; i++) fleet.node(`n${i}`, {}, 0.1);
    // Bursts of twelve on four nodes, then thirty seconds of nothing.
    for (let burst = 0; burst < 20; burst++) {
      for (let i = 0; i < 12; i++) fleet.submit({ tenant: 't' });
      fleet.run.runUntil(fleet.run.now + 40 * S);
    }
    fleet.run.apply({ kind: 'tick' });
    const { classes } = fleet.run.scheduler.ledgers(fleet.run.now).refusals;
    const row = classes.find(({ className }) => className === 'normal') as ClassRefusals;
    expect(row.refused).toBeGreaterThan(80);
    expect(row.couldHaveServed / row.refused).toBeGreaterThan(0.95);
  });

  test('counts no more than is served once the gate lets it in, and nearly all of that', () => {
    const served = (flowWaitMsMax: number, flowWaitDeadlineShare: number): [number, number] => {
      const admission = { flowWaitMsMax, flowWaitDeadlineShare };
      const fleet = new NoisyFleet({ nodes: 20, slots: 1, seed: 1, burstLoad: 3, overrides: { admission } });
      fleet.runFor(600 * S);
      const { classes } = fleet.run.scheduler.ledgers(fleet.run.now).refusals;
      const counted = classes.reduce((sum, row) => sum + row.couldHaveServed, 0);
      return [fleet.run.scheduler.accounts().served, counted];
    };
    // Bursts of ten seconds at three times the capacity, deadlines of two minutes: the usual gate is too tight for these.
    const [servedByUsual, counted] = served(5_000, 0.25);
    const [servedByWide] = served(60_000, 0.6);
    expect(counted).toBeGreaterThan(1_000);
    expect(counted / (servedByWide - servedByUsual)).toBeGreaterThan(0.85);
    expect(counted / (servedByWide - servedByUsual)).toBeLessThan(1.05);
  });

  test('counts nothing while every node is busy throughout', () => {
    const fleet = new LoadedFleet({ seed: 3 });
    for (let i = 0; i < 4; i++) fleet.node(`n${i}`, {}, 0.2);
    fleet.load(120, 12);
    const { classes } = fleet.run.scheduler.ledgers(fleet.run.now).refusals;
    const row = classes.find(({ className }) => className === 'normal') as ClassRefusals;
    expect(row.refused, JSON.stringify(fleet.reasons('normal'))).toBeGreaterThan(500);
    expect(row.couldHaveServed).toBe(0);
  });

  test('balances whatever happens, counts each refusal once, and is the same for equal events', () => {
    fc.assert(
      fc.property(sequenceArbitrary({ absurd: true, shutdown: true, maxLength: 120 }), (steps) => {
        const config = defaultSchedulerConfig({ bounds: SMALL_BOUNDS, seed: 7 });
        const world = new CheckedScheduler(config);
        new FuzzPlayer(world).play(steps, () =>
          expectBalanced(world.scheduler.ledgers(world.now).refusals.classes),
        );
        const { classes } = world.scheduler.ledgers(world.now).refusals;
        const judged = [...world.outcomes.values()].filter(isJudged).length;
        expect(classes.reduce((sum, row) => sum + row.refused, 0)).toBe(judged);
        const again = new CheckedScheduler(config);
        new FuzzPlayer(again).play(steps);
        expect(again.scheduler.ledgers(again.now)).toEqual(world.scheduler.ledgers(world.now));
      }),
      { numRuns: drawsOf(40) },
    );
  });
});
