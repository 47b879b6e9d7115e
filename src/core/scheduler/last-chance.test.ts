import { expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { NodeMemory } from './events.ts';

const CONFIG = defaultSchedulerConfig({
  seed: 3,
  health: { slowStartTasks: 0 },
  groups: [
    {
      name: 'g',
      nodes: { ids: ['fast'], labels: {} },
      reservedFor: { models: [], tenants: [] },
      shares: [{ holder: 'tenant', name: 'b', min: 0, max: 0.5 }],
    },
  ],
});
const WORK_US = 0.5 * S;

function rate(speed: number): NodeMemory {
  const rates = [{ model: '', rate: speed, observations: 50 }];
  return { cordoned: false, draining: false, ejectedForUs: 0, ejections: 0, rates };
}

/** A fast node that is full, of whose two slots tenant b may have one, and an idle one that takes 1.16 s for half a second. */
function shared(): CheckedScheduler {
  const world = new CheckedScheduler(CONFIG);
  world.apply({ kind: 'node-registered', node: nodeSpec('fast', { slots: 2 }), memory: rate(1) });
  world.apply({ kind: 'node-registered', node: nodeSpec('slow'), memory: rate(0.43) });
  // Until a first success it is given one task at a time.
  submit(world, { id: 8, workUs: 0.4 * S, tenant: 'c', leftUs: S });
  world.advance(0.4 * S);
  world.end(8);
  for (const id of [1, 2]) submit(world, { id, workUs: 0.4 * S, tenant: 'c', leftUs: S });
  expect(world.runningOn('fast')).toEqual([1, 2]);
  return world;
}

interface Submitted {
  readonly id: number;
  readonly workUs: number;
  readonly tenant: string;
  readonly leftUs: number;
  readonly className?: string;
}

function submit(world: CheckedScheduler, { leftUs, ...rest }: Submitted): void {
  const { id } = rest;
  world.submit({ ...taskSpec(id), ...rest, deadlineAt: world.now + leftUs, deadlineWished: true });
}

/** An urgent task of the tenant takes the one slot that it may have: nobody tells the others that wait for it. */
function takeTheSlotOfB(world: CheckedScheduler): void {
  submit(world, { id: 9, workUs: 5 * S, tenant: 'b', leftUs: 10 * S, className: 'critical' });
  world.end(1, { kind: 'aborted' });
  expect(world.permits.get(9)?.nodeId).toBe('fast');
}

/** News of it: who waits is asked, and goes on waiting for the fast one. */
function offerTheSlowOne(world: CheckedScheduler): void {
  world.apply({ kind: 'node-reading', nodeId: 'slow', reading: { running: 0, waiting: 0, cacheUse: 0 } });
}

test('a task whose share is used up meanwhile starts on the node that was idle, while that is in time', () => {
  const world = shared();
  submit(world, { id: 3, workUs: WORK_US, tenant: 'b', leftUs: 1.9 * S });
  takeTheSlotOfB(world);
  expect(world.permits.has(3)).toBe(false);
  world.advance(0.5 * S);
  expect(world.permits.get(3)?.nodeId).toBe('slow');
});

test('it starts there though the node was declined a moment ago', () => {
  const world = shared();
  submit(world, { id: 3, workUs: WORK_US, tenant: 'b', leftUs: 1.5 * S });
  offerTheSlowOne(world);
  takeTheSlotOfB(world);
  expect(world.permits.has(3)).toBe(false);
  world.advance(0.15 * S);
  expect(world.permits.get(3)?.nodeId).toBe('slow');
});

test('it does not wait behind one of its tenant and size for which that node is too slow', () => {
  const world = shared();
  submit(world, { id: 3, workUs: WORK_US, tenant: 'b', leftUs: 1.3 * S });
  submit(world, { id: 4, workUs: WORK_US, tenant: 'b', leftUs: 1.9 * S });
  offerTheSlowOne(world);
  takeTheSlotOfB(world);
  expect([...world.permits.keys()]).toEqual([2, 9]);
  world.advance(0.5 * S);
  expect(world.permits.get(4)?.nodeId).toBe('slow');
});
