/** The gate per flow, what is too slow, and what a refusal tells. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeMemory } from '../scheduler/events.ts';

const MINUTE = 60 * S;
/** The gate alone, without places kept for those who were refused. */
const NO_PROMISES: SchedulerOverrides = { gates: { 'retry-shed': 'off' } };

function worldOf(nodes: number, overrides: SchedulerOverrides = {}): CheckedScheduler {
  const world = new CheckedScheduler(defaultSchedulerConfig(overrides));
  for (let i = 0; i < nodes; i++) world.apply({ kind: 'node-registered', node: nodeSpec(`n${i}`) });
  return world;
}

/** What a registry knows of a healthy node of this speed. */
function memoryOf(rate: number): NodeMemory {
  return {
    cordoned: false,
    draining: false,
    ejectedForUs: 0,
    ejections: 0,
    rates: [{ model: '', rate, observations: 50 }],
  };
}

/** Submits equal tasks of one flow until the gate closes, and tells how many wait. */
function fill(world: CheckedScheduler, from: number, change: Partial<TaskSpec>): number {
  for (let id = from; id < from + 1_000; id++) {
    const outcome = world.submit(taskSpec(id, { deadlineAt: world.now + 10 * MINUTE, ...change }));
    if (outcome?.kind === 'rejected') return world.accounts.queued;
  }
  throw new Error('The gate never closed');
}

describe('the gate', () => {
  test('closes when the queue of a flow would take longer than five seconds', () => {
    expect(fill(worldOf(1), 1, {})).toBe(6);
    expect(fill(worldOf(4), 1, {})).toBe(21);
  });

  test('refuses nothing in shadow, and counts what it would have refused', () => {
    const world = worldOf(1, { gates: { 'flow-wait': 'shadow' } });
    for (let id = 1; id <= 10; id++) world.submit(taskSpec(id));
    expect(world.accounts).toMatchObject({ rejected: 0, queued: 9 });
    const counts = world.scheduler.gates().find(({ gate }) => gate === 'flow-wait');
    expect(counts).toEqual({ gate: 'flow-wait', mode: 'shadow', refused: 0, wouldRefuse: 3 });
  });

  test('of the first class closes by the deadline alone, at a quarter of it', () => {
    const world = worldOf(1);
    fill(world, 1, { className: 'critical', deadlineAt: 40 * S });
    expect(world.accounts.queued).toBe(11);
  });

  test('closes sooner for tasks with a short deadline', () => {
    const world = worldOf(1);
    fill(world, 1, { deadlineAt: 8 * S });
    expect(world.accounts.queued).toBe(3);
  });

  test('is neutral to size: it looks at the queue, not at the task that comes', () => {
    const world = worldOf(1);
    fill(world, 1, {});
    expect(world.submit(taskSpec(2_000, { workUs: 1, deadlineAt: 10 * MINUTE }))).toMatchObject({
      reason: 'deadline-infeasible',
    });
  });

  test('of one tenant does not close on another, nor on another class of the same', () => {
    const world = worldOf(1);
    fill(world, 1, { tenant: 'elephant' });
    expect(world.submit(taskSpec(2_000, { tenant: 'mouse', deadlineAt: MINUTE }))).toBeUndefined();
    expect(
      world.submit(taskSpec(2_001, { tenant: 'elephant', className: 'critical', deadlineAt: MINUTE })),
    ).toBeUndefined();
  });

  test('counts with the share of the flow: a low flow may queue less beside a critical backlog', () => {
    const world = worldOf(1);
    fill(world, 1, { className: 'critical', tenant: 'c' });
    const before = world.accounts.queued;
    expect(fill(world, 2_000, { className: 'low', tenant: 'l' }) - before).toBe(1);
  });

  test('lets a task pass that an idle node does in time', () => {
    const world = worldOf(0, NO_PROMISES);
    world.apply({ kind: 'node-registered', node: nodeSpec('fast', { hardware: 'A100', slots: 1 }) });
    fill(world, 1, {});
    world.apply({ kind: 'node-registered', node: nodeSpec('slow', { hardware: 'T4' }) });
    world.advance(MS);
    const outcome = world.submit(taskSpec(5_000, { deadlineAt: 10 * MINUTE }));
    expect(outcome).toBeUndefined();
  });

  test('sends nothing to a node that it would not be sent to, while it is off or in shadow', () => {
    for (const mode of ['off', 'shadow'] as const) {
      const world = worldOf(0, { gates: { 'flow-wait': mode, 'retry-shed': 'off' } });
      world.apply({ kind: 'node-registered', node: nodeSpec('fast'), memory: memoryOf(1) });
      world.apply({ kind: 'node-registered', node: nodeSpec('slow'), memory: memoryOf(0.02) });
      for (let id = 1; id <= 12; id++) world.submit(taskSpec(id, { deadlineAt: 10 * MINUTE }));
      expect(world.runningOn('fast')).toEqual([1]);
      expect(world.runningOn('slow')).toEqual([]);
    }
  });

  test('says when a retry would be accepted: once half of what the gate allows is free, at the flow’s share', () => {
    const world = worldOf(1, NO_PROMISES);
    fill(world, 1, {});
    const outcome = world.submit(taskSpec(2_000, { deadlineAt: 10 * MINUTE }));
    expect(outcome).toMatchObject({ hint: { retryable: true, afterUs: 3.5 * S } });
  });

  test('opens again by itself as the queue drains', () => {
    const world = worldOf(1, NO_PROMISES);
    fill(world, 1, {});
    world.advance(S);
    world.end(1);
    expect(world.submit(taskSpec(2_000, { deadlineAt: 10 * MINUTE }))).toBeUndefined();
  });
});

describe('deadlines at arrival', () => {
  test('that no node could meet even when idle are refused as too slow, with no advice to retry', () => {
    const world = worldOf(1);
    expect(world.submit(taskSpec(1, { workUs: 10 * S, deadlineAt: 9 * S }))).toEqual({
      kind: 'rejected',
      reason: 'too-slow',
      hint: { retryable: false, afterUs: 0 },
    });
  });

  test('of a class are raised to four times the best node’s service time, a client’s own are not', () => {
    const world = worldOf(1);
    world.submit(taskSpec(1, { workUs: 10 * S, deadlineAt: 9 * S, deadlineWished: false }));
    world.advance(39 * S);
    expect(world.outcomes.has(1)).toBe(false);
    world.advance(2 * S);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-timeout' });
  });

  test('of a stream are compared with the work up to its first byte', () => {
    const world = worldOf(1);
    const stream = { stream: true, workUs: 60 * S, firstByteWorkUs: S, deadlineAt: 5 * S };
    expect(world.submit(taskSpec(1, stream))).toBeUndefined();
  });

  test('in the past are refused, and nothing is lost', () => {
    const world = worldOf(1);
    world.advance(MINUTE);
    for (const deadlineAt of [-1, 0, 30 * S]) {
      expect(world.submit(taskSpec(world.specs.size + 1, { deadlineAt }))).toMatchObject({
        reason: 'too-slow',
      });
    }
  });

  test('do not let a task be sent that would miss them by the measured error of the estimates', () => {
    const world = worldOf(1);
    world.submit(taskSpec(1, { workUs: 4 * S, deadlineAt: MINUTE }));
    world.submit(taskSpec(2, { workUs: 4 * S, deadlineAt: 8.2 * S, tenant: 'late' }));
    world.advance(4 * S);
    world.end(1);
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
    expect(world.tried.has(2)).toBe(false);
  });
});

describe('a node that was slow for a time', () => {
  /** Fifteen tasks at a thirtieth of the speed that its hardware promises; then it recovers. */
  function recovered(): CheckedScheduler {
    const world = worldOf(1);
    for (let id = 1; id <= 15; id++) {
      world.submit(taskSpec(id, { deadlineAt: world.now + 10 * MINUTE }));
      world.advance(30 * S);
      world.end(id);
    }
    expect(world.submit(taskSpec(20, { deadlineAt: world.now + 10 * S }))).toMatchObject({
      reason: 'too-slow',
    });
    return world;
  }

  test('gets one task to show that it has recovered, though by its last rate every deadline is too short', () => {
    const world = recovered();
    world.advance(30 * S);
    expect(world.submit(taskSpec(21, { deadlineAt: world.now + 10 * S }))).toBeUndefined();
    expect(world.runningOn('n0')).toEqual([21]);
    world.advance(S);
    world.end(21);
    expect(world.submit(taskSpec(22, { deadlineAt: world.now + 10 * S }))).toBeUndefined();
  });

  test('gets no second one for a while when it has not', () => {
    const world = recovered();
    world.advance(30 * S);
    world.submit(taskSpec(21, { deadlineAt: world.now + 10 * S }));
    world.advance(30 * S);
    world.end(21, { kind: 'ok' });
    expect(world.outcomes.get(21)).toMatchObject({ kind: 'failed', reason: 'node-timeout' });
    expect(world.submit(taskSpec(22, { deadlineAt: world.now + 10 * S }))).toMatchObject({
      reason: 'too-slow',
    });
  });

  test('is not tried with what its hardware could not do either', () => {
    const world = recovered();
    world.advance(30 * S);
    expect(world.submit(taskSpec(21, { deadlineAt: world.now + 900 * MS }))).toMatchObject({
      reason: 'too-slow',
    });
  });
});

describe('when every node is closed by a mark', () => {
  test('a refusal tells when the first of them may be back', () => {
    const world = worldOf(2);
    for (const nodeId of ['n0', 'n1']) {
      for (let i = 0; i < 2; i++) world.apply({ kind: 'node-probed', nodeId, alive: false });
      world.advance(5 * S);
    }
    expect(world.submit(taskSpec(1))).toEqual({
      kind: 'rejected',
      reason: 'no-node',
      hint: { retryable: true, afterUs: 20 * S },
    });
  });
});
