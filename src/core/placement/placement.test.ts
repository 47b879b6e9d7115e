/** Placement through the whole scheduler: herds, black holes, gray nodes, heads of line. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { BackloggedRun, type FlowLoad } from '../../../test/support/backlog.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import { NO_NEEDS } from '../request/needs.ts';

/** The least time in which nodes of these speeds do equal tasks of this size: each takes whole tasks. */
function optimumUs(tasks: number, workUs: number, speeds: readonly number[]): number {
  const ends = speeds.flatMap((speed) => Array.from({ length: tasks }, (_, i) => ((i + 1) * workUs) / speed));
  return ends.sort((a, b) => a - b)[tasks - 1] as number;
}

describe('a herd', () => {
  test.each([0, 1, 2])(
    'of 200 simultaneous arrivals over nodes of speed 1 : 2 : 4 ends within 15 percent of the optimum, seed %i',
    (seed) => {
      const warm: FlowLoad = { className: 'normal', tenant: 'warm', models: ['m'], workUs: [S, S], depth: 0 };
      const load = new BackloggedRun([warm], seed, { admission: { flowWaitMsMax: 5_000 } });
      const speeds = [1, 2, 4];
      speeds.forEach((speed, i) => load.addNode(`n${i}`, speed));
      for (let i = 0; i < 60; i++) {
        load.submit(warm);
        load.runUntil(load.run.now + 600 * MS);
      }
      load.runUntil(load.run.now + 10 * S);
      const from = load.run.now;
      const ids = Array.from({ length: 200 }, (_, i) => load.submit({ ...warm, tenant: `user ${i}` }).id);
      load.runUntil(from + 120 * S);
      const end = Math.max(...ids.map((id) => load.doneAt.get(id) as number));
      expect(load.refused).toEqual([]);
      expect(end - from).toBeLessThanOrEqual(1.15 * optimumUs(200, S, speeds));
    },
  );
});

interface Fleet {
  readonly load: BackloggedRun;
  readonly flow: FlowLoad;
  readonly sentTo: (nodeId: string) => number;
}

/** Ten nodes at half of their capacity; `bad` fails as it is told, from the given instant on. */
function fleetWith(seed: number, badFails: (draw: number) => boolean): Fleet {
  const flow: FlowLoad = {
    className: 'normal',
    tenant: 't',
    models: ['m'],
    workUs: [200 * MS, 800 * MS],
    depth: 0,
  };
  const load = new BackloggedRun([flow], seed, { retry: { budgetReserve: 1_000 } });
  for (let i = 0; i < 10; i++) load.addNode(i === 0 ? 'bad' : `n${i}`, 1, { sigma: 0.2 });
  for (let i = 0; i < 400; i++) {
    load.submit(flow);
    load.runUntil(load.run.now + 100 * MS);
  }
  let draw = seed;
  const bad = load.run.nodes.get('bad');
  if (bad === undefined) throw new Error('No bad node');
  bad.fault = () => {
    draw = (draw * 16_807 + 12_345) % 2_147_483_647;
    return badFails(draw / 2_147_483_647)
      ? { kind: 'failed', failure: 'server-error', retryable: true }
      : undefined;
  };
  const before = load.assignments.length;
  return {
    load,
    flow,
    sentTo: (nodeId) => load.assignments.slice(before).filter((each) => each.nodeId === nodeId).length,
  };
}

describe('a black hole', () => {
  test('that fails at once and looks idle is out of rotation within ten requests, and no user notices', () => {
    for (let seed = 1; seed <= 5; seed++) {
      const { load, flow, sentTo } = fleetWith(seed, () => true);
      const isOut = (): boolean => load.run.scheduler.node('bad', load.run.now)?.state === 'ejected';
      for (let i = 0; i < 400 && !isOut(); i++) {
        load.submit(flow);
        load.runUntil(load.run.now + 50 * MS);
      }
      expect(sentTo('bad')).toBeLessThanOrEqual(10);
      expect(isOut()).toBe(true);
      load.runUntil(load.run.now + 10 * S);
      expect(load.refused).toEqual([]);
    }
  });

  test('gets no better rate by its errors', () => {
    const { load, flow } = fleetWith(3, () => true);
    const rateOf = (): number => load.run.scheduler.node('bad', load.run.now)?.rates[0]?.rate ?? 0;
    load.runUntil(load.run.now + 5 * S);
    const before = rateOf();
    for (let i = 0; i < 100; i++) {
      load.submit(flow);
      load.runUntil(load.run.now + 200 * MS);
    }
    expect(rateOf()).toBe(before);
  });
});

describe('a gray node', () => {
  test('that fails 40 % is out of rotation within 50 of its requests', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { load, flow, sentTo } = fleetWith(seed * 7_919, (draw) => draw < 0.4);
      for (let i = 0; i < 2_000 && load.run.scheduler.node('bad', load.run.now)?.state !== 'ejected'; i++) {
        load.submit(flow);
        load.runUntil(load.run.now + 50 * MS);
      }
      expect(load.run.scheduler.node('bad', load.run.now)?.state).toBe('ejected');
      expect(sentTo('bad')).toBeLessThanOrEqual(50);
    }
  });
});

describe('the head of a line', () => {
  function world(): CheckedScheduler {
    const checked = new CheckedScheduler(defaultSchedulerConfig());
    checked.apply({
      kind: 'node-registered',
      node: nodeSpec('small', { models: [{ model: 'm', contextTokensMax: 4_000, capabilities: [] }] }),
    });
    checked.apply({
      kind: 'node-registered',
      node: nodeSpec('large', { models: [{ model: 'm', contextTokensMax: 100_000, capabilities: [] }] }),
    });
    return checked;
  }

  test.each([
    ['context-too-long', { model: 'm', needs: { ...NO_NEEDS, contextTokens: 200_000 } }],
    ['capability-missing', { model: 'm', needs: { ...NO_NEEDS, capabilities: ['vision' as const] } }],
    ['unknown-model', { model: 'nobody serves this' }],
    ['too-slow', { deadlineAt: 500 * MS }],
  ])(
    'that is impossible is refused at once with the reason %s, and a retry is not advised',
    (reason, change) => {
      const outcome = world().submit(taskSpec(1, change));
      expect(outcome).toEqual({ kind: 'rejected', reason, hint: { retryable: false, afterUs: 0 } });
    },
  );

  test('that waits for one node does not hold back what another can serve', () => {
    const checked = world();
    const needsLarge = { ...NO_NEEDS, contextTokens: 50_000 };
    checked.submit(taskSpec(1, { needs: needsLarge }));
    checked.submit(taskSpec(2, { needs: needsLarge, className: 'critical' }));
    checked.submit(taskSpec(3, { className: 'low' }));
    expect(checked.runningOn('large')).toEqual([1]);
    expect(checked.runningOn('small')).toEqual([3]);
  });

  test('is not refused as too slow for all where a node that is slow over all models is fast enough at its own', () => {
    const checked = new CheckedScheduler(defaultSchedulerConfig());
    const models = [{ model: 'm' }, { model: 'other' }];
    const memory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0 };
    const register = (id: string, rates: readonly (readonly [model: string, rate: number])[]): void =>
      checked.apply({
        kind: 'node-registered',
        node: nodeSpec(id, { models }),
        memory: { ...memory, rates: rates.map(([model, rate]) => ({ model, rate, observations: 50 })) },
      });
    register('usual', [['', 1]]);
    register('special', [
      ['', 0.5],
      ['other', 3],
    ]);
    checked.submit(taskSpec(1, { model: 'other', workUs: 2 * S, deadlineAt: S }));
    expect(checked.runningOn('special')).toEqual([1]);
  });

  test('starts on the one node in time, which is slow over all models and known by a few tasks to be fast at its own', () => {
    const checked = new CheckedScheduler(defaultSchedulerConfig());
    const memory = { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0 };
    const overall = { model: '', rate: 1, observations: 50 };
    checked.apply({
      kind: 'node-registered',
      node: nodeSpec('special', { models: [{ model: 'm' }, { model: 'other' }] }),
      memory: { ...memory, rates: [overall, { model: 'm', rate: 50, observations: 3 }] },
    });
    checked.apply({
      kind: 'node-registered',
      node: nodeSpec('plain'),
      memory: { ...memory, rates: [{ ...overall, rate: 10 }] },
    });
    checked.advance(S);
    checked.submit(taskSpec(1, { workUs: 10 * S, deadlineAt: 1.5 * S, deadlineWished: true }));
    expect(checked.runningOn('special')).toEqual([1]);
  });

  test('of a configured model without a node is told that a retry can help', () => {
    const checked = new CheckedScheduler(
      defaultSchedulerConfig({ models: [{ id: 'm', aliases: [], profile: { kind: 'generic', meanMs: 1 } }] }),
    );
    expect(checked.submit(taskSpec(1))).toMatchObject({
      kind: 'rejected',
      reason: 'no-node',
      hint: { retryable: true },
    });
  });
});

describe('a node that opens with several places', () => {
  test('takes as many of a long queue, although each would be done sooner on another one', () => {
    const checked = new CheckedScheduler(defaultSchedulerConfig());
    const submit = (id: number): void =>
      void checked.submit(taskSpec(id, { tenant: `t${id}`, deadlineAt: 600 * S }));
    checked.apply({ kind: 'node-registered', node: nodeSpec('slow', { slots: 3, hardware: 'T4' }) });
    for (let id = 1; id <= 3; id++) submit(id);
    while (checked.permits.size > 0) {
      checked.advance(7 * S);
      for (const id of checked.runningOn('slow')) checked.end(id);
    }
    checked.apply({ kind: 'node-cordoned', nodeId: 'slow', cordoned: true });
    checked.apply({ kind: 'node-registered', node: nodeSpec('fast') });
    for (let id = 4; id <= 40; id++) submit(id);
    checked.apply({ kind: 'node-cordoned', nodeId: 'slow', cordoned: false });
    expect(checked.runningOn('slow')).toHaveLength(3);
  });
});

describe('exploration', () => {
  /** A fast node that is idle most of the time beside a slow one that earliest completion time never chooses. */
  function sentToSlow(className: string, sizesUs: readonly number[]): readonly number[] {
    const flow: FlowLoad = { className, tenant: 't', models: ['m'], workUs: [S, S], depth: 0 };
    const load = new BackloggedRun([flow], 1, { placement: { exploreEveryMs: 30_000 } });
    load.addNode('fast', 4);
    load.addNode('slow', 0.5);
    for (let i = 0; i < 300; i++) {
      load.submit(flow, { workUs: sizesUs[i % sizesUs.length] as number });
      load.runUntil(load.run.now + S);
    }
    const known = load.assignments.slice(60);
    return known.filter(({ nodeId }) => nodeId === 'slow').map(({ task }) => task.workUs);
  }

  test('gives an idle slow node a task about every half minute, so that its rate stays known', () => {
    for (const workUs of [100 * MS, 2 * S]) {
      const sent = sentToSlow('normal', [workUs]);
      expect(sent.length).toBeGreaterThanOrEqual(5);
      expect(sent.length).toBeLessThanOrEqual(9);
    }
  });

  test('spends small tasks alone, and as many of them as where all are small', () => {
    const sent = sentToSlow('normal', [100 * MS, 800 * MS, 800 * MS, 800 * MS]);
    expect(new Set(sent)).toEqual(new Set([100 * MS]));
    expect(sent.length).toBeGreaterThanOrEqual(5);
  });

  test('never spends a task of the first class', () => {
    expect(sentToSlow('critical', [100 * MS])).toEqual([]);
  });
});

describe('an engine that states no slots', () => {
  test('takes nothing new while its bound work would take longer than the limit, and does again without any event', () => {
    const world = new CheckedScheduler(defaultSchedulerConfig());
    world.apply({ kind: 'node-registered', node: nodeSpec('n0', { slots: 0, batching: true }) });
    world.submit(taskSpec(1, { workUs: S, deadlineAt: 600 * S }));
    world.advance(S);
    world.end(1);
    world.submit(taskSpec(2, { workUs: 50 * S, deadlineAt: 600 * S }));
    world.submit(taskSpec(3, { workUs: S, deadlineAt: 600 * S }));
    expect(world.runningOn('n0')).toEqual([2]);
    world.advance(25 * S);
    expect(world.runningOn('n0')).toEqual([2, 3]);
  });
});

describe('batching nodes of equal speed', () => {
  test('share a burst though only one of them was ever seen in a batch', () => {
    const flow: FlowLoad = { className: 'normal', tenant: 't', models: ['m'], workUs: [S, S], depth: 0 };
    const load = new BackloggedRun([flow], 5);
    for (const id of ['a', 'b', 'c']) load.addNode(id, 1, { slots: 0, batching: true, sigma: 0.05 });
    const burst = (tasks: number): Map<string, number> => {
      const from = load.assignments.length;
      // They tell their load, so no learned limit stands in for it.
      for (const nodeId of ['a', 'b', 'c'])
        load.run.apply({ kind: 'node-reading', nodeId, reading: { waiting: 0 } });
      for (let i = 0; i < tasks; i++) load.submit(flow);
      const sent = new Map<string, number>();
      for (const { nodeId } of load.assignments.slice(from)) sent.set(nodeId, (sent.get(nodeId) ?? 0) + 1);
      load.runUntil(load.run.now + 60 * S);
      return sent;
    };
    for (let i = 0; i < 20; i++) burst(3);
    for (const nodeId of ['b', 'c']) load.run.apply({ kind: 'node-cordoned', nodeId, cordoned: true });
    for (let i = 0; i < 4; i++) burst(30);
    for (const nodeId of ['b', 'c']) load.run.apply({ kind: 'node-cordoned', nodeId, cordoned: false });
    for (let i = 0; i < 5; i++) burst(30);
    for (const sent of burst(30).values()) expect(sent).toBeLessThanOrEqual(15);
  });
});

describe('a flow of which work is refused', () => {
  test.each([0, 1, 2])('takes the slow nodes before flows that get their share, seed %i', (seed) => {
    const elephant: FlowLoad = {
      className: 'normal',
      tenant: 'elephant',
      models: ['m'],
      workUs: [S / 2, (3 * S) / 2],
      depth: 0,
    };
    const load = new BackloggedRun([elephant], seed, {
      admission: { flowWaitMsMax: 5_000, flowWaitDeadlineShare: 0.25 },
    });
    for (let i = 0; i < 4; i++) {
      load.addNode(`fast${i}`, 1, { sigma: 0.2 });
      load.addNode(`slow${i}`, 0.2, { sigma: 0.2 });
    }
    const from = 30 * S;
    const until = 150 * S;
    for (let round = 0; load.run.now < until; round++) {
      for (let i = 0; i < 5; i++) load.submit(elephant);
      // A third of the fleet, in tasks that a slow node works on for twenty seconds; six at once.
      for (let i = 0; i < 6 && round % 150 === 0; i++)
        load.submit({ ...elephant, tenant: `mouse ${round} ${i}` }, { workUs: 4 * S });
      load.runUntil(load.run.now + 100 * MS);
    }
    const sent = load.assignments.filter(({ at }) => at >= from && at < until);
    const slow = sent.filter(({ nodeId }) => nodeId.startsWith('slow'));
    const isMouse = ({ tenant }: { readonly tenant: string }): boolean => tenant.startsWith('mouse');
    expect(load.refused.some(isMouse)).toBe(false);
    const mice = sent.filter(({ task }) => isMouse(task)).length;
    expect(mice).toBeGreaterThan(40);
    expect(slow.filter(({ task }) => isMouse(task)).length).toBeLessThanOrEqual(mice / 8);
    const slowWorkUs = slow.reduce((sum, { task }) => sum + task.workUs, 0);
    expect(slowWorkUs, 'nor does a slow node idle').toBeGreaterThan(0.9 * 4 * 0.2 * (until - from));
  });
});
