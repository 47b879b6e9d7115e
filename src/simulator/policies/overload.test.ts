import { describe, expect, test } from 'vitest';
import { type CheckedPolicy, policyWorld } from '../../../test/support/checked-policy.ts';
import { S, taskSpec } from '../../../test/support/specs.ts';
import { Codel } from './frame/codel.ts';

/** Ends what runs on the one node until nothing waits; in which order tasks ran. */
function served(world: CheckedPolicy): readonly number[] {
  const order: number[] = [];
  for (let [id] = world.permits.keys(); id !== undefined; [id] = world.permits.keys()) {
    order.push(id);
    world.end(id);
  }
  return order;
}

const ONE = [{ rate: 1 }];

describe('fifo-timeout', () => {
  test('drops what is past its deadline when its turn comes, and serves the rest in order', () => {
    const world = policyWorld('fifo-timeout', ONE);
    world.submit(taskSpec(1));
    world.submit(taskSpec(2, { deadlineAt: 5 * S }));
    world.submit(taskSpec(3));
    world.advance(6 * S);
    expect(served(world)).toEqual([1, 3]);
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
  });

  test('refuses when as many wait as may', () => {
    const world = policyWorld('fifo-timeout', ONE, { queueMax: 1 });
    const outcomes = [1, 2, 3].map((id) => world.submit(taskSpec(id)));
    expect(outcomes[2]).toMatchObject({ kind: 'rejected', reason: 'queue-full' });
    expect(outcomes.slice(0, 2)).toEqual([undefined, undefined]);
  });
});

describe('Codel', () => {
  test('drops nobody while anybody in the interval waited less than the target', () => {
    const codel = new Codel({ targetUs: 5 * S, intervalUs: 30 * S });
    const dropped = Array.from({ length: 200 }, (_, index) =>
      codel.note(index % 20 === 0 ? S : 50 * S, index * S),
    );
    expect(dropped).not.toContain(true);
  });

  test('drops who waited twice the target after an interval in which all waited longer than it', () => {
    const codel = new Codel({ targetUs: 5 * S, intervalUs: 30 * S });
    for (let at = 1; at <= 35; at++) codel.note(6 * S, at * S);
    expect(codel.isOverloaded).toBe(true);
    expect(codel.note(11 * S, 36 * S)).toBe(true);
    expect(codel.note(9 * S, 37 * S)).toBe(false);
    for (let at = 38; at <= 80; at++) codel.note(S, at * S);
    expect(codel.isOverloaded).toBe(false);
  });
});

describe('adaptive-lifo', () => {
  test('takes the oldest first, and the newest once the queue has not been empty for the interval', () => {
    const world = policyWorld('adaptive-lifo', ONE, { intervalMs: 10_000 });
    for (const id of [1, 2, 3, 4]) world.submit(taskSpec(id));
    world.end(1);
    expect([...world.permits.keys()]).toEqual([2]);
    world.advance(11 * S);
    expect(served(world)).toEqual([2, 4, 3]);
  });
});

describe('edf', () => {
  test('takes the earliest deadline first', () => {
    const world = policyWorld('edf', ONE);
    for (const [index, deadline] of [50, 40, 30, 20].entries())
      world.submit(taskSpec(index + 1, { deadlineAt: deadline * S }));
    expect(served(world)).toEqual([1, 4, 3, 2]);
  });
});

describe('edf-feasibility', () => {
  test('drops what no node could end in time, and leaves to a fast node what a slow one could not', () => {
    const world = policyWorld('edf-feasibility', [{ rate: 4 }, { rate: 1 }]);
    world.submit(taskSpec(1, { workUs: 4 * S }));
    world.submit(taskSpec(2, { workUs: 8 * S, deadlineAt: 5 * S }));
    expect(world.permits.has(2)).toBe(false);
    world.advance(S);
    world.end(1);
    expect(world.permits.get(2)).toBe('n0');
    world.submit(taskSpec(3, { workUs: 40 * S, deadlineAt: 5 * S }));
    expect(world.outcomes.get(3)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
  });

  test('measures a stream by its first content byte', () => {
    const world = policyWorld('edf-feasibility', ONE);
    world.submit(taskSpec(1, { workUs: 40 * S, firstByteWorkUs: S, deadlineAt: 5 * S, stream: true }));
    expect(world.permits.has(1)).toBe(true);
  });
});

describe('strict-priority', () => {
  test('serves classes in their order, whenever they came', () => {
    const world = policyWorld('strict-priority', ONE);
    for (const [index, className] of ['low', 'low', 'normal', 'critical'].entries())
      world.submit(taskSpec(index + 1, { className }));
    expect(served(world)).toEqual([1, 4, 3, 2]);
  });

  test('orders a class by deadline when asked to', () => {
    const world = policyWorld('strict-priority', ONE, { within: 'deadline' });
    for (const [index, deadline] of [50, 40, 30].entries())
      world.submit(taskSpec(index + 1, { deadlineAt: deadline * S }));
    expect(served(world)).toEqual([1, 3, 2]);
  });
});
