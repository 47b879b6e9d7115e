import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { FuzzPlayer, sequenceArbitrary, type Step } from '../../../test/support/fuzz.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { TaskSpec } from '../request/task.ts';
import type { NodeSpec } from './events.ts';

const ABORTED = { kind: 'aborted' } as const;

function worldOf(nodes: readonly NodeSpec[], overrides: SchedulerOverrides = {}): CheckedScheduler {
  const world = new CheckedScheduler(
    defaultSchedulerConfig({ gates: { 'flow-wait': 'off', timeouts: 'off' }, seed: 3, ...overrides }),
  );
  for (const node of nodes) world.apply({ kind: 'node-registered', node });
  world.now = S;
  return world;
}

/** Ten seconds of work of the lowest class. */
const low = (id: number, change: Partial<TaskSpec> = {}): TaskSpec =>
  taskSpec(id, { className: 'low', workUs: 10 * S, deadlineAt: 120 * S, ...change });

/** One second of work that must be done in five. */
const critical = (world: CheckedScheduler, id: number, change: Partial<TaskSpec> = {}): TaskSpec =>
  taskSpec(id, { className: 'critical', deadlineAt: world.now + 5 * S, ...change });

/** One node that runs task 1 of the lowest class for a second. */
function busyWorld(overrides: SchedulerOverrides = {}, node: Partial<NodeSpec> = {}): CheckedScheduler {
  const world = worldOf([nodeSpec('a', node)], overrides);
  world.submit(low(1));
  world.apply({ kind: 'attempt-sent', taskId: 1 });
  world.advance(S);
  return world;
}

describe('a task of the first class that would come too late', () => {
  test('takes the place of a low one, which waits again and is served with its own deadline', () => {
    const world = busyWorld();
    world.submit(critical(world, 2));
    expect(world.asked).toEqual([1]);
    expect(world.runningOn('a'), 'the permit is out until the attempt has ended').toEqual([1]);
    world.end(1, ABORTED);
    expect(world.runningOn('a')).toEqual([2]);
    expect(world.scheduler.explain(1, world.now)).toMatchObject({
      state: 'queued',
      gates: [{ gate: 'no-room' }, { gate: 'preemption' }],
    });
    world.end(2);
    expect(world.log.at(-1)).toContain('assign 1 a 2');
    world.end(1);
    expect(world.outcomes.get(1)).toEqual({ kind: 'served' });
    expect(world.scheduler.preemptions()).toEqual({ queued: 1, ended: 0, late: 0 });
    expect(world.scheduler.node('a', world.now)).toMatchObject({ state: 'active', ejections: 0, health: 1 });
  });

  test('waits for a node that would be done with it in time all the same', () => {
    const world = busyWorld();
    world.submit(critical(world, 2, { deadlineAt: world.now + 60 * S }));
    expect(world.asked).toEqual([]);
  });

  test('counts who waits before it in its class: the third in line would be too late', () => {
    const world = busyWorld();
    for (const id of [2, 3]) world.submit(critical(world, id, { workUs: 3 * S, deadlineAt: 36 * S }));
    expect(world.asked).toEqual([]);
    world.submit(critical(world, 4, { workUs: 17 * S, deadlineAt: 36 * S }));
    expect(world.asked).toEqual([1]);
  });

  test('takes no place where more of its flow waits than its gate lets wait, though the gate refuses nothing', () => {
    for (const [workUs, asked] of [
      [3 * S, [1]],
      [6 * S, []],
    ] as const) {
      const world = busyWorld({ gates: { 'flow-wait': 'off' } });
      for (const id of [2, 3]) world.submit(critical(world, id, { workUs, deadlineAt: 36 * S }));
      world.submit(critical(world, 4, { workUs: 17 * S, deadlineAt: 36 * S }));
      expect(world.asked).toEqual(asked);
    }
  });

  test('takes no place while its own class alone makes it late, unless it is the most urgent of its flow', () => {
    const world = busyWorld();
    for (let id = 2; id <= 9; id++)
      world.submit(critical(world, id, { tenant: `t${id}`, workUs: 8 * S, deadlineAt: 120 * S }));
    world.submit(critical(world, 10, { tenant: 'x', deadlineAt: 110 * S }));
    world.submit(critical(world, 11, { tenant: 'x', workUs: 60 * S, deadlineAt: 125 * S }));
    expect(world.asked).toEqual([]);
    world.submit(critical(world, 12));
    expect(world.asked).toEqual([1]);
  });

  test('asks the lowest class first, and of it the task that was started last', () => {
    const world = worldOf(['a', 'b', 'c', 'd'].map((id) => nodeSpec(id)));
    world.submit(low(1));
    world.advance(S / 2);
    world.submit(low(2));
    world.advance(S / 2);
    world.submit(low(3, { className: 'normal' }));
    world.submit(low(4, { className: 'critical' }));
    world.submit(critical(world, 5));
    expect(world.asked).toEqual([2]);
  });

  test('never asks its own class', () => {
    const world = worldOf([nodeSpec('a')]);
    world.submit(low(1, { className: 'critical' }));
    world.submit(critical(world, 2));
    expect(world.asked).toEqual([]);
  });

  test('takes no place where there is only one class', () => {
    const [only] = defaultSchedulerConfig().classes.slice(-1);
    const world = busyWorld({ classes: only === undefined ? [] : [only], defaultClass: 'low' });
    world.submit(critical(world, 2));
    expect(world.asked).toEqual([]);
  });

  test.each<[string, (world: CheckedScheduler) => void]>([
    ['has its first byte', (world) => world.apply({ kind: 'attempt-first-byte', taskId: 1 })],
    ['is ended by its client', (world) => world.apply({ kind: 'cancel', taskId: 1 })],
  ])('leaves alone who %s', (_title, change) => {
    for (const stream of [true, false]) {
      const world = worldOf([nodeSpec('a')]);
      world.submit(low(1, { stream }));
      change(world);
      world.submit(critical(world, 2));
      expect(world.asked).toEqual([]);
    }
  });

  test.each<[string, Partial<NodeSpec>]>([
    ['cannot abort', { canAbort: false }],
    ['would not be done with it in time either', { hardware: 'T4' }],
  ])('leaves alone what runs on a node that %s', (_title, change) => {
    const world = busyWorld({}, change);
    const isSlow = change.hardware !== undefined;
    world.submit(critical(world, 2, { workUs: isSlow ? 4.9 * S : S }));
    expect(world.asked).toEqual([]);
  });

  test('leaves alone whose end a breaker may wait for', () => {
    const models = [{ model: 'm' }, { model: 'other' }];
    const world = worldOf([nodeSpec('a', { models })]);
    world.submit(taskSpec(8, { model: 'other' }));
    world.end(8, { kind: 'failed', failure: 'server-error', retryable: false });
    world.submit(low(1, { model: 'other' }));
    expect(world.runningOn('a')).toEqual([1]);
    world.submit(critical(world, 2));
    expect(world.asked).toEqual([]);
  });

  test('asks a node for one place at a time', () => {
    const world = worldOf([nodeSpec('a', { slots: 2 })], { preemption: { budgetReserve: 100 } });
    world.submit(taskSpec(9));
    world.advance(S);
    world.end(9);
    for (const id of [1, 2]) world.submit(low(id));
    for (const id of [3, 4]) world.submit(critical(world, id, { workUs: 2 * S }));
    expect(world.asked).toEqual([2]);
    world.end(2, ABORTED);
    expect(world.runningOn('a')).toEqual([1, 3]);
  });

  test('asks each task once in its life', () => {
    const world = busyWorld({ preemption: { budgetReserve: 100 } });
    world.submit(critical(world, 2));
    world.end(1, ABORTED);
    world.advance(S);
    world.end(2);
    expect(world.runningOn('a'), 'it runs again').toEqual([1]);
    world.submit(critical(world, 3));
    expect(world.asked).toEqual([1]);
  });

  test('takes one place at most, also when another node fails it after that', () => {
    const world = worldOf([nodeSpec('a'), nodeSpec('b')], { preemption: { budgetReserve: 100 } });
    for (const id of [1, 2]) world.submit(low(id));
    world.submit(critical(world, 3));
    const [victim] = world.asked;
    world.end(victim as number, ABORTED);
    world.end(3, { kind: 'failed', failure: 'server-error', retryable: true });
    expect(world.asked).toEqual([victim]);
  });
});

describe('in a node group', () => {
  test.each([
    ['hasty', 2],
    ['other', 1],
  ])('a place that is kept for one holder goes to no other: tenant %s asks task %i', (tenant, asked) => {
    const nodes = { ids: ['a', 'b'], labels: {} };
    const share = { holder: 'tenant' as const, name: 'hasty', min: 0.5, max: 1 };
    const group = { name: 'g', nodes, reservedFor: { models: [], tenants: [] }, shares: [share] };
    const world = worldOf([nodeSpec('a'), nodeSpec('b')], { groups: [group] });
    world.submit(low(1, { tenant: 'owner' }));
    world.advance(S / 2);
    world.submit(low(2, { tenant: 'hasty' }));
    world.submit(critical(world, 3, { tenant }));
    expect(world.asked).toEqual([asked]);
  });
});

describe('the place', () => {
  test.each([
    ['served before the abort reached it', { kind: 'ok' }, { queued: 0, ended: 0, late: 1 }],
    ['aborted', ABORTED, { queued: 1, ended: 0, late: 0 }],
  ] as const)('is taken when the low one was %s, by who it was taken for', (_title, result, counts) => {
    const world = busyWorld();
    world.submit(critical(world, 2));
    world.submit(critical(world, 3, { deadlineAt: world.now + 4 * S }));
    world.end(1, result);
    expect(world.outcomes.get(1)?.kind).toBe(result.kind === 'ok' ? 'served' : undefined);
    expect(world.runningOn('a'), 'not to who is more urgent').toEqual([2]);
    expect(world.scheduler.preemptions()).toEqual(counts);
  });

  test('goes to the lane when nobody waits for it any more: the low one has it back', () => {
    const world = busyWorld();
    world.submit(critical(world, 2));
    world.apply({ kind: 'cancel', taskId: 2 });
    world.end(1, ABORTED);
    expect(world.runningOn('a')).toEqual([1]);
    expect(world.log.at(-1)).toContain('assign 1 a 2');
  });

  test('is given up by a client that leaves meanwhile: cancelled, and the heir has the place', () => {
    const world = busyWorld();
    world.submit(critical(world, 2));
    world.apply({ kind: 'cancel', taskId: 1 });
    world.end(1, ABORTED);
    expect(world.outcomes.get(1)).toEqual({ kind: 'cancelled' });
    expect(world.runningOn('a')).toEqual([2]);
  });

  test('costs the low one nothing: no attempt, no charge, no place in the order of arrival', () => {
    const world = busyWorld({ retry: { attemptsMax: 2 }, bounds: { tasksMax: 3 } });
    world.apply({ kind: 'node-registered', node: nodeSpec('b', { models: [{ model: 'other' }] }) });
    const served = (): number => (world.scheduler.dump(world.now) as Dump).classes[2]?.served ?? 0;
    world.submit(low(5));
    world.submit(critical(world, 6));
    const before = served();
    world.end(1, ABORTED);
    world.end(6);
    expect(world.runningOn('a')).toEqual([1]);
    expect(served(), 'what it was charged is credited').toBe(before);
    world.apply({ kind: 'node-registered', node: nodeSpec('c') });
    world.end(1, { kind: 'failed', failure: 'server-error', retryable: true });
    expect(world.outcomes.get(1), 'its second attempt of two').toBeUndefined();
  });

  test('leaves an older one older: at a full queue the later arrival is evicted', () => {
    const world = busyWorld({ bounds: { tasksMax: 2, classShareMax: 1, tenantShareMax: 1 } });
    world.submit(low(5));
    world.submit(critical(world, 6));
    world.end(1, ABORTED);
    world.submit(critical(world, 7, { deadlineAt: world.now + 60 * S }));
    expect(world.outcomes.get(5)).toMatchObject({ kind: 'evicted', reason: 'evicted' });
    expect(world.outcomes.get(1)).toBeUndefined();
  });

  test('ends the low one honestly where it cannot be done in time any more', () => {
    const world = worldOf([nodeSpec('a')]);
    world.submit(low(1, { deadlineAt: world.now + 16 * S }));
    world.advance(5 * S);
    world.submit(critical(world, 2));
    world.end(1, ABORTED);
    expect(world.outcomes.get(1)).toMatchObject({
      kind: 'evicted',
      reason: 'preempted',
      hint: { retryable: true },
      cause: expect.stringContaining('gave its place'),
    });
    expect(world.scheduler.preemptions()).toEqual({ queued: 0, ended: 1, late: 0 });
  });

  test('is told as the reason, too, when it waits again until its deadline', () => {
    const world = busyWorld();
    world.submit(critical(world, 2));
    world.end(1, ABORTED);
    world.advance(130 * S);
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'evicted', reason: 'preempted' });
  });

  test('has a lesser answer stand in where there is one', () => {
    const world = worldOf([nodeSpec('a')]);
    world.submit(low(1, { deadlineAt: world.now + 16 * S, alternatives: [{ how: 'default' }] }));
    world.advance(5 * S);
    world.submit(critical(world, 2));
    world.end(1, ABORTED);
    expect(world.asked).toEqual([1]);
    expect(world.outcomes.get(1)).toEqual({ kind: 'degraded', alternative: 0 });
  });
});

describe('the budget', () => {
  test('allows its reserve per ten seconds, and no more without completed work', () => {
    const world = worldOf(['a', 'b', 'c'].map((id) => nodeSpec(id)));
    for (const id of [1, 2, 3]) world.submit(low(id));
    world.advance(S);
    for (const id of [4, 5]) world.submit(critical(world, id));
    expect(world.asked).toHaveLength(1);
    world.end(world.asked[0] as number, ABORTED);
    world.advance(10 * S);
    world.submit(critical(world, 6));
    expect(world.asked).toHaveLength(2);
  });

  test('is filled by completed work', () => {
    const world = worldOf(
      ['a', 'b', 'c'].map((id) => nodeSpec(id)),
      {
        preemption: { budgetReserve: 0, budgetRatio: 0.01 },
      },
    );
    world.submit(critical(world, 4, { workUs: 200 * S, deadlineAt: 400 * S }));
    world.advance(200 * S);
    world.end(4);
    for (const id of [1, 2, 3]) world.submit(low(id, { deadlineAt: 400 * S }));
    world.advance(S);
    for (const id of [5, 6, 7]) world.submit(critical(world, id));
    expect(world.asked, '2 s pay for two that ran for a second').toHaveLength(2);
  });
});

describe('the gate', () => {
  const log = (mode: 'on' | 'shadow' | 'off'): { log: readonly string[]; count: unknown } => {
    const world = busyWorld({ gates: { preemption: mode, 'flow-wait': 'off', timeouts: 'off' } });
    world.submit(critical(world, 2));
    if (world.asked.length > 0) world.end(1, ABORTED);
    world.advance(3 * S);
    world.endAll();
    return { log: world.log, count: world.scheduler.gates().find(({ gate }) => gate === 'preemption') };
  };

  test('counts in shadow what it would do, and changes nothing', () => {
    const [on, shadow, off] = [log('on'), log('shadow'), log('off')];
    expect(on.count).toMatchObject({ refused: 1, wouldRefuse: 0 });
    expect(shadow.count).toMatchObject({ refused: 0, wouldRefuse: 1 });
    expect(off.count).toMatchObject({ refused: 0, wouldRefuse: 0 });
    expect(shadow.log).toEqual(off.log);
    expect(on.log).not.toEqual(off.log);
  });
});

interface Dump {
  readonly permits: number;
  readonly classes: readonly { readonly served: number }[];
}

/** Low ones are long, and the first class is in haste. */
function inHaste(step: Step): Step {
  if (step.kind !== 'submit') return step;
  if (step.className !== 'critical') return { ...step, className: 'low', workUs: 6 * S, ttlUs: 60 * S };
  return { ...step, workUs: Math.min(step.workUs, S), ttlUs: 4 * S };
}

test('whatever happens: books, permits and outcomes hold, nobody is asked twice, the reserve is never exceeded', () => {
  let asked = 0;
  fc.assert(
    fc.property(sequenceArbitrary({ absurd: false, shutdown: true, maxLength: 160 }), (steps) => {
      const world = new CheckedScheduler(
        defaultSchedulerConfig({ seed: 7, preemption: { budgetRatio: 0, budgetReserve: 2 } }),
      );
      new FuzzPlayer(world).play(steps.map(inHaste), () => {
        expect(world.asked.length).toBeLessThanOrEqual(2 * (1 + Math.floor(world.now / (10 * S))));
      });
      for (const id of world.specs.keys()) world.apply({ kind: 'cancel', taskId: id });
      world.endAll();
      expect(world.outcomes.size).toBe(world.specs.size);
      expect(world.accounts).toMatchObject({ queued: 0, running: 0 });
      expect((world.scheduler.dump(world.now) as Dump).permits).toBe(0);
      const { queued, ended, late } = world.scheduler.preemptions();
      expect(queued + ended + late).toBe(world.asked.length);
      asked += world.asked.length;
    }),
    { numRuns: 80 },
  );
  expect(asked, 'sequences that preempt').toBeGreaterThan(5);
});
