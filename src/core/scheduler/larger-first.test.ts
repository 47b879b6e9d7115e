/** In which order the waiting tasks of one flow are served that are due alike: the larger ones first, while nobody is turned away. */
import { expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';

const MINUTE = 60 * S;
const CONFIG = defaultSchedulerConfig({
  seed: 3,
  health: { slowStartTasks: 0 },
  classes: [{ name: 'normal', weight: 1, shareMin: 0, firstByteMs: 600_000, completionMs: 600_000 }],
  gates: { 'flow-wait': 'off', ladder: 'off' },
});

/** One node that works on a task of ten seconds, so that whoever comes has to wait. */
function busy(): CheckedScheduler {
  const world = new CheckedScheduler(CONFIG);
  world.apply({ kind: 'node-registered', node: nodeSpec('n') });
  submit(world, 1, 10 * S);
  return world;
}

/** Due ten minutes after it comes. */
function submit(world: CheckedScheduler, id: number, workUs: number): void {
  world.submit(taskSpec(id, { workUs, deadlineAt: world.now + 10 * MINUTE }));
}

/** The waiting tasks in the order in which they get the node. */
function order(world: CheckedScheduler): number[] {
  const served: number[] = [];
  for (let [id] = world.runningOn('n'); id !== undefined; [id] = world.runningOn('n')) {
    served.push(id);
    world.advance(0.1 * S);
    world.end(id);
  }
  return served.slice(1);
}

test('a larger task passes smaller ones that came less than its own work sooner', () => {
  const world = busy();
  submit(world, 2, 0.1 * S);
  world.advance(S);
  submit(world, 3, 2 * S);
  expect(order(world)).toEqual([3, 2]);
});

test('it passes none that came sooner than that', () => {
  const world = busy();
  submit(world, 2, 0.1 * S);
  world.advance(4 * S);
  submit(world, 3, 2 * S);
  expect(order(world)).toEqual([2, 3]);
});

test('no task passes others by more than five seconds, however large it is', () => {
  const world = busy();
  submit(world, 2, 0.1 * S);
  world.advance(5.2 * S);
  submit(world, 3, 50 * S);
  expect(order(world)).toEqual([2, 3]);
});

test('where a task was not served in time, the order is that of the deadlines alone, for a few seconds', () => {
  const world = busy();
  world.submit(taskSpec(9, { workUs: 0.1 * S, deadlineAt: world.now + S }));
  world.advance(1.5 * S);
  expect(world.outcomes.get(9)).toMatchObject({ kind: 'evicted', reason: 'wait-expired' });
  submit(world, 2, 0.1 * S);
  world.advance(0.5 * S);
  submit(world, 3, 2 * S);
  expect(order(world)).toEqual([2, 3]);
  world.advance(CONFIG.admission.flowWaitMsMax * 1_000);
  submit(world, 11, 10 * S);
  submit(world, 12, 0.1 * S);
  world.advance(0.5 * S);
  submit(world, 13, 2 * S);
  expect(order(world)).toEqual([13, 12]);
});
