import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { BoundsConfig } from '../config/types.ts';
import type { TaskSpec } from '../request/task.ts';
import { createState, FLOWS_MAX, flowOf } from '../scheduler/state.ts';
import { VICTIMS_PER_ARRIVAL_MAX } from './bounds.ts';

const HOUR = 3_600 * S;
/** Wide open, so that each test sets the one bound that it is about; and no gate before the bound. */
const WIDE: BoundsConfig = {
  tasksMax: 1_000,
  bytesMax: 1e9,
  workMsMax: 1e9,
  classShareMax: 1,
  tenantShareMax: 1,
};

/** A queue that stands still: its one node runs a task that does not end. */
function standing(bounds: Partial<BoundsConfig>): CheckedScheduler {
  const world = new CheckedScheduler(
    defaultSchedulerConfig({
      bounds: { ...WIDE, ...bounds },
      admission: { flowWaitMsMax: 86_400_000, flowWaitDeadlineShare: 1 },
    }),
  );
  world.apply({ kind: 'node-registered', node: nodeSpec('busy') });
  world.submit(task(1, { className: 'critical' }));
  return world;
}

function task(id: number, change: Partial<TaskSpec> = {}): TaskSpec {
  return taskSpec(id, { deadlineAt: 100 * HOUR, bytes: 1, ...change });
}

function reasonOf(world: CheckedScheduler, id: number): string {
  const outcome = world.outcomes.get(id);
  return outcome === undefined ? 'waits' : 'reason' in outcome ? outcome.reason : outcome.kind;
}

function waiting(world: CheckedScheduler): number[] {
  return [...world.specs.keys()].filter((id) => !world.outcomes.has(id) && !world.permits.has(id));
}

describe('a full queue lets one in and one out', () => {
  test('the newest task of the heaviest flow of the lowest class leaves', () => {
    const world = standing({ tasksMax: 5 });
    world.submit(task(2, { className: 'normal', tenant: 'a' }));
    world.submit(task(3, { className: 'low', tenant: 'light', workUs: S }));
    world.submit(task(4, { className: 'low', tenant: 'heavy', workUs: 3 * S }));
    world.submit(task(5, { className: 'low', tenant: 'heavy', workUs: 1 * S }));
    world.submit(task(6, { className: 'low', tenant: 'light', workUs: S }));
    world.submit(task(7, { className: 'normal', tenant: 'b' }));
    expect(reasonOf(world, 5)).toBe('evicted');
    expect(waiting(world)).toEqual([2, 3, 4, 6, 7]);
  });

  test('among flows of equal weight in the arrival’s own class the one with most queued work gives way', () => {
    const world = standing({ tasksMax: 3 });
    world.submit(task(2, { tenant: 'elephant' }));
    world.submit(task(3, { tenant: 'elephant' }));
    world.submit(task(4, { tenant: 'elephant' }));
    world.submit(task(5, { tenant: 'mouse' }));
    expect(reasonOf(world, 4)).toBe('evicted');
    expect(waiting(world)).toEqual([2, 3, 5]);
  });

  test('an arrival that would itself be the newest of the heaviest flow is refused, and nobody leaves for it', () => {
    const world = standing({ tasksMax: 3 });
    for (const id of [2, 3, 4]) world.submit(task(id, { tenant: 'elephant' }));
    world.submit(task(5, { tenant: 'elephant' }));
    world.submit(task(6, { tenant: 'newcomer', workUs: 10 * S }));
    expect([reasonOf(world, 5), reasonOf(world, 6)]).toEqual(['queue-full', 'queue-full']);
    expect(waiting(world)).toEqual([2, 3, 4]);
  });

  test('an arrival is refused when only more important classes wait', () => {
    const world = standing({ tasksMax: 2 });
    world.submit(task(2, { className: 'critical', tenant: 'a' }));
    world.submit(task(3, { className: 'normal', tenant: 'b' }));
    world.submit(task(4, { className: 'low', tenant: 'c' }));
    expect(reasonOf(world, 4)).toBe('queue-full');
    expect(waiting(world)).toEqual([2, 3]);
  });

  test('a refusal and an eviction both say that a retry can help, and when', () => {
    const world = standing({ tasksMax: 1 });
    world.submit(task(2, { className: 'low' }));
    world.submit(task(3, { className: 'critical' }));
    world.submit(task(4, { className: 'low' }));
    for (const id of [2, 4]) expect(world.outcomes.get(id)).toMatchObject({ hint: { retryable: true } });
  });

  test('an arrival that needs more victims than one may cause is refused and evicts nobody', () => {
    const world = standing({ workMsMax: 20_000 });
    for (let id = 2; id < 22; id++) world.submit(task(id, { className: 'low' }));
    const needed = VICTIMS_PER_ARRIVAL_MAX + 1;
    world.submit(task(100, { className: 'critical', workUs: needed * S }));
    expect(reasonOf(world, 100)).toBe('queue-full');
    world.submit(task(101, { className: 'critical', workUs: (needed - 1) * S }));
    expect(reasonOf(world, 101)).toBe('waits');
    expect(world.accounts.evicted).toBe(VICTIMS_PER_ARRIVAL_MAX);
  });

  test('no less important arrival ever evicts a more important task', () => {
    const rank: Readonly<Record<string, number>> = { critical: 0, normal: 1, low: 2 };
    const arrival = fc.record({
      className: fc.constantFrom('critical', 'normal', 'low'),
      tenant: fc.constantFrom('a', 'b', 'c'),
      workUs: fc.integer({ min: 1, max: 5 * S }),
      bytes: fc.integer({ min: 0, max: 30 }),
    });
    fc.assert(
      fc.property(fc.array(arrival, { maxLength: 60, size: 'max' }), (arrivals) => {
        const world = standing({ tasksMax: 8, bytesMax: 100, workMsMax: 16_000 });
        arrivals.forEach((change, index) => {
          const before = new Set(world.outcomes.keys());
          world.submit(task(index + 2, change));
          for (const [id, outcome] of world.outcomes) {
            if (before.has(id) || outcome.kind !== 'evicted') continue;
            const victim = world.specs.get(id)?.className as string;
            expect(rank[victim]).toBeGreaterThanOrEqual(rank[change.className] as number);
          }
        });
      }),
      { numRuns: drawsOf(60) },
    );
  });
});

describe('each bound by itself', () => {
  test('bytes: the arrival that would exceed them takes the place of enough others', () => {
    const world = standing({ bytesMax: 100 });
    for (const id of [2, 3, 4]) world.submit(task(id, { className: 'low', bytes: 30 }));
    world.submit(task(5, { className: 'critical', bytes: 60 }));
    expect(waiting(world)).toEqual([2, 5]);
    expect(world.scheduler.queue(world.now).bytes).toBe(90);
  });

  test('a body beyond the bound on bytes is refused though the queue is empty', () => {
    const world = standing({ bytesMax: 100 });
    world.submit(task(2, { className: 'critical', bytes: 101 }));
    expect(reasonOf(world, 2)).toBe('queue-full');
  });

  test('work: small tasks leave for a large one until the work fits', () => {
    const world = standing({ workMsMax: 5_000 });
    for (let id = 2; id < 7; id++) world.submit(task(id, { className: 'low' }));
    world.submit(task(7, { className: 'normal', workUs: 3 * S }));
    expect(waiting(world)).toEqual([2, 3, 7]);
  });

  test('a class at its share gives way inside itself and leaves the others alone', () => {
    const world = standing({ tasksMax: 10, classShareMax: 0.3 });
    world.submit(task(2, { className: 'low' }));
    for (const id of [3, 4, 5]) world.submit(task(id, { className: 'critical', tenant: 'a' }));
    world.submit(task(6, { className: 'critical', tenant: 'b' }));
    expect(reasonOf(world, 5)).toBe('evicted');
    expect(waiting(world)).toEqual([2, 3, 4, 6]);
  });

  test('when a class is at its share and the queue is full as well, what leaves makes room under both', () => {
    const world = standing({ workMsMax: 10_000, classShareMax: 0.6 });
    world.submit(task(2, { className: 'normal', tenant: 'n', workUs: 4 * S }));
    for (let id = 3; id < 9; id++) world.submit(task(id, { className: 'critical', tenant: 'a', workUs: S }));
    world.submit(task(9, { className: 'critical', tenant: 'b', workUs: 3 * S }));
    expect(world.scheduler.queue(world.now).workMs).toBeLessThanOrEqual(10_000);
  });

  test('a tenant at its share gives way to itself, and is refused where only its more important work waits', () => {
    const world = standing({ tasksMax: 10, tenantShareMax: 0.2 });
    world.submit(task(2, { className: 'low', tenant: 'b' }));
    world.submit(task(3, { className: 'low', tenant: 'a' }));
    world.submit(task(4, { className: 'normal', tenant: 'a' }));
    world.submit(task(5, { className: 'critical', tenant: 'a' }));
    expect([reasonOf(world, 3), reasonOf(world, 5)]).toEqual(['evicted', 'waits']);
    world.submit(task(6, { className: 'low', tenant: 'a' }));
    expect(reasonOf(world, 6)).toBe('queue-full');
    expect(waiting(world)).toEqual([2, 4, 5]);
  });

  test('a fleet without tenants, where all are one, still serves critical before low when full', () => {
    const world = standing({ tasksMax: 10, tenantShareMax: 0.8 });
    for (let id = 2; id < 12; id++) world.submit(task(id, { className: 'low', tenant: 'anonymous' }));
    world.submit(task(20, { className: 'critical', tenant: 'anonymous' }));
    expect(reasonOf(world, 20)).toBe('waits');
    expect(world.accounts).toMatchObject({ queued: 8, evicted: 1 });
  });
});

describe('what a full queue must not do', () => {
  test('it does not refuse work of another model whose node is idle', () => {
    const world = standing({ tasksMax: 3 });
    world.apply({ kind: 'node-registered', node: nodeSpec('idle', { models: [{ model: 'other' }] }) });
    for (const id of [2, 3, 4]) world.submit(task(id, { className: 'critical', tenant: 'a' }));
    world.submit(task(5, { className: 'low', tenant: 'z', model: 'other' }));
    expect(world.runningOn('idle')).toEqual([5]);
    expect(world.accounts.evicted).toBe(0);
  });

  test('it does not grow beyond its bound when a failed attempt comes back for another node', () => {
    const world = standing({ tasksMax: 2 });
    world.apply({ kind: 'node-registered', node: nodeSpec('second') });
    world.submit(task(2, { className: 'low', tenant: 'r' }));
    for (const id of [3, 4]) world.submit(task(id, { className: 'critical', tenant: 'a' }));
    world.end(2, { kind: 'failed', failure: 'refused', retryable: true });
    expect(world.accounts.queued).toBeLessThanOrEqual(2);
  });
});

describe('tables beside the queue', () => {
  test('flowOf forgets idle flows when the table is full, and keeps those that hold tasks', () => {
    const state = createState(defaultSchedulerConfig());
    const record = state.classes[0];
    if (record === undefined) throw new Error('No class');
    const kept = flowOf(state, record, 'kept');
    kept.running = 1;
    for (let i = 1; i < FLOWS_MAX; i++) flowOf(state, record, `t${i}`);
    expect(record.flows.size).toBe(FLOWS_MAX);
    flowOf(state, record, 'one more');
    expect(record.flows.size).toBe(2);
    expect(flowOf(state, record, 'kept')).toBe(kept);
  });
});
