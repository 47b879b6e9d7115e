import { describe, expect, test } from 'vitest';
import { policyWorld } from '../../../../test/support/checked-policy.ts';
import { nodeSpec, S, taskSpec } from '../../../../test/support/specs.ts';
import type { AttemptResult } from '../../../core/request/outcome.ts';

const BROKEN: AttemptResult = { kind: 'failed', failure: 'server-error', retryable: true };
const TWO = [{ rate: 2 }, { rate: 1 }];

describe.each(['ect', 'fifo'])('a baseline (%s)', (policy) => {
  test('tries a failed request on another node, and fails it when there is none left', () => {
    const world = policyWorld(policy, TWO);
    world.submit(taskSpec(1));
    world.end(1, BROKEN);
    expect(world.tried.get(1)).toEqual(['n0', 'n1']);
    world.end(1, BROKEN);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
  });

  test('makes no more attempts than its option says', () => {
    const world = policyWorld(policy, TWO, { attempts: 1 });
    world.submit(taskSpec(1));
    world.end(1, BROKEN);
    expect(world.outcomes.get(1)?.kind).toBe('failed');
  });

  test('closes a node after failures in a row, and opens it after the cooldown', () => {
    const world = policyWorld(policy, TWO, { failuresMax: 2, cooldownMs: 5_000 });
    for (const id of [1, 2]) {
      world.submit(taskSpec(id));
      world.end(id, BROKEN);
      world.advance(S);
      world.end(id);
    }
    world.submit(taskSpec(3));
    expect(world.permits.get(3)).toBe('n1');
    world.advance(S);
    world.end(3);
    world.advance(5 * S);
    world.submit(taskSpec(4));
    expect(world.permits.get(4)).toBe('n0');
  });

  test('uses nodes in cooldown when no other is left', () => {
    const world = policyWorld(policy, [{ rate: 1 }], { failuresMax: 1 });
    world.submit(taskSpec(1));
    world.end(1, BROKEN);
    world.submit(taskSpec(2));
    expect(world.permits.get(2)).toBe('n0');
  });

  test('sends nothing to a node that does not answer, and what waits for it goes elsewhere', () => {
    const world = policyWorld(policy, [{ rate: 50 }, { rate: 1 }]);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id));
    world.apply({ kind: 'node-probed', nodeId: 'n0', alive: false });
    world.end(1, { kind: 'failed', failure: 'reset', retryable: true });
    for (let round = 0; round < 3; round++) for (const id of world.permits.keys()) world.end(id);
    expect([...world.outcomes.values()].map(({ kind }) => kind)).toEqual(['served', 'served', 'served']);
    expect(world.runningOn('n0')).toEqual([]);
  });

  test('gives back what waits when the last node leaves', () => {
    const world = policyWorld(policy, [{ rate: 1 }]);
    for (const id of [1, 2]) world.submit(taskSpec(id));
    world.apply({ kind: 'node-removed', nodeId: 'n0' });
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'no-node' });
    world.end(1);
    expect(world.outcomes.get(1)?.kind).toBe('served');
  });

  test('takes a request out of its queue when the client leaves, and aborts what runs', () => {
    const world = policyWorld(policy, [{ rate: 1 }]);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id));
    world.apply({ kind: 'cancel', taskId: 2 });
    world.apply({ kind: 'cancel', taskId: 1 });
    world.end(1, { kind: 'aborted' });
    expect(world.log.some((line) => line.includes('abort 1 n0'))).toBe(true);
    expect(world.permits.has(3)).toBe(true);
    expect(world.policy.accounts()).toMatchObject({ cancelled: 2, running: 1, queued: 0 });
  });

  test('refuses everything once it shuts down, and lets what runs go on', () => {
    const world = policyWorld(policy, [{ rate: 1 }]);
    for (const id of [1, 2]) world.submit(taskSpec(id));
    world.apply({ kind: 'shutdown' });
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'shutting-down' });
    expect(world.submit(taskSpec(3))).toMatchObject({ kind: 'rejected', reason: 'shutting-down' });
    world.end(1);
    expect(world.outcomes.get(1)?.kind).toBe('served');
  });

  test('sends a request only where it fits, past others that wait for another node', () => {
    const world = policyWorld(policy, [{ rate: 50 }]);
    const small = nodeSpec('small', { models: [{ model: 'm', contextTokensMax: 100 }] });
    world.apply({ kind: 'node-registered', node: small });
    const needs = { ...taskSpec(0).needs, contextTokens: 500 };
    for (const id of [1, 2, 3]) world.submit(taskSpec(id, { needs }));
    world.submit(taskSpec(4, { workUs: 60 * S }));
    world.submit(taskSpec(5, { workUs: 60 * S }));
    expect(world.runningOn('n0')).toEqual([1]);
    expect(world.runningOn('small').length).toBeLessThanOrEqual(1);
    world.endAll();
    expect(world.policy.accounts()).toMatchObject({ served: 5, queued: 0 });
    for (const id of [1, 2, 3]) expect(world.tried.get(id)).toEqual(['n0']);
  });

  test('refuses a model that no node offers', () => {
    const world = policyWorld(policy, TWO);
    expect(world.submit(taskSpec(1, { model: 'none' }))).toMatchObject({
      kind: 'rejected',
      reason: 'no-node',
    });
  });

  test('tells of nodes after a crash what their registration said, and forgets what it learned', () => {
    const world = policyWorld(policy, TWO);
    world.apply({ kind: 'node-cordoned', nodeId: 'n1', cordoned: true });
    expect(world.policy.nodeMemory?.('n1', 0)).toMatchObject({
      cordoned: true,
      rates: [{ model: 'm', rate: 1 }],
    });
  });
});
