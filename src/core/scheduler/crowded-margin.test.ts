import { expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';

/** What tasks of a second took, over and over: the rate stays 1, one of four is far beyond its prediction. */
const TOOK_S = [0.25, 0.25, 0.25, 3.25];
const TASKS = 400;
const BUSY = 1_001;
const BUSY_S = 10;
const OURS = 1_003;
const OTHERS = 1_010;

/** One busy node, whose predictions fail so often that nine of ten need about 2.5 times as long, and 98 of 100 three times. */
function wildWorld(admission: SchedulerOverrides['admission'] = {}): CheckedScheduler {
  const gates = { timeouts: 'off', 'flow-wait': 'off', ladder: 'off' } as const;
  const world = new CheckedScheduler(defaultSchedulerConfig({ gates, seed: 3, admission }));
  world.apply({ kind: 'node-registered', node: nodeSpec('a', { hardware: 'A100' }) });
  for (let id = 1; id <= TASKS; id++) {
    world.submit(taskSpec(id, { deadlineAt: world.now + 100 * S }));
    world.advance((TOOK_S[id % TOOK_S.length] as number) * S);
    world.end(id);
  }
  world.submit(taskSpec(BUSY, { workUs: BUSY_S * S, deadlineAt: world.now + 100 * S }));
  return world;
}

/** It waits for the node, and has `leftS` left when the node is free: so many times what it is predicted to take. */
function waitFor(world: CheckedScheduler, className: string, leftS: number): void {
  world.submit(taskSpec(OURS, { className, deadlineAt: world.now + (BUSY_S + leftS) * S }));
}

/** A minute of work of others, who have time. */
function crowd(world: CheckedScheduler): void {
  for (let id = OTHERS; id < OTHERS + 60; id++)
    world.submit(taskSpec(id, { tenant: 'others', className: 'low', deadlineAt: world.now + 600 * S }));
}

function freeTheNode(world: CheckedScheduler): void {
  world.advance(BUSY_S * S);
  world.end(BUSY);
}

test('a task that is in time more often than not takes the node where nobody loses by it', () => {
  const world = wildWorld();
  waitFor(world, 'normal', 2.2);
  freeTheNode(world);
  expect(world.runningOn('a')).toEqual([OURS]);
});

test('where not all can be in time, the node goes to one that almost surely is', () => {
  const world = wildWorld();
  waitFor(world, 'normal', 2.2);
  crowd(world);
  freeTheNode(world);
  expect(world.outcomes.get(OURS)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
  expect(world.runningOn('a')).toEqual([OTHERS]);
});

test('crowdedMarginMax bounds what is asked for there, but for a greater marginMax', () => {
  const lenient = wildWorld({ crowdedMarginMax: 1 });
  waitFor(lenient, 'normal', 2.2);
  crowd(lenient);
  freeTheNode(lenient);
  expect(lenient.runningOn('a')).toEqual([OURS]);
  const strict = wildWorld({ crowdedMarginMax: 1, marginMax: 5 });
  waitFor(strict, 'normal', 2.2);
  crowd(strict);
  freeTheNode(strict);
  expect(strict.runningOn('a')).toEqual([OTHERS]);
});

test('a task of the first class need not be as sure as others', () => {
  const isTaken = (className: string): boolean => {
    const world = wildWorld({ crowdedMarginMax: 10 });
    waitFor(world, className, 2.8);
    crowd(world);
    freeTheNode(world);
    return world.runningOn('a').includes(OURS);
  };
  expect([isTaken('critical'), isTaken('normal')]).toEqual([true, false]);
});

test('who waits for another node is asked the same by one that is free sooner', () => {
  const world = wildWorld();
  world.apply({ kind: 'node-registered', node: nodeSpec('b', { hardware: 'A100' }) });
  world.submit(taskSpec(BUSY + 1, { workUs: (BUSY_S + 1) * S, deadlineAt: world.now + 100 * S }));
  expect(world.runningOn('b')).toEqual([BUSY + 1]);
  // It is idle, and far too slow: who comes books one of the others.
  world.apply({ kind: 'node-registered', node: nodeSpec('slow', { hardware: 'CPU' }) });
  world.advance((BUSY_S - 0.5) * S);
  waitFor(world, 'normal', 2.2 - BUSY_S);
  crowd(world);
  world.end(BUSY + 1);
  expect(world.outcomes.get(OURS)).toBeUndefined();
  expect(world.runningOn('b')[0]).toBeGreaterThanOrEqual(OTHERS);
});
