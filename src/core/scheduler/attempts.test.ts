/** Attempts: permits, retries, poison, deadlines while running. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { resultArbitrary } from '../../../test/support/fuzz.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { AttemptResult, FailureKind } from '../request/outcome.ts';

function worldOf(nodes: readonly string[], overrides: SchedulerOverrides = {}): CheckedScheduler {
  const world = new CheckedScheduler(defaultSchedulerConfig(overrides));
  for (const id of nodes) world.apply({ kind: 'node-registered', node: nodeSpec(id) });
  return world;
}

function failure(kind: FailureKind, retryable = true): AttemptResult {
  return { kind: 'failed', failure: kind, retryable };
}

/** Gives the budget something to pay retries from. */
function earn(world: CheckedScheduler, count: number): void {
  for (let i = 0; i < count; i++) {
    world.submit(taskSpec(900_000 + i, { deadlineAt: world.now + 600 * S }));
    world.advance(S);
    world.endAll();
  }
}

describe('permits', () => {
  test('are exactly zero at idle and never below after ten thousand mixed cancels, errors and timeouts', () => {
    const world = worldOf(['a', 'b', 'c']);
    const results = fc.sample(resultArbitrary(false), { numRuns: 500, seed: 42 });
    let id = 1;
    for (let round = 0; round < 2_500; round++) {
      for (let i = 0; i < 4; i++)
        world.submit(taskSpec(id++, { deadlineAt: world.now + 3 * S, tenant: `t${i}`, workUs: 100 * MS }));
      world.apply({ kind: 'cancel', taskId: id - 2 });
      const [first] = world.permits.keys();
      if (first !== undefined) {
        world.end(first, results[round % results.length]);
        world.end(first, results[round % results.length]);
      }
      if (round % 50 === 0) world.advance(4 * S);
    }
    world.advance(10 * S);
    world.endAll();
    world.advance(100 * S);
    expect(world.specs.size).toBe(10_000);
    // The breaker of the model is half-open after so many failures: one task finds out that it is well again.
    world.submit(taskSpec(id++, { deadlineAt: world.now + 60 * S, tenant: 'probe' }));
    world.advance(S);
    world.endAll();
    expect(world.accounts).toMatchObject({ queued: 0, running: 0 });
    for (const node of world.scheduler.nodes(world.now)) expect(node.inflight).toBe(0);
    for (let i = 0; i < 30; i++)
      world.submit(taskSpec(id++, { deadlineAt: world.now + 600 * S, tenant: `fresh${i}` }));
    world.advance(30 * S);
    expect(world.permits.size, 'full capacity is back').toBe(3);
  });

  test('a second end of the same attempt changes nothing', () => {
    const world = worldOf(['a']);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id));
    world.end(1);
    const before = world.log.length;
    world.end(1);
    world.end(1, failure('reset'));
    expect(world.log.slice(before)).toEqual([]);
    expect(world.runningOn('a')).toEqual([2]);
  });

  test('a client that leaves while its task runs ends it at once, and the node keeps its permit until it has ended', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1));
    world.submit(taskSpec(2));
    world.apply({ kind: 'cancel', taskId: 1 });
    expect(world.outcomes.get(1)).toEqual({ kind: 'cancelled' });
    expect(world.permits.get(1)?.isAborted).toBe(true);
    expect(world.permits.has(2), 'the slot lingers').toBe(false);
    world.end(1, { kind: 'aborted' });
    expect(world.permits.has(2)).toBe(true);
  });

  test('a client that leaves twice is counted once', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1));
    world.submit(taskSpec(2));
    for (const taskId of [1, 1, 2, 2]) world.apply({ kind: 'cancel', taskId });
    expect(world.accounts).toMatchObject({ cancelled: 2, running: 0, queued: 0 });
  });

  test('of a node that was removed end without touching the node that came in its place', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1));
    world.apply({ kind: 'node-draining', nodeId: 'a', draining: true });
    world.apply({ kind: 'node-removed', nodeId: 'a' });
    world.apply({ kind: 'node-registered', node: nodeSpec('a') });
    const before = world.log.length;
    world.end(1);
    expect(world.log.slice(before)).toEqual(['0 outcome 1 {"kind":"served"}']);
    expect(world.scheduler.node('a', world.now)).toMatchObject({ inflight: 0, state: 'unverified' });
    world.advance(S);
    expect(world.log.slice(before + 1)).toEqual([]);
  });
});

describe('retries', () => {
  test('go to another node, never to one that was tried', () => {
    const world = worldOf(['a', 'b']);
    world.submit(taskSpec(1));
    world.end(1, failure('connect'));
    world.end(1, failure('connect'));
    expect(new Set(world.tried.get(1))).toEqual(new Set(['a', 'b']));
    expect(world.outcomes.get(1)).toMatchObject({
      kind: 'failed',
      reason: 'node-failed',
      hint: { retryable: true },
    });
  });

  test('wait for another node that is busy rather than use the one that failed and is idle', () => {
    const world = worldOf(['a', 'b']);
    world.submit(taskSpec(1));
    world.submit(taskSpec(2));
    const [firstNode] = world.tried.get(1) as string[];
    world.end(1, failure('connect'));
    world.advance(5 * S);
    expect(world.permits.has(1)).toBe(false);
    world.end(2);
    expect(world.permits.get(1)?.nodeId).not.toBe(firstNode);
  });

  test.each<[string, AttemptResult, string]>([
    ['after the node declined the request', { kind: 'declined' }, 'declined'],
    ['when the answer had begun', failure('reset', false), 'node-failed'],
    ['when the answer had begun and the node was silent', failure('timeout', false), 'node-timeout'],
  ])('never happen %s', (_, result, reason) => {
    const world = worldOf(['a', 'b']);
    world.submit(taskSpec(1));
    world.end(1, result);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason });
    expect(world.tried.get(1)).toHaveLength(1);
  });

  test('never happen after the first content byte, whatever the report says', () => {
    const world = worldOf(['a', 'b']);
    world.submit(taskSpec(1, { stream: true }));
    world.apply({ kind: 'attempt-first-byte', taskId: 1 });
    world.end(1, failure('reset', true));
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
  });

  test('stop at the budget: a failing fleet is not asked to do everything twice', () => {
    const world = worldOf(['a', 'b', 'c', 'd'], {
      retry: { budgetRatio: 0.1, budgetReserve: 3, attemptsMax: 2 },
      health: { ejectMs: 10, ejectMsMax: 10 },
    });
    let retried = 0;
    for (let id = 1; id <= 200; id++) {
      world.submit(taskSpec(id, { deadlineAt: world.now + 60 * S, tenant: `t${id}` }));
      world.endAll(() => failure('server-error'));
      if ((world.tried.get(id)?.length ?? 0) > 1) retried += 1;
      world.advance(20 * MS);
    }
    expect(retried).toBe(3);
  });

  test('stop at the number of attempts', () => {
    const world = worldOf(['a', 'b', 'c', 'd', 'e'], { retry: { attemptsMax: 3, budgetReserve: 1_000 } });
    world.submit(taskSpec(1));
    world.endAll(() => failure('connect'));
    expect(world.tried.get(1)).toHaveLength(3);
  });

  test('do not happen when no other node could serve', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1));
    world.end(1, failure('connect'));
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
  });

  test('do not happen either when the failure has just ejected the only node', () => {
    const world = worldOf(['a']);
    for (let id = 1; id <= 3; id++) {
      world.submit(taskSpec(id));
      world.end(id, failure('server-error'));
      expect(world.outcomes.get(id)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
    }
    expect(world.scheduler.node('a', world.now)?.state).toBe('ejected');
  });

  test('do not charge the flow for work that was not done', () => {
    const world = worldOf(['a', 'b']);
    world.submit(taskSpec(1));
    world.end(1, failure('connect', false));
    world.submit(taskSpec(2));
    world.end(2);
    const { classes } = world.scheduler.dump(world.now) as {
      classes: { name: string; flows: { served: number }[] }[];
    };
    const normal = classes.find((each) => each.name === 'normal');
    expect(normal?.flows[0]?.served, 'one second of work, not two').toBe(S);
  });
});

describe('poison', () => {
  const broken: readonly FailureKind[] = ['reset', 'protocol', 'timeout'];

  test.each(broken)(
    'a body that broke two healthy nodes by %s is not tried on a third, and is remembered',
    (kind) => {
      const world = worldOf(['a', 'b', 'c']);
      earn(world, 20);
      world.submit(taskSpec(1, { deadlineAt: world.now + 60 * S, fingerprint: 'body' }));
      world.end(1, failure(kind));
      world.end(1, failure(kind));
      expect(world.outcomes.get(1)).toEqual({
        kind: 'failed',
        reason: 'poison',
        hint: { retryable: false, afterUs: 0 },
      });
      expect(world.tried.get(1)).toHaveLength(2);
      const again = taskSpec(2, { deadlineAt: world.now + 60 * S, fingerprint: 'body' });
      expect(world.submit(again)).toMatchObject({
        kind: 'rejected',
        reason: 'poison',
        hint: { retryable: false },
      });
    },
  );

  test('the mark expires by itself', () => {
    const world = worldOf(['a', 'b', 'c']);
    world.submit(taskSpec(1, { fingerprint: 'body' }));
    world.end(1, failure('reset'));
    world.end(1, failure('reset'));
    world.advance(600 * S);
    expect(
      world.submit(taskSpec(2, { deadlineAt: world.now + 60 * S, fingerprint: 'body' })),
    ).toBeUndefined();
  });

  test('a body that broke one node in each of two submissions is as poisonous', () => {
    const world = worldOf(['a', 'b', 'c'], { retry: { attemptsMax: 1 } });
    for (const id of [1, 2]) world.submit(taskSpec(id, { fingerprint: 'body' }));
    world.end(1, failure('reset'));
    expect(world.outcomes.get(1)).toMatchObject({ reason: 'node-failed' });
    world.end(2, failure('reset'));
    expect(world.outcomes.get(2)).toMatchObject({ reason: 'poison' });
    expect(world.submit(taskSpec(3, { fingerprint: 'body' }))).toMatchObject({ reason: 'poison' });
  });

  test('a body that was served on its second node was not the cause', () => {
    const world = worldOf(['a', 'b', 'c']);
    world.submit(taskSpec(1, { fingerprint: 'body' }));
    world.end(1, failure('reset'));
    world.end(1);
    expect(world.outcomes.get(1)).toEqual({ kind: 'served' });
    world.apply({ kind: 'node-cordoned', nodeId: world.tried.get(1)?.[0] ?? '', cordoned: true });
    world.submit(taskSpec(2, { fingerprint: 'body' }));
    world.end(2, failure('reset'));
    world.end(2);
    expect(world.outcomes.get(2)).toEqual({ kind: 'served' });
  });

  test('a node on trial is no healthy one: what breaks it is not suspected', () => {
    const world = worldOf(['a', 'b'], { retry: { attemptsMax: 1 } });
    for (const id of [1, 2, 3, 4, 5, 6]) {
      world.submit(taskSpec(id, { fingerprint: '', tenant: `t${id}` }));
      world.end(id, failure('server-error'));
    }
    world.advance(5 * S);
    for (const id of [11, 12]) world.submit(taskSpec(id, { fingerprint: 'body', tenant: `t${id}` }));
    for (const id of [11, 12]) world.end(id, failure('reset'));
    for (const id of [11, 12]) expect(world.outcomes.get(id)).toMatchObject({ reason: 'node-failed' });
  });

  test('another body is not suspected', () => {
    const world = worldOf(['a', 'b', 'c']);
    world.submit(taskSpec(1, { fingerprint: 'body' }));
    world.end(1, failure('reset'));
    world.end(1, failure('reset'));
    expect(world.submit(taskSpec(2, { fingerprint: 'other' }))).toBeUndefined();
  });

  test.each<FailureKind>(['connect', 'refused', 'server-error'])(
    '%s never speaks against the body',
    (kind) => {
      const world = worldOf(['a', 'b', 'c'], { retry: { budgetReserve: 100 } });
      world.submit(taskSpec(1, { fingerprint: 'body' }));
      world.endAll(() => failure(kind));
      expect(world.tried.get(1)).toHaveLength(3);
      expect(world.outcomes.get(1)).toMatchObject({ reason: 'node-failed' });
    },
  );
});

describe('deadlines while running', () => {
  test('abort what nobody waits for any more, and the task fails as timed out', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1, { deadlineAt: 2 * S }));
    world.advance(2 * S + 20 * MS);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-timeout' });
    expect(world.permits.get(1)?.isAborted).toBe(true);
  });

  test('do not touch a stream whose first byte came in time', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1, { deadlineAt: 2 * S, stream: true }));
    world.apply({ kind: 'attempt-first-byte', taskId: 1 });
    world.advance(60 * S);
    expect(world.outcomes.has(1)).toBe(false);
    world.end(1);
    expect(world.outcomes.get(1)).toEqual({ kind: 'served' });
  });

  test('still bound the completion of what does not stream', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1, { deadlineAt: 2 * S }));
    world.apply({ kind: 'attempt-first-byte', taskId: 1 });
    world.advance(3 * S);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-timeout' });
  });

  test('let what waits leave the queue at its deadline, and no node is called for it', () => {
    const world = worldOf(['a']);
    world.submit(taskSpec(1, { stream: true }));
    world.apply({ kind: 'attempt-first-byte', taskId: 1 });
    world.submit(taskSpec(2, { deadlineAt: 5 * S }));
    world.advance(5 * S + 20 * MS);
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
    expect(world.accounts.queued).toBe(0);
    world.end(1);
    expect(world.tried.has(2)).toBe(false);
  });
});

test('a failed attempt leaves the rate of its node as it was, however quickly it failed', () => {
  const world = new CheckedScheduler(defaultSchedulerConfig());
  world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
  const rate = (): number => world.scheduler.node('n0', world.now)?.rates[0]?.rate ?? 0;
  world.submit(taskSpec(1));
  world.advance(S);
  world.end(1);
  const before = rate();
  world.submit(taskSpec(2));
  world.advance(1);
  world.end(2, { kind: 'failed', failure: 'server-error', retryable: true });
  expect(rate()).toBe(before);
});
