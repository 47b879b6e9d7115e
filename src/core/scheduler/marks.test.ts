/** Marks of nodes: each closes a node for a while, none for ever. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { AttemptResult, FailureKind } from '../request/outcome.ts';
import type { NodeMemory, NodeSpec } from './events.ts';

const HEALTH = {
  ejectMs: 5_000,
  ejectMsMax: 60_000,
  refusedMs: 1_000,
  suspectAfterMs: 60_000,
  suspectLeaseMs: 30_000,
};

class World extends CheckedScheduler {
  #nextId = 1;

  /** A task that nobody else of this test competes with; due in ten minutes. */
  ask(): number {
    const id = this.#nextId++;
    this.submit(taskSpec(id, { tenant: `t${id}`, deadlineAt: this.now + 600 * S }));
    return id;
  }

  state(nodeId: string): string | undefined {
    return this.scheduler.node(nodeId, this.now)?.state;
  }
}

function worldOf(nodes: readonly NodeSpec[], overrides: SchedulerOverrides = {}): World {
  const world = new World(defaultSchedulerConfig({ health: HEALTH, ...overrides }));
  for (const node of nodes) world.apply({ kind: 'node-registered', node });
  return world;
}

function failure(kind: FailureKind, nodeRetryAfterUs = 0): AttemptResult {
  return { kind: 'failed', failure: kind, retryable: false, nodeRetryAfterUs };
}

/** Fails until the node is ejected. */
function eject(world: World, nodeId: string): void {
  for (let i = 0; i < 10 && world.state(nodeId) !== 'ejected'; i++) {
    const id = world.ask();
    if (world.permits.get(id)?.nodeId === nodeId) world.end(id, failure('server-error'));
  }
  expect(world.state(nodeId)).toBe('ejected');
}

describe('ejection', () => {
  test('ends by itself, and lets exactly one task through to try the node', () => {
    const world = worldOf([nodeSpec('a', { slots: 8 })]);
    for (let i = 0; i < 5; i++) {
      world.ask();
      world.endAll();
    }
    eject(world, 'a');
    expect(world.scheduler.nodeMemory('a', world.now)).toMatchObject({ ejections: 1, ejectedForUs: 5 * S });
    world.advance(5 * S);
    const ids = [world.ask(), world.ask(), world.ask()];
    expect(ids.filter((id) => world.permits.has(id))).toHaveLength(1);
    world.end(ids[0] as number);
    expect(ids.filter((id) => world.permits.has(id))).toEqual(ids.slice(1));
  });

  test('doubles its sleep each time the trial fails, up to the maximum, and is back at the start after proof', () => {
    const world = worldOf([nodeSpec('a')]);
    eject(world, 'a');
    const sleeps: number[] = [];
    for (let i = 0; i < 6; i++) {
      const sleepUs = world.scheduler.nodeMemory('a', world.now)?.ejectedForUs ?? 0;
      sleeps.push(sleepUs / S);
      world.advance(sleepUs);
      world.end(world.ask(), failure('server-error'));
    }
    expect(sleeps).toEqual([5, 10, 20, 40, 60, 60]);
    world.advance(60 * S);
    for (let i = 0; i < 25; i++) {
      world.ask();
      world.endAll();
    }
    expect(world.scheduler.nodeMemory('a', world.now)?.ejections).toBe(0);
  });

  test('counts once when everything that ran on the node fails together', () => {
    const world = worldOf([nodeSpec('a', { slots: 16 })]);
    for (let i = 0; i < 20; i++) {
      world.ask();
      world.endAll();
    }
    const ids = Array.from({ length: 16 }, () => world.ask());
    expect(world.permits.size).toBe(16);
    for (const id of ids) world.end(id, failure('reset'));
    expect(world.scheduler.nodeMemory('a', world.now)).toMatchObject({ ejections: 1, ejectedForUs: 5 * S });
  });

  test('is not lifted by an old task that ends well: only the trial counts', () => {
    const world = worldOf([nodeSpec('a', { slots: 8 })]);
    for (let i = 0; i < 10; i++) {
      world.ask();
      world.endAll();
    }
    const old = world.ask();
    eject(world, 'a');
    world.end(old);
    world.advance(5 * S);
    const ids = [world.ask(), world.ask()];
    expect(ids.filter((id) => world.permits.has(id))).toHaveLength(1);
  });

  test('and cordon survive a restart by the node’s memory, rates too', () => {
    const world = worldOf([nodeSpec('a', { hardware: 'A100' })]);
    for (let i = 0; i < 20; i++) {
      const id = world.ask();
      world.advance(4 * S);
      world.end(id);
    }
    eject(world, 'a');
    world.apply({ kind: 'node-cordoned', nodeId: 'a', cordoned: true });
    const memory = world.scheduler.nodeMemory('a', world.now) as NodeMemory;
    const restarted = new World(world.config);
    restarted.apply({ kind: 'node-registered', node: nodeSpec('a', { hardware: 'A100' }), memory });
    expect(restarted.state('a')).toBe('cordoned');
    restarted.apply({ kind: 'node-cordoned', nodeId: 'a', cordoned: false });
    expect(restarted.state('a')).toBe('ejected');
    expect(restarted.scheduler.node('a', 0)?.rates[0]?.rate).toBeCloseTo(0.25, 1);
    restarted.advance(5 * S);
    expect(restarted.runningOn('a')).toEqual([]);
    restarted.ask();
    expect(restarted.runningOn('a')).toHaveLength(1);
  });

  test('remembered with an absurd length lasts no longer than a fresh one could', () => {
    const world = worldOf([]);
    const memory: NodeMemory = {
      cordoned: false,
      draining: false,
      ejectedForUs: 1e18,
      ejections: 3,
      rates: [],
    };
    world.apply({ kind: 'node-registered', node: nodeSpec('a'), memory });
    world.advance(60 * S);
    expect(world.permits.has(world.ask())).toBe(true);
  });

  test('and what led to it never improve the score that people and the ranking see', () => {
    const world = worldOf([nodeSpec('a', { slots: 8 })]);
    for (let i = 0; i < 25; i++) {
      world.ask();
      world.endAll();
    }
    const health = (): number => world.scheduler.node('a', world.now)?.health ?? 0;
    // One of three fails, so that the share of successes is low when it is ejected at last.
    for (let i = 0; i < 60 && world.state('a') !== 'ejected'; i++) {
      const before = health();
      const id = world.ask();
      if (i % 3 === 0) world.end(id, failure('server-error'));
      else world.end(id);
      if (i % 3 === 0) expect(health()).toBeLessThan(before);
    }
    expect(world.state('a')).toBe('ejected');
    expect(health()).toBeLessThan(0.7);
    world.advance(5 * S);
    const before = health();
    world.end(world.ask(), failure('server-error'));
    expect(health()).toBeLessThanOrEqual(before);
  });

  test('a declined or aborted attempt never speaks against a node', () => {
    const world = worldOf([nodeSpec('a')]);
    for (let i = 0; i < 50; i++) world.end(world.ask(), { kind: i % 2 === 0 ? 'declined' : 'aborted' });
    expect(world.state('a')).not.toBe('ejected');
  });

  test('a restated node keeps its ejection: reconnecting does not clean it', () => {
    const world = worldOf([nodeSpec('a')]);
    eject(world, 'a');
    world.apply({ kind: 'node-registered', node: nodeSpec('a', { slots: 2 }) });
    expect(world.state('a')).toBe('ejected');
  });
});

describe('refusals of a node', () => {
  test('close its room for the time that the node asks for, a minute at most', () => {
    const world = worldOf([nodeSpec('a')]);
    world.end(world.ask(), failure('refused', 3 * S));
    const id = world.ask();
    world.advance(3 * S - MS);
    expect(world.permits.has(id)).toBe(false);
    world.advance(MS);
    expect(world.permits.has(id)).toBe(true);
    world.end(id, failure('refused', 1e15));
    const next = world.ask();
    world.advance(60 * S);
    expect(world.permits.has(next)).toBe(true);
  });

  test('keep the later expiry when a shorter one follows', () => {
    const world = worldOf([nodeSpec('a', { slots: 2 })]);
    world.ask();
    world.endAll();
    const ids = [world.ask(), world.ask()];
    world.end(ids[0] as number, failure('refused', 10 * S));
    world.end(ids[1] as number, failure('refused', 0));
    const id = world.ask();
    world.advance(9 * S);
    expect(world.permits.has(id)).toBe(false);
    world.advance(S);
    expect(world.permits.has(id)).toBe(true);
  });

  test('end early when something finishes there', () => {
    const world = worldOf([nodeSpec('a', { slots: 2 })]);
    world.ask();
    world.endAll();
    const ids = [world.ask(), world.ask()];
    world.end(ids[0] as number, failure('refused', 30 * S));
    const waiting = world.ask();
    world.end(ids[1] as number);
    expect(world.permits.has(waiting)).toBe(true);
  });
});

describe('suspicion', () => {
  test('needs two failed probes in a row, and an answer ends it', () => {
    const world = worldOf([nodeSpec('a')]);
    world.apply({ kind: 'node-probed', nodeId: 'a', alive: false });
    expect(world.state('a')).not.toBe('suspect');
    world.apply({ kind: 'node-probed', nodeId: 'a', alive: true });
    world.apply({ kind: 'node-probed', nodeId: 'a', alive: false });
    expect(world.state('a')).not.toBe('suspect');
    world.apply({ kind: 'node-probed', nodeId: 'a', alive: false });
    expect(world.state('a')).toBe('suspect');
    world.apply({ kind: 'node-probed', nodeId: 'a', alive: true });
    expect(world.state('a')).not.toBe('suspect');
  });

  test('of failed probes is a lease that ends with no event at all', () => {
    const world = worldOf([nodeSpec('a'), nodeSpec('b')]);
    for (let i = 0; i < 2; i++) world.apply({ kind: 'node-probed', nodeId: 'a', alive: false });
    world.advance(30 * S);
    expect(world.state('a')).not.toBe('suspect');
    const ids = [world.ask(), world.ask()];
    expect(ids.every((id) => world.permits.has(id))).toBe(true);
  });

  test('begins when heartbeats stop, and a heartbeat ends it', () => {
    const world = worldOf([nodeSpec('a', { heartbeats: true })]);
    world.advance(59 * S);
    world.apply({ kind: 'node-heartbeat', nodeId: 'a' });
    world.advance(59 * S);
    expect(world.state('a')).not.toBe('suspect');
    world.advance(2 * S);
    expect(world.state('a')).toBe('suspect');
    world.apply({ kind: 'node-heartbeat', nodeId: 'a' });
    expect(world.state('a')).not.toBe('suspect');
  });

  test('never falls on a node that promised no heartbeats', () => {
    const world = worldOf([nodeSpec('a')]);
    world.advance(3_600 * S);
    expect(world.state('a')).toBe('unverified');
  });

  test('leaves what runs on the node alone', () => {
    const world = worldOf([nodeSpec('a')]);
    const id = world.ask();
    for (let i = 0; i < 2; i++) world.apply({ kind: 'node-probed', nodeId: 'a', alive: false });
    expect(world.permits.get(id)?.isAborted).toBe(false);
    world.end(id);
    expect(world.outcomes.get(id)).toEqual({ kind: 'served' });
  });
});

describe('readings of engines', () => {
  const engine = nodeSpec('a', { slots: 0, batching: true });

  function proven(): World {
    const world = worldOf([engine]);
    world.ask();
    world.endAll();
    return world;
  }

  test('close room while something waits inside, and open it when nothing does', () => {
    const world = proven();
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 1 } });
    const id = world.ask();
    expect(world.permits.has(id)).toBe(false);
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 0 } });
    expect(world.permits.has(id)).toBe(true);
  });

  test('of the cache close room above the mark and open it below the lower one', () => {
    const world = proven();
    const read = (cacheUse: number): boolean => {
      world.apply({ kind: 'node-reading', nodeId: 'a', reading: { cacheUse } });
      const id = world.ask();
      const isOpen = world.permits.has(id);
      world.apply({ kind: 'cancel', taskId: id });
      world.endAll();
      return isOpen;
    };
    expect([0.89, 0.91, 0.87, 0.84, 0.87].map(read)).toEqual([true, false, false, true, true]);
  });

  test('that say nothing close nothing', () => {
    const world = proven();
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: {} });
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { running: 500 } });
    world.apply({
      kind: 'node-reading',
      nodeId: 'a',
      reading: { waiting: Number.NaN, cacheUse: Number.NaN },
    });
    expect(world.permits.has(world.ask())).toBe(true);
  });

  test('that closed room are stale after five seconds, and own accounting serves on', () => {
    const world = proven();
    world.apply({ kind: 'node-reading', nodeId: 'a', reading: { waiting: 3, cacheUse: 0.99 } });
    const id = world.ask();
    world.advance(5 * S - MS);
    expect(world.permits.has(id)).toBe(false);
    world.advance(MS);
    expect(world.permits.has(id)).toBe(true);
  });
});

describe('by hand', () => {
  test('a cordoned node finishes what it has and takes nothing new until the cordon is lifted', () => {
    const world = worldOf([nodeSpec('a')]);
    const running = world.ask();
    const waiting = world.ask();
    world.apply({ kind: 'node-cordoned', nodeId: 'a', cordoned: true });
    world.end(running);
    expect(world.outcomes.get(running)).toEqual({ kind: 'served' });
    expect(world.permits.has(waiting)).toBe(false);
    world.apply({ kind: 'node-cordoned', nodeId: 'a', cordoned: false });
    expect(world.permits.has(waiting)).toBe(true);
  });

  test('a draining node says once that it is empty, when its last task has ended', () => {
    const world = worldOf([nodeSpec('a', { slots: 2 }), nodeSpec('b')]);
    world.ask();
    world.ask();
    world.apply({ kind: 'node-draining', nodeId: 'a', draining: true });
    expect(world.log.some((line) => line.includes('drained'))).toBe(false);
    world.endAll();
    expect(world.log.filter((line) => line.endsWith('drained a'))).toHaveLength(1);
  });
});

describe('a slowed node', () => {
  /** Works alone on the node for that long, `count` times. */
  function work(world: World, count: number, tookUs: number): void {
    for (let i = 0; i < count && world.state('a') !== 'ejected'; i++) {
      const id = world.ask();
      world.advance(tookUs);
      world.end(id);
    }
  }

  test('is ejected once while another could take its work, and judged by its new pace from then on', () => {
    const world = worldOf([nodeSpec('a'), nodeSpec('b', { hardware: 'T4' })]);
    work(world, 40, S);
    work(world, 40, 3 * S);
    expect(world.scheduler.nodeMemory('a', world.now)).toMatchObject({ ejections: 1 });
    expect(world.state('a')).toBe('ejected');
    world.advance(5 * S);
    world.apply({ kind: 'node-cordoned', nodeId: 'b', cordoned: true });
    world.apply({ kind: 'node-registered', node: nodeSpec('c', { hardware: 'T4' }) });
    work(world, 60, 3 * S);
    expect(world.state('a')).toBe('active');
  });

  test('stays where it is the only one', () => {
    const world = worldOf([nodeSpec('a')]);
    work(world, 40, S);
    work(world, 60, 3 * S);
    expect(world.state('a')).toBe('active');
  });
});

describe('slow start', () => {
  test('a new node with many slots gets one task first, and all its slots once it has served', () => {
    const world = worldOf([nodeSpec('a', { slots: 4 })]);
    const ids = Array.from({ length: 5 }, () => world.ask());
    expect(world.permits.size).toBe(1);
    world.end(ids[0] as number);
    expect(world.permits.size).toBe(4);
  });
});
