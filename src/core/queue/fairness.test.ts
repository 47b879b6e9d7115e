/** Invariant 8: shares of served work between classes and tenants, and who never waits behind whom. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BackloggedRun, type FlowLoad, jainIndex, quantile } from '../../../test/support/backlog.ts';
import { MS, S } from '../../../test/support/specs.ts';
import { DEFAULT_CLASSES } from '../config/defaults.ts';
import { effectiveWeights } from './flow.ts';

const MINUTE = 60 * S;
const SHARE_MIN = 0.95;
/** The longest task: what is served comes in whole tasks, so a minute may end just before one. */
const TASK_US_MAX = 250 * MS;
const SHARES = new Map(
  effectiveWeights(DEFAULT_CLASSES).map((share, i) => [DEFAULT_CLASSES[i]?.name as string, share]),
);

function flow(className: string, change: Partial<FlowLoad> = {}): FlowLoad {
  return {
    className,
    tenant: `of ${className}`,
    models: ['m'],
    workUs: [25 * MS, TASK_US_MAX],
    depth: 24,
    ...change,
  };
}

const CLASSES: readonly FlowLoad[] = ['critical', 'normal', 'low'].map((name) => flow(name));

/** Between 4 and 8 nodes, the fastest up to eight times as fast as the slowest. */
const fleet = fc.array(fc.double({ min: 0.25, max: 2, noNaN: true }), { minLength: 4, maxLength: 8 });

describe('every backlogged class', () => {
  test('gets 0.95 of its share of the served work over any minute, on random fleets of unequal nodes', () => {
    fc.assert(
      fc.property(fleet, fc.nat(1_000), (speeds, seed) => {
        const load = new BackloggedRun(CLASSES, seed);
        speeds.forEach((speed, i) => load.addNode(`n${i}`, speed, { sigma: 0.2, slots: 1 + (i % 2) }));
        load.runUntil(2 * MINUTE);
        for (let from = MINUTE / 2; from + MINUTE <= 2 * MINUTE; from += 15 * S) {
          expectShares(load, [from, from + MINUTE]);
        }
      }),
      { numRuns: 4 },
    );
  });

  test('gets it over two models together, though some nodes serve only one', () => {
    const load = new BackloggedRun(
      CLASSES.map((each) => ({ ...each, models: ['m', 'other'] })),
      3,
      { placement: { swapMs: 0 } },
    );
    const both = [{ model: 'm' }, { model: 'other' }];
    const offers = [[{ model: 'm' }], [{ model: 'other' }], both, both, both];
    offers.forEach((models, i) => load.addNode(`n${i}`, 0.5 + i / 2, { models, sigma: 0.2 }));
    load.runUntil(3 * MINUTE);
    for (const from of [MINUTE, 2 * MINUTE]) expectShares(load, [from, from + MINUTE]);
  });

  test('shares what a class leaves that asks for little, in proportion to the weights', () => {
    const load = new BackloggedRun([flow('normal'), flow('low')], 1);
    for (let i = 0; i < 6; i++) load.addNode(`n${i}`, 1, { sigma: 0.2 });
    load.runUntil(2 * MINUTE);
    const served = load.servedUs(MINUTE, 2 * MINUTE, (task) => task.className);
    expect((served.get('normal') as number) / (served.get('low') as number)).toBeCloseTo(2, 0);
  });

  test('saves no credit while idle: after a minute away a class gets its share, not what it missed', () => {
    const low: FlowLoad = flow('low', { depth: 0 });
    const load = new BackloggedRun([flow('normal'), low], 9);
    for (let i = 0; i < 6; i++) load.addNode(`n${i}`, 1, { sigma: 0.2 });
    load.runUntil(MINUTE);
    for (let i = 0; i < 400; i++) load.submit(low);
    load.runUntil(1.5 * MINUTE);
    const served = load.servedUs(MINUTE, 1.5 * MINUTE, (task) => task.className);
    const total = (served.get('normal') as number) + (served.get('low') as number);
    expect((served.get('low') as number) / total).toBeLessThan(0.36);
    expect((served.get('low') as number) / total).toBeGreaterThan(0.31);
  });
});

function expectShares(load: BackloggedRun, [from, until]: readonly [number, number]): void {
  const served = load.servedUs(from, until, (task) => task.className);
  const total = [...served.values()].reduce((sum, us) => sum + us, 0);
  for (const [name, share] of SHARES) {
    const due = SHARE_MIN * share * total - TASK_US_MAX;
    expect(served.get(name) ?? 0, `${name} from ${from / S} s`).toBeGreaterThanOrEqual(due);
  }
}

describe('a light critical class', () => {
  test('that comes after a pause never waits behind a backlog: the next node that is free is its own', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.nat(1_000), (nodes, seed) => {
        const critical = flow('critical', { depth: 0, workUs: [100 * MS, 300 * MS] });
        const load = new BackloggedRun([flow('normal'), flow('low'), critical], seed);
        for (let i = 0; i < nodes; i++) load.addNode(`n${i}`, 1);
        load.runUntil(10 * S);
        for (let i = 0; i < 15; i++) {
          const before = load.assignments.length;
          const task = load.submit(critical);
          load.runUntil(load.run.now + 3 * S);
          const next = load.assignments[before];
          expect(next?.task.id).toBe(task.id);
        }
      }),
      { numRuns: 4 },
    );
  });

  test('waits no longer than the longest task on a fleet of unequal nodes', () => {
    const critical = flow('critical', { depth: 0 });
    const load = new BackloggedRun([flow('normal'), flow('low'), critical], 11);
    [0.5, 0.7, 1, 2, 4].forEach((speed, i) => load.addNode(`n${i}`, speed, { sigma: 0.2 }));
    for (let at = 20 * S; at < 80 * S; at += 500 * MS) {
      load.runUntil(at);
      load.submit(critical);
    }
    load.runUntil(90 * S);
    const waits = load.waitsUs((task) => task.className === 'critical');
    expect(waits).toHaveLength(120);
    expect(quantile(waits, 0.99)).toBeLessThanOrEqual(1_000 * MS);
  });
});

describe('the wait of an admitted task', () => {
  test('is at most its own and the work ahead of it at the share of its class, plus one task of each class', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.nat(1_000), (nodes, seed) => {
        const load = new BackloggedRun(CLASSES, seed);
        for (let i = 0; i < nodes; i++) load.addNode(`n${i}`, 1);
        load.runUntil(10 * S);
        const aheadUs = new Map<number, number>();
        const probes = CLASSES.map((each) => {
          const queued = load.run.scheduler.queue(load.run.now).byClass[each.className]?.workMs ?? 0;
          const task = load.submit(each);
          aheadUs.set(task.id, queued * 1_000);
          return task;
        });
        load.runUntil(3 * MINUTE);
        for (const task of probes) {
          const start = load.assignments.find((each) => each.task.id === task.id)?.at as number;
          const share = SHARES.get(task.className) as number;
          const boundUs =
            ((aheadUs.get(task.id) as number) + TASK_US_MAX) / (nodes * share) + CLASSES.length * TASK_US_MAX;
          expect(start - (load.submittedAt.get(task.id) as number), task.className).toBeLessThanOrEqual(
            boundUs,
          );
        }
      }),
      { numRuns: 4 },
    );
  });
});

describe('tenants of a class', () => {
  test('share evenly, with a Jain index of 0.99, though the sizes of their tasks differ twentyfold', () => {
    const flows = Array.from({ length: 20 }, (_, i) =>
      flow('normal', { tenant: `t${i}`, workUs: [20 * MS, 20 * MS * (i + 1)], depth: 30 }),
    );
    const load = new BackloggedRun(flows, 2);
    for (let i = 0; i < 8; i++) load.addNode(`n${i}`, 0.5 + i / 4, { sigma: 0.2 });
    load.runUntil(3 * MINUTE);
    const served = load.servedUs(MINUTE, 3 * MINUTE, (task) => task.tenant);
    expect(served.size).toBe(20);
    expect(jainIndex([...served.values()])).toBeGreaterThanOrEqual(0.99);
  });

  test('share by their weights', () => {
    const flows = ['gold', 'plain'].map((tenant) => flow('normal', { tenant }));
    const load = new BackloggedRun(flows, 4, { tenantWeights: [{ id: 'gold', weight: 3 }] });
    for (let i = 0; i < 4; i++) load.addNode(`n${i}`, 1, { sigma: 0.2 });
    load.runUntil(2 * MINUTE);
    const served = load.servedUs(MINUTE, 2 * MINUTE, (task) => task.tenant);
    expect((served.get('gold') as number) / (served.get('plain') as number)).toBeCloseTo(3, 0);
  });

  test('do not feel an elephant: a mouse’s response stays within 1.5 of what it has alone', () => {
    const mouse = flow('normal', { tenant: 'mouse', depth: 0, workUs: [400 * MS, 600 * MS] });
    const response = (elephants: readonly FlowLoad[]): number => {
      const load = new BackloggedRun([...elephants, mouse], 6);
      for (let i = 0; i < 10; i++) load.addNode(`n${i}`, 1);
      for (let at = 10 * S; at < 110 * S; at += 500 * MS) {
        load.runUntil(at);
        load.submit(mouse);
      }
      load.runUntil(120 * S);
      const spans = [...load.doneAt].flatMap(([id, at]) => {
        const assignment = load.assignments.find(
          (each) => each.task.id === id && each.task.tenant === 'mouse',
        );
        return assignment === undefined ? [] : [at - (load.submittedAt.get(id) as number)];
      });
      return quantile(
        spans.sort((a, b) => a - b),
        0.99,
      );
    };
    expect(
      response([flow('normal', { tenant: 'elephant', depth: 400, workUs: [100 * MS, 900 * MS] })]),
    ).toBeLessThanOrEqual(1.5 * response([]));
  });

  test('are charged for what they used, not for what they claimed', () => {
    const flows = [
      flow('normal', { tenant: 'honest', depth: 500 }),
      flow('normal', { tenant: 'understates', workUs: [5 * MS, 50 * MS], depth: 500 }),
    ];
    const load = new BackloggedRun(flows, 8, {
      models: [{ id: 'm', aliases: [], profile: { kind: 'embedding', fixedMs: 0, msPerToken: 1 } }],
    });
    for (let i = 0; i < 4; i++) load.addNode(`n${i}`, 1);
    const used = new Map<string, number>();
    for (const node of load.run.nodes.values()) {
      node.fault = (task) => {
        const usedMs = Math.round(task.workUs / (task.tenant === 'honest' ? 1_000 : 100));
        used.set(task.tenant, (used.get(task.tenant) ?? 0) + usedMs);
        return { kind: 'ok', usage: { promptTokens: usedMs } };
      };
    }
    load.runUntil(2 * S);
    const ratio = (used.get('understates') as number) / (used.get('honest') as number);
    expect(ratio).toBeLessThan(1.05);
    expect(ratio).toBeGreaterThan(0.95);
  });
});
