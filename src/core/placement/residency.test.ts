/** Nodes that load a model for a task: who has it loaded already is found, waited for, and known by its own speed. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { PlacementConfig } from '../config/types.ts';

const SWAP = 12 * S;
const HOUR = 3_600 * S;
/** So many that a node sits in one pool for all of them. */
const MODELS = Array.from({ length: 12 }, (_, i) => ({ model: `m${i}` }));

/** Nodes of one model each, loaded: the first one `m0`, the second `m1`, and so on. Nothing runs. */
function loadedWorld(nodes: number, placement: Partial<PlacementConfig> = {}): CheckedScheduler {
  const world = new CheckedScheduler(
    defaultSchedulerConfig({
      gates: { 'flow-wait': 'off', ladder: 'off' },
      placement: { swapMs: SWAP / 1_000, exploreEveryMs: HOUR / 1_000, ...placement },
    }),
  );
  for (let i = 0; i < nodes; i++) {
    world.apply({ kind: 'node-registered', node: nodeSpec(`n${i}`, { models: MODELS }) });
    world.submit(taskSpec(1_000 + i, { model: `m${i}`, deadlineAt: HOUR }));
    expect(world.runningOn(`n${i}`)).toEqual([1_000 + i]);
  }
  world.advance(SWAP + S);
  for (let i = 0; i < nodes; i++) world.end(1_000 + i);
  return world;
}

describe('a model that one node has loaded', () => {
  test('is served there, however many nodes of the same speed idle', () => {
    for (const index of [3, 7, 11]) {
      const world = loadedWorld(12);
      world.submit(taskSpec(1, { model: `m${index}`, deadlineAt: HOUR }));
      expect(world.runningOn(`n${index}`)).toEqual([1]);
    }
  });

  test('is waited for while that is sooner than twice the time of loading it elsewhere', () => {
    for (const [workUs, isSent] of [
      [20 * S, false],
      [40 * S, true],
    ] as const) {
      const world = loadedWorld(12);
      world.submit(taskSpec(1, { model: 'm7', workUs, deadlineAt: HOUR }));
      world.submit(taskSpec(2, { model: 'm7', deadlineAt: HOUR }));
      expect(world.tried.has(2)).toBe(isSent);
    }
  });
});

describe('a task that waits for its model', () => {
  test('does not keep others as large as itself from the node that has theirs loaded', () => {
    const world = loadedWorld(2);
    world.submit(taskSpec(1, { model: 'm0', workUs: 10 * S, deadlineAt: HOUR }));
    world.submit(taskSpec(2, { model: 'm1', workUs: 10 * S, deadlineAt: HOUR }));
    world.submit(taskSpec(3, { model: 'm0', deadlineAt: HOUR }));
    world.submit(taskSpec(4, { model: 'm1', deadlineAt: HOUR + S }));
    world.advance(2 * S);
    world.end(2);
    expect(world.runningOn('n1')).toEqual([4]);
  });

  test('is not sent to load it elsewhere because a long queue makes the loss look small', () => {
    const world = loadedWorld(2);
    world.submit(taskSpec(1, { model: 'm0', workUs: 24 * S, deadlineAt: HOUR }));
    world.submit(taskSpec(2, { model: 'm1', workUs: 10 * S, deadlineAt: HOUR }));
    world.submit(taskSpec(3, { model: 'm0', workUs: 50 * S, deadlineAt: HOUR }));
    world.submit(taskSpec(4, { model: 'm1', workUs: 400 * S, deadlineAt: HOUR + S }));
    world.advance(10 * S);
    world.end(2);
    expect(world.runningOn('n1')).toEqual([4]);
  });
});

describe('nodes that load models', () => {
  test('are explored with one that they have loaded, never by loading one', () => {
    const world = loadedWorld(2, { exploreEveryMs: 10_000 });
    for (let id = 1; id <= 30; id++) {
      world.advance(5 * S);
      world.submit(taskSpec(id, { model: 'm0', deadlineAt: HOUR }));
      expect(world.runningOn('n0')).toEqual([id]);
      world.advance(S);
      world.end(id);
    }
  });

  test('are not taken for slower by the time that loading takes', () => {
    const world = loadedWorld(1);
    for (let id = 1; id <= 20; id++) {
      world.submit(taskSpec(id, { model: `m${id % 3}`, deadlineAt: HOUR }));
      world.advance(SWAP + S);
      world.end(id);
    }
    const rates = world.scheduler.nodeMemory('n0', world.now)?.rates ?? [];
    expect(rates.length).toBe(4);
    for (const { rate } of rates) expect(rate).toBeCloseTo(1, 6);
  });
});
