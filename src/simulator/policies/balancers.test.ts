import { describe, expect, test } from 'vitest';
import { type CheckedPolicy, policyWorld } from '../../../test/support/checked-policy.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';

/** Where each of `count` equal tasks is bound, each ended before the next comes. */
function oneByOne(world: CheckedPolicy, count: number): string {
  return Array.from({ length: count }, (_, index) => {
    world.submit(taskSpec(index + 1));
    const node = world.permits.get(index + 1) ?? '-';
    world.end(index + 1);
    return node;
  }).join(' ');
}

/** Nodes of `count` tasks of these sizes that come at once, on nodes with slots for all of them. */
function atOnce(world: CheckedPolicy, works: readonly number[]): string {
  for (const [index, workUs] of works.entries()) world.submit(taskSpec(index + 1, { workUs }));
  return works.map((_, index) => world.permits.get(index + 1) ?? '-').join(' ');
}

describe('weighted-round-robin', () => {
  test('spreads the turns of a heavy node between those of the others', () => {
    const world = policyWorld('weighted-round-robin', [{ rate: 5 }, { rate: 1 }, { rate: 1 }]);
    expect(oneByOne(world, 7)).toBe('n0 n0 n1 n0 n2 n0 n0');
  });

  test('weighs slots as it weighs speed', () => {
    const world = policyWorld('weighted-round-robin', [{ rate: 1, slots: 3 }, { rate: 1 }]);
    expect(oneByOne(world, 8).split('n0').length - 1).toBe(6);
  });
});

describe('weighted-random', () => {
  test('draws in proportion to stated speed', () => {
    const world = policyWorld('weighted-random', [{ rate: 3 }, { rate: 1 }]);
    const share = (oneByOne(world, 2_000).split('n0').length - 1) / 2_000;
    expect(share).toBeGreaterThan(0.72);
    expect(share).toBeLessThan(0.78);
  });
});

describe('balancers that count', () => {
  const twoSlots = [
    { rate: 4, slots: 9 },
    { rate: 1, slots: 9 },
    { rate: 1, slots: 9 },
  ];

  test('least-connections gives ties to the next in turn', () => {
    const world = policyWorld('least-connections', twoSlots);
    expect(oneByOne(world, 4)).toBe('n0 n1 n2 n0');
    expect(atOnce(policyWorld('least-connections', twoSlots), [S, S, S, S])).toBe('n0 n1 n2 n0');
  });

  test('jsq gives ties to the fastest when asked to, whatever its queue takes', () => {
    const world = policyWorld('jsq', [{ rate: 1 }, { rate: 4 }], { ties: 'fastest' });
    expect(atOnce(world, [S, S])).toBe('n1 n0');
  });

  test('sed leaves a slow node idle while the queue of a fast one is short', () => {
    const world = policyWorld('sed', [{ rate: 4 }, { rate: 1 }]);
    atOnce(world, [S, S, S, S, S]);
    const first = [1, 2, 3, 4].map((id) => world.permits.get(id) ?? 'waits');
    expect(first).toEqual(['n0', 'waits', 'waits', 'waits']);
    expect(world.permits.get(5)).toBe('n1');
  });

  test('weighted-power-of-two hardly ever takes a node that is forty times slower', () => {
    const world = policyWorld('weighted-power-of-two', [{ rate: 1 }, { rate: 1 }, { rate: 0.025 }]);
    expect(oneByOne(world, 500)).not.toContain('n2');
    const evenly = policyWorld('power-of-two', [{ rate: 1 }, { rate: 1 }, { rate: 0.025 }]);
    expect(oneByOne(evenly, 500)).toContain('n2');
  });
});

describe('balancers that count work', () => {
  test('ect takes the busy fast node where the idle slow one would end later, lwl does not', () => {
    const nodes = [{ rate: 8 }, { rate: 1 }];
    const ect = policyWorld('ect', nodes);
    atOnce(ect, [4 * S, 4 * S]);
    expect(ect.runningOn('n1')).toEqual([]);
    const lwl = policyWorld('lwl', nodes);
    atOnce(lwl, [4 * S, 4 * S]);
    expect(lwl.permits.size).toBe(2);
  });

  test('ect follows what a node turns out to be', () => {
    const world = policyWorld('ect', []);
    for (const id of ['n0', 'n1'])
      world.apply({ kind: 'node-registered', node: nodeSpec(id, { hardware: 'A100' }) });
    for (let id = 1; id <= 20; id++) {
      world.submit(taskSpec(id));
      world.advance(world.permits.get(id) === 'n0' ? 10 * S : S);
      world.end(id);
    }
    world.submit(taskSpec(21));
    expect(world.permits.get(21)).toBe('n1');
  });

  test('a task that overruns its estimate does not count as nothing left', () => {
    const world = policyWorld('lwl', [{ rate: 1 }, { rate: 1 }]);
    world.submit(taskSpec(1, { workUs: S }));
    const first = world.permits.get(1);
    world.advance(60 * S);
    world.submit(taskSpec(2, { workUs: 20 * S }));
    world.submit(taskSpec(3, { workUs: S }));
    expect(first).toBeDefined();
    expect(world.permits.get(3)).toBeUndefined();
    world.end(2);
    expect(world.permits.get(3)).not.toBe(first);
  });
});

describe('prequal', () => {
  test('leaves a node that is slow, and one that is full', () => {
    const world = policyWorld('prequal', [{ rate: 1 }, { rate: 1 }, { rate: 0.1 }]);
    const taken = Array.from({ length: 60 }, (_, index) => {
      const id = index + 1;
      world.submit(taskSpec(id));
      const node = world.permits.get(id);
      world.advance(node === 'n2' ? 10 * S : S);
      world.end(id);
      return node;
    });
    expect(taken.slice(20)).not.toContain('n2');
    const full = policyWorld('prequal', [{ rate: 1 }, { rate: 1 }, { rate: 1 }]);
    for (let id = 1; id <= 9; id++) full.submit(taskSpec(id));
    expect(full.permits.size).toBe(3);
  });
});
