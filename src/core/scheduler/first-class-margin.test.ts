import { expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';

/** One idle node. The margin is 1.25 while nothing was measured: nine seconds of work then ask for more than eleven. */
function idleWorld(): CheckedScheduler {
  const world = new CheckedScheduler(defaultSchedulerConfig({ gates: { timeouts: 'off' }, seed: 3 }));
  world.apply({ kind: 'node-registered', node: nodeSpec('a') });
  world.now = S;
  return world;
}

const hasty = (world: CheckedScheduler, className: string): ReturnType<typeof taskSpec> =>
  taskSpec(1, { className, workUs: 9 * S, deadlineAt: world.now + 10 * S });

test('the margin gives way to a task of the first class that is too large for it, and to no other', () => {
  const world = idleWorld();
  world.submit(hasty(world, 'critical'));
  expect(world.runningOn('a')).toEqual([1]);
  const other = idleWorld();
  other.submit(hasty(other, 'normal'));
  other.advance(S);
  expect(other.runningOn('a')).toEqual([]);
  expect(other.outcomes.get(1)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
});

test('the margin of the first class stays whole where it takes less than half of the time', () => {
  const world = idleWorld();
  world.submit(taskSpec(2, { className: 'critical', workUs: 6.5 * S, deadlineAt: 100 * S }));
  // Four seconds of work and their margin are half of ten: after six seconds of waiting they are too much.
  world.submit(taskSpec(1, { className: 'critical', workUs: 4 * S, deadlineAt: world.now + 10 * S }));
  world.advance(5.5 * S);
  world.end(2);
  expect(world.runningOn('a')).toEqual([]);
  expect(world.outcomes.get(1)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
});

test('the margin gives way down to the bare prediction: what cannot end in time is not begun', () => {
  const world = idleWorld();
  world.submit(taskSpec(2, { className: 'critical', workUs: 2 * S, deadlineAt: 100 * S }));
  world.submit(hasty(world, 'critical'));
  world.advance(2 * S);
  world.end(2);
  expect(world.runningOn('a')).toEqual([]);
  expect(world.outcomes.get(1)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
});
