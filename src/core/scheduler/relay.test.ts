/** Pools that come and go, classes that change, the order in which strangers arrive, and the end. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { DEFAULT_CLASSES, defaultSchedulerConfig } from '../config/defaults.ts';
import { NO_NEEDS } from '../request/needs.ts';
import { handleNode } from './node-events.ts';
import { relayWhenDue } from './relay.ts';
import { createState } from './state.ts';
import { submit } from './submit.ts';

function worldOf(nodes: readonly string[]): CheckedScheduler {
  const world = new CheckedScheduler(defaultSchedulerConfig());
  for (const id of nodes) world.apply({ kind: 'node-registered', node: nodeSpec(id) });
  return world;
}

describe('queued tasks', () => {
  test('find a node that joins later with another offer of their model', () => {
    const world = worldOf(['a']);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id, { tenant: `t${id}` }));
    world.apply({
      kind: 'node-registered',
      node: nodeSpec('b', { models: [{ model: 'm', contextTokensMax: 8_000 }] }),
    });
    world.advance(300 * MS);
    expect(world.runningOn('b')).toHaveLength(1);
  });

  test('wait in one relay for many nodes that join at once, a quarter of a second at most', () => {
    const world = worldOf(['a']);
    for (let id = 1; id <= 11; id++) world.submit(taskSpec(id, { tenant: `t${id}` }));
    for (let i = 0; i < 10; i++) {
      const models = [{ model: 'm', contextTokensMax: 8_000 + i }];
      world.apply({ kind: 'node-registered', node: nodeSpec(`b${i}`, { models }) });
    }
    world.advance(250 * MS);
    expect(world.permits.size).toBe(11);
  });

  test('leave when the last node that could serve them is removed, and only those', () => {
    const world = worldOf(['a']);
    world.apply({
      kind: 'node-registered',
      node: nodeSpec('long', { models: [{ model: 'm', contextTokensMax: 1e6 }] }),
    });
    world.apply({
      kind: 'node-registered',
      node: nodeSpec('short', { models: [{ model: 'm', contextTokensMax: 10 }] }),
    });
    world.apply({ kind: 'node-removed', nodeId: 'a' });
    world.advance(S);
    const needs = { ...NO_NEEDS, contextTokens: 1_000 };
    for (const id of [1, 2]) world.submit(taskSpec(id, { needs }));
    for (const id of [3, 4]) world.submit(taskSpec(id, { tenant: 'other' }));
    world.apply({ kind: 'node-removed', nodeId: 'long' });
    world.advance(S);
    expect(world.outcomes.get(2)).toMatchObject({
      kind: 'evicted',
      reason: 'no-node',
      hint: { retryable: true },
    });
    expect(world.outcomes.has(4)).toBe(false);
  });

  test('survive that a node states its offer anew', () => {
    const world = worldOf(['a']);
    for (const id of [1, 2]) world.submit(taskSpec(id));
    world.apply({
      kind: 'node-registered',
      node: nodeSpec('a', { models: [{ model: 'm', contextTokensMax: 8_000 }] }),
    });
    world.end(1);
    world.advance(S);
    expect(world.runningOn('a')).toEqual([2]);
  });

  test('leave nothing behind in their flows, however often lanes are laid anew', () => {
    const state = createState(defaultSchedulerConfig());
    handleNode(state, { kind: 'node-registered', node: nodeSpec('a') });
    for (const id of [1, 2]) submit(state, taskSpec(id));
    for (let i = 1; i <= 50; i++) {
      state.now += S;
      const models = [{ model: 'm', contextTokensMax: 8_000 + i }];
      handleNode(state, { kind: 'node-registered', node: nodeSpec('a', { models }) });
      relayWhenDue(state);
    }
    const flow = state.tasks.get(2)?.flow;
    expect(flow?.queued.tasks).toBe(1);
    expect(flow?.laneFlows).toHaveLength(1);
    expect(state.fleet.lanes.size).toBe(1);
  });
});

describe('a new configuration', () => {
  test('moves the tasks of a class that is gone to the default class, running and waiting ones', () => {
    const world = worldOf(['a']);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id, { className: 'low' }));
    const classes = DEFAULT_CLASSES.filter((each) => each.name !== 'low');
    world.apply({ kind: 'config', config: defaultSchedulerConfig({ classes }) });
    expect(world.scheduler.queue(world.now).byClass).toMatchObject({ normal: { depth: 2 } });
    world.end(1);
    world.end(2);
    world.end(3);
    expect(world.accounts).toMatchObject({ served: 3, queued: 0, running: 0 });
    world.submit(taskSpec(4, { className: 'low' }));
    expect(world.permits.has(4)).toBe(true);
  });

  test('keeps queue, permits, marks and rates when only numbers change', () => {
    const world = worldOf(['a', 'b']);
    for (let i = 0; i < 3; i++) {
      world.submit(taskSpec(10 + i));
      world.end(10 + i, { kind: 'failed', failure: 'server-error', retryable: false });
    }
    for (const id of [1, 2, 3]) world.submit(taskSpec(id));
    const before = [world.scheduler.nodes(world.now), world.accounts];
    world.apply({ kind: 'config', config: defaultSchedulerConfig({ admission: { flowWaitMsMax: 1 } }) });
    expect([world.scheduler.nodes(world.now), world.accounts]).toEqual(before);
  });

  test('with other weights of tenants keeps the shares right while they have a backlog', () => {
    const admission = { flowWaitMsMax: 1_000_000, flowWaitDeadlineShare: 1 };
    const weighted = (weight: number) =>
      defaultSchedulerConfig({ admission, tenantWeights: [{ id: 'a', weight }] });
    const world = new CheckedScheduler(weighted(10));
    world.apply({ kind: 'node-registered', node: nodeSpec('n') });
    for (let id = 1; id <= 9; id++) {
      world.submit(taskSpec(id, { tenant: id % 2 === 0 ? 'a' : 'b', deadlineAt: 3_600 * S }));
    }
    const etaMs = (): number | null | undefined => world.scheduler.explain(9, world.now)?.etaMs;
    expect(etaMs(), 'its flow gets one part of eleven').toBe(34_000);
    world.apply({ kind: 'config', config: weighted(1) });
    expect(etaMs(), 'half').toBe(7_000);
    for (const taskId of [2, 4, 6, 8]) world.apply({ kind: 'cancel', taskId });
    expect(etaMs(), 'all').toBe(4_000);
  });

  test('with other weights of classes keeps the shares right while they have a backlog', () => {
    const admission = { flowWaitMsMax: 1_000_000, flowWaitDeadlineShare: 1 };
    const weighted = (weight: number) => {
      const { classes } = defaultSchedulerConfig({});
      const reweighed = classes.map((one) => ({
        ...one,
        shareMin: 0,
        weight: one.name === 'normal' ? weight : 1,
      }));
      return defaultSchedulerConfig({ admission, classes: reweighed });
    };
    const world = new CheckedScheduler(weighted(1));
    world.apply({ kind: 'node-registered', node: nodeSpec('n') });
    for (let id = 1; id <= 9; id++) {
      const className = id % 2 === 0 ? 'normal' : 'low';
      world.submit(taskSpec(id, { className, deadlineAt: 3_600 * S }));
    }
    const etaMs = (): number | null | undefined => world.scheduler.explain(9, world.now)?.etaMs;
    const halfMs = etaMs() as number;
    world.apply({ kind: 'config', config: weighted(3) });
    expect(etaMs(), 'a quarter of the node, for what waits before it').toBe(2 * halfMs - 1_000);
    for (const taskId of [2, 4, 6, 8]) world.apply({ kind: 'cancel', taskId });
    expect(etaMs(), 'all of it').toBe((halfMs + 1_000) / 2);
  });
});

describe('decisions', () => {
  test('do not depend on nodes of another model that came before, between or after', () => {
    const step = fc.record({
      tenant: fc.constantFrom('a', 'b', 'c'),
      workMs: fc.integer({ min: 1, max: 900 }),
      waitMs: fc.nat(400),
    });
    const script = fc.array(step, { minLength: 5, maxLength: 40 });
    fc.assert(
      fc.property(script, fc.integer({ min: 0, max: 7 }), (steps, strangers) => {
        const alone = logOf(steps, 0);
        expect(logOf(steps, strangers)).toEqual(alone);
      }),
      { numRuns: drawsOf(30) },
    );
  });
});

interface OrderStep {
  readonly tenant: string;
  readonly workMs: number;
  readonly waitMs: number;
}

/** What becomes of the tasks when a stranger registers before each node whose bit is set. */
function logOf(steps: readonly OrderStep[], strangers: number): readonly string[] {
  const world = worldOf([]);
  ['T4', 'A100', 'V100'].forEach((hardware, i) => {
    const stranger = nodeSpec(`x${i}`, { models: [{ model: 'other' }] });
    if (strangers & (1 << i)) world.apply({ kind: 'node-registered', node: stranger });
    world.apply({ kind: 'node-registered', node: nodeSpec(`n${i}`, { hardware }) });
  });
  steps.forEach((step, i) => {
    world.submit(taskSpec(i + 1, { tenant: step.tenant, workUs: step.workMs * MS }));
    world.advance(step.waitMs * MS);
    const [oldest] = world.permits.keys();
    if (oldest !== undefined) world.end(oldest);
  });
  return world.log.filter((line) => !/ node x\d/.test(line));
}

describe('shutdown', () => {
  test('refuses what waits at once, lets running tasks end and takes nothing new, not even a retry', () => {
    const world = worldOf(['a', 'b']);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id));
    world.apply({ kind: 'shutdown' });
    expect(world.outcomes.get(3)).toMatchObject({
      kind: 'evicted',
      reason: 'shutting-down',
      hint: { retryable: true },
    });
    expect(world.submit(taskSpec(4))).toMatchObject({
      kind: 'rejected',
      reason: 'shutting-down',
      hint: { retryable: true },
    });
    world.end(1, { kind: 'failed', failure: 'connect', retryable: true });
    world.end(2);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed' });
    expect(world.accounts).toMatchObject({ served: 1, queued: 0, running: 0 });
  });
});

describe('survival', () => {
  test('refuses as many of the lowest classes as it is told, the rest is served', () => {
    const world = worldOf(['a']);
    world.apply({ kind: 'survival', shedClasses: 2 });
    const reasons = ['critical', 'normal', 'low'].map(
      (className, i) => world.submit(taskSpec(i + 1, { className }))?.kind,
    );
    expect(reasons).toEqual([undefined, 'rejected', 'rejected']);
    world.apply({ kind: 'survival', shedClasses: 3 });
    expect(world.submit(taskSpec(9, { className: 'critical' }))).toMatchObject({
      reason: 'self-protection',
      hint: { retryable: true },
    });
  });
});
