/** The learned limit on tasks at once where the scheduler uses it: by gate, by what the node states, by its readings. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { GateMode } from '../config/types.ts';
import type { NodeSpec } from './events.ts';

class World extends CheckedScheduler {
  #nextId = 1;

  constructor(mode: GateMode, node: Partial<NodeSpec>) {
    super(
      defaultSchedulerConfig({
        gates: { concurrency: mode, timeouts: 'off', 'flow-wait': 'off', ladder: 'off' },
        placement: { drainMsMax: 86_400_000 },
      }),
    );
    this.apply({ kind: 'node-registered', node: nodeSpec('a', { slots: 0, ...node }) });
  }

  ask(): number {
    const id = this.#nextId++;
    this.submit(taskSpec(id, { tenant: `t${id}`, workUs: 100 * MS, deadlineAt: this.now + 3_600 * S }));
    return id;
  }

  /** Keeps the node full for a while: each task takes as long as its share of a node that does `knee` at once. */
  saturate(tasks: number, knee: number): void {
    for (let served = 0; served < tasks; served++) {
      while (this.accounts.queued < 2) this.ask();
      const [oldest] = [...this.permits].sort((a, b) => a[1].takenAt - b[1].takenAt);
      if (oldest === undefined) throw new Error('Nothing runs');
      const [id, { takenAt }] = oldest;
      const takesUs = 100 * MS * Math.max(1, this.permits.size / knee);
      this.advance(Math.max(1, takenAt + takesUs - this.now));
      this.end(id);
    }
  }

  /** One task at a time. */
  quiet(tasks: number): void {
    for (let served = 0; served < tasks; served++) {
      const id = this.ask();
      this.advance(100 * MS);
      this.end(id);
    }
  }

  view(): ReturnType<World['scheduler']['node']> {
    return this.scheduler.node('a', this.now);
  }

  refusals(): { readonly refused: number; readonly wouldRefuse: number } | undefined {
    return this.scheduler.gates().find(({ gate }) => gate === 'concurrency');
  }
}

describe('a node that states no slots', () => {
  test('is held to what it was seen to do at once, and says so', () => {
    const world = new World('on', {});
    world.saturate(600, 1);
    expect(world.view()?.slots).toBeLessThanOrEqual(2);
    expect(world.view()?.concurrency).toMatchObject({ limit: world.view()?.slots, holds: true });
    expect(world.refusals()?.refused).toBeGreaterThan(0);
    expect(world.refusals()?.wouldRefuse).toBe(0);
  });

  test('gets more than the fixed number where it can do more', () => {
    const world = new World('on', {});
    world.saturate(2_000, 32);
    expect(world.view()?.concurrency?.settled).toBeGreaterThan(16);
  });

  test('starts again after a rest, by time alone', () => {
    const world = new World('on', {});
    world.saturate(600, 1);
    for (let id = 1; world.accounts.queued + world.permits.size > 0; id++) world.endAll();
    expect(world.view()?.concurrency?.settled).toBeLessThan(4);
    world.advance(31 * S);
    const ids = [1, 2, 3, 4, 5].map(() => world.ask());
    expect(ids.filter((id) => world.permits.has(id)).length).toBe(4);
  });

  test('is held to less after it said that it is full', () => {
    const world = new World('on', {});
    world.saturate(2_000, 32);
    const before = world.view()?.concurrency?.settled ?? 0;
    while (world.accounts.queued < 1) world.ask();
    const [id] = world.permits.keys();
    world.end(id as number, { kind: 'failed', failure: 'refused', retryable: false });
    expect(world.view()?.concurrency?.settled).toBeLessThan(before);
  });
});

describe('the gate concurrency', () => {
  test('in shadow leaves the fixed number in force, and counts the places it would have closed', () => {
    const world = new World('shadow', {});
    world.quiet(10);
    world.saturate(600, 1);
    expect(world.view()?.slots).toBe(4);
    expect(world.view()?.concurrency).toMatchObject({ holds: false });
    expect(world.refusals()).toMatchObject({ refused: 0 });
    expect(world.refusals()?.wouldRefuse).toBeGreaterThan(0);
  });

  test('when off is the fixed number, and nothing is learned', () => {
    const world = new World('off', {});
    world.saturate(600, 1);
    expect([world.view()?.slots, world.view()?.concurrency]).toEqual([4, undefined]);
    expect(world.refusals()).toMatchObject({ refused: 0, wouldRefuse: 0 });
  });

  test('takes hold, and lets go, when the configuration changes', () => {
    const world = new World('shadow', {});
    world.quiet(10);
    world.saturate(600, 1);
    const { config } = world;
    world.apply({ kind: 'config', config: { ...config, gates: { ...config.gates, concurrency: 'on' } } });
    expect(world.view()?.slots).toBeLessThan(4);
    world.apply({ kind: 'config', config: { ...config, gates: { ...config.gates, concurrency: 'off' } } });
    expect(world.view()?.slots).toBe(4);
  });
});

describe('what else tells how much a node can do', () => {
  test('stated slots stand, whatever is seen', () => {
    const world = new World('on', { slots: 8 });
    world.saturate(600, 1);
    expect([world.view()?.slots, world.view()?.concurrency]).toEqual([8, undefined]);
  });

  test('a batching engine without readings is held as any other', () => {
    const world = new World('on', { batching: true });
    world.saturate(600, 1);
    expect(world.view()?.slots).toBeLessThanOrEqual(2);
  });

  /** A batching engine that has been sent all that it may have, and then tells that only 16 of it run. */
  function flooded(mode: GateMode): World {
    const world = new World(mode, { batching: true });
    world.quiet(1);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 0 } });
    for (let count = 0; count < 300; count++) world.ask();
    expect(world.permits.size).toBe(256);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 240 } });
    return world;
  }

  const endFirst = (world: World, count: number): void => {
    for (const [id] of [...world.permits].slice(0, count)) world.end(id);
  };

  test('one that tells how many wait inside it gets no more than an eighth above what it does at once', () => {
    const world = flooded('on');
    expect(world.view()?.concurrency).toMatchObject({ limit: 18, holds: true, reason: 'readings' });
    endFirst(world, 238);
    expect([world.permits.size, world.accounts.queued]).toEqual([18, 44]);
    endFirst(world, 1);
    expect([world.permits.size, world.accounts.queued], 'a place that is free is taken').toEqual([18, 43]);
  });

  test('one is closed while only work of others runs there, for five seconds after the last reading', () => {
    const world = new World('on', { batching: true });
    world.quiet(1);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { running: 16, waiting: 3 } });
    const id = world.ask();
    expect(world.permits.has(id)).toBe(false);
    world.advance(5 * S);
    expect(world.permits.has(id)).toBe(true);
  });

  test.each(['shadow', 'off'] as const)('with the gate in %s it is closed while anything waits', (mode) => {
    const world = flooded(mode);
    endFirst(world, 250);
    expect(world.permits.size).toBe(6);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 0 } });
    expect(world.permits.size).toBe(50);
  });

  test('one that tells it no more is held to nothing by what it told', () => {
    const world = flooded('on');
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { cacheUse: 0.5, waiting: Number.NaN } });
    expect(world.view()?.slots).toBe(256);
  });

  test('one that tells its load is held by its readings, until they have been missing for ten minutes', () => {
    const world = new World('on', { batching: true });
    world.saturate(600, 1);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 0 } });
    expect(world.view()?.slots).toBe(256);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { running: 1 } });
    world.endAll();
    world.advance(601 * S);
    world.ask();
    expect(world.view()?.slots).toBeLessThanOrEqual(4);
  });
});
