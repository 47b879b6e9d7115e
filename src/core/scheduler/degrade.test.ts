/** Lesser answers: their order, what they replace, the one bound on attempts, and the books. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { MS, nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { Outcome } from '../request/outcome.ts';
import type { Alternative, LesserTask } from '../degrade/alternative.ts';
import { NO_NEEDS } from '../request/needs.ts';
import type { TaskSpec } from '../request/task.ts';

const CACHE: Alternative = { how: 'cache' };
const DEFAULT: Alternative = { how: 'default' };

function cheaper(model: string, workUs: number): Alternative {
  return { how: 'model', name: model, model, needs: NO_NEEDS, workUs, firstByteWorkUs: workUs };
}

function lower(workUs: number): Alternative {
  return { how: 'quality', name: 'draft', model: 'm', needs: NO_NEEDS, workUs, firstByteWorkUs: workUs };
}

function worldOf(nodes: readonly [id: string, ...models: string[]][], overrides: SchedulerOverrides = {}) {
  const world = new CheckedScheduler(
    defaultSchedulerConfig({
      models: ['m', 'small', 'tiny'].map((id) => ({
        id,
        aliases: [],
        profile: { kind: 'generic', meanMs: 1_000 },
      })),
      ...overrides,
    }),
  );
  for (const [id, ...models] of nodes) {
    const offers = models.map((model) => ({ model }));
    world.apply({ kind: 'node-registered', node: nodeSpec(id, { models: offers }) });
  }
  return world;
}

/** A task of `low` with a class default for a deadline. */
function low(id: number, alternatives: readonly Alternative[], change: Partial<TaskSpec> = {}): TaskSpec {
  return taskSpec(id, { className: 'low', deadlineAt: 600 * S, alternatives, ...change });
}

/** One runs, and more waits than the gate of the flow lets wait: the next whole one of this flow is refused. */
function overloaded(world: CheckedScheduler): CheckedScheduler {
  world.submit(low(1, []));
  world.submit(low(2, [], { workUs: 6 * S }));
  expect(world.submit(low(3, []))).toMatchObject({ kind: 'rejected', reason: 'deadline-infeasible' });
  return world;
}

function degradedLines(world: CheckedScheduler, id: number): string[] {
  return world.log
    .filter((line) => line.includes(`degraded ${id} `))
    .map((line) => line.split(' ').slice(1).join(' '));
}

describe('a lesser answer', () => {
  test('is not used while the whole one can be given', () => {
    const world = worldOf([['a', 'm', 'small']]);
    world.submit(low(1, [CACHE, cheaper('small', MS), lower(MS), DEFAULT]));
    world.end(1);
    expect(world.outcomes.get(1)).toEqual({ kind: 'served' });
    expect(degradedLines(world, 1)).toEqual([]);
    expect(world.accounts).toMatchObject({ served: 1, degraded: 0 });
  });

  test('that was given before stands in first, and ends the task without a node', () => {
    const world = overloaded(worldOf([['a', 'm', 'small']]));
    expect(world.submit(low(4, [CACHE, cheaper('small', MS), DEFAULT]))).toEqual({
      kind: 'degraded',
      alternative: 0,
    });
    expect(degradedLines(world, 4)).toEqual(['degraded 4 0 deadline-infeasible taken']);
    expect(world.accounts).toMatchObject({ degraded: 1, rejected: 1 });
  });

  test('of a cheaper model comes next: admitted, told before it is assigned, and counted as degraded at its end', () => {
    const world = overloaded(
      worldOf([
        ['a', 'm'],
        ['b', 'small'],
      ]),
    );
    world.submit(low(4, [cheaper('small', MS), DEFAULT]));
    const lines = world.log
      .filter((line) => / (degraded|admitted|assign) 4/.test(line))
      .map((line) => line.slice(2));
    expect(lines).toEqual(['degraded 4 0 deadline-infeasible taken', 'admitted 4', 'assign 4 b 1']);
    world.end(4);
    expect(world.outcomes.get(4)).toEqual({ kind: 'degraded', alternative: 0 });
    expect(world.accounts).toMatchObject({ degraded: 1, served: 0 });
  });

  test('of a model that nobody offers is passed over for the next one, and both are told', () => {
    const world = overloaded(
      worldOf([
        ['a', 'm'],
        ['b', 'tiny'],
      ]),
    );
    world.submit(low(4, [cheaper('small', MS), cheaper('tiny', MS)]));
    expect(degradedLines(world, 4)).toEqual([
      'degraded 4 0 deadline-infeasible no-node',
      'degraded 4 1 deadline-infeasible taken',
    ]);
    expect(world.runningOn('b')).toEqual([4]);
  });

  test('of lower quality gets in where the gate refuses whole ones, up to twice the wait, and its lesser work is charged', () => {
    const world = overloaded(worldOf([['a', 'm']]));
    expect(world.submit(low(4, [lower(100 * MS)]))).toBeUndefined();
    expect(world.scheduler.queue(world.now).workMs).toBe(6_100);
    for (let id = 5; id < 60; id++) world.submit(low(id, [lower(100 * MS)]));
    const waitMs = world.scheduler.queue(world.now).workMs;
    expect(waitMs).toBeGreaterThan(9_900);
    expect(waitMs).toBeLessThanOrEqual(10_200);
    expect(world.outcomes.get(59)).toMatchObject({ kind: 'rejected', reason: 'deadline-infeasible' });
  });

  test('that is configured comes last', () => {
    const world = overloaded(worldOf([['a', 'm']]));
    expect(world.submit(low(4, [cheaper('small', MS), DEFAULT]))).toEqual({
      kind: 'degraded',
      alternative: 1,
    });
  });

  test('that cannot be given either leaves the refusal as it was', () => {
    const world = overloaded(worldOf([['a', 'm']]));
    const alone = world.submit(low(4, []));
    const tried = world.submit(low(5, [cheaper('small', MS)]));
    const { kind, reason, hint } = alone as Extract<Outcome, { kind: 'rejected' }>;
    // One place later in line: a second of work, of which half is promised.
    expect(tried).toEqual({ kind, reason, hint: { ...hint, afterUs: hint.afterUs + 2 * S } });
    expect(world.accounts).toMatchObject({ rejected: 3, degraded: 0 });
  });

  test('never replaces a limit, a poisoned body, or a gateway that protects itself', () => {
    const world = worldOf([['a', 'm']]);
    world.apply({ kind: 'survival', shedClasses: 1 });
    expect(world.submit(low(1, [CACHE, DEFAULT]))).toMatchObject({ reason: 'self-protection' });
    world.apply({ kind: 'survival', shedClasses: 0 });
    expect(world.submit(low(2, [CACHE], { model: 'unheard-of' }))).toMatchObject({ reason: 'unknown-model' });
    world.apply({ kind: 'shutdown' });
    expect(world.submit(low(3, [CACHE, DEFAULT]))).toMatchObject({ reason: 'shutting-down' });
  });
});

describe('from stage 1 of the overload ladder on', () => {
  function raised(stage: 0 | 1, nodes: Parameters<typeof worldOf>[0]): CheckedScheduler {
    const world = worldOf(nodes);
    world.apply({ kind: 'ladder-override', override: { stage, forUs: 600 * S, who: 'test', why: '' } });
    return world;
  }
  const BOTH: [string, ...string[]][] = [
    ['a', 'm'],
    ['b', 'small'],
  ];

  test('a request of the last class begins with its first lesser answer, although a node is idle', () => {
    const world = raised(1, BOTH);
    world.submit(low(1, [cheaper('small', MS)]));
    expect(degradedLines(world, 1)).toEqual(['degraded 1 0 ladder taken']);
    expect(world.runningOn('b')).toEqual([1]);
    expect(world.submit(low(2, [CACHE]))).toEqual({ kind: 'degraded', alternative: 0 });
  });

  test('other classes, those without consent, and lower stages get what they asked for', () => {
    const world = raised(1, BOTH);
    world.submit(taskSpec(1, { className: 'normal', alternatives: [cheaper('small', MS)] }));
    expect(world.runningOn('a')).toEqual([1]);
    world.end(1);
    world.submit(low(2, []));
    expect(world.runningOn('a')).toEqual([2]);
    const calm = raised(0, BOTH);
    calm.submit(low(1, [cheaper('small', MS)]));
    expect(calm.runningOn('a')).toEqual([1]);
  });

  test('the whole answer is given where no lesser one can be, and the configured one only where that fails too', () => {
    const world = raised(1, [['a', 'm']]);
    world.submit(low(1, [cheaper('small', MS), DEFAULT]));
    expect(world.runningOn('a')).toEqual([1]);
    expect(degradedLines(world, 1)).toEqual(['degraded 1 0 ladder no-node']);
    world.submit(low(2, [], { workUs: 6 * S }));
    expect(world.submit(low(3, [cheaper('small', MS), DEFAULT]))).toEqual({
      kind: 'degraded',
      alternative: 1,
    });
    expect(world.submit(low(4, [cheaper('small', MS)]))).toMatchObject({ kind: 'rejected' });
    expect(world.accounts).toMatchObject({ degraded: 1, rejected: 1, running: 1, queued: 1 });
  });
});

describe('a task that waits', () => {
  test('gets a lesser answer instead of leaving a full queue', () => {
    const world = worldOf([['a', 'm']], { bounds: { tasksMax: 2, classShareMax: 1, tenantShareMax: 1 } });
    for (const id of [1, 2, 3]) world.submit(low(id, [CACHE], { workUs: 100 * MS }));
    expect(world.submit(taskSpec(4, { className: 'critical' }))).toBeUndefined();
    expect(world.outcomes.get(3)).toEqual({ kind: 'degraded', alternative: 0 });
    expect(degradedLines(world, 3)).toEqual(['degraded 3 0 evicted taken']);
  });

  test('gets one when its deadline comes, if that needs no work', () => {
    const world = worldOf([
      ['a', 'm'],
      ['b', 'small'],
    ]);
    world.submit(taskSpec(1, { className: 'critical', workUs: 50 * S }));
    world.submit(low(2, [cheaper('small', S), DEFAULT], { deadlineAt: 10 * S, workUs: 8 * S }));
    world.advance(20 * S);
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'degraded' });
  });

  test('has its lesser answer before its client can leave in the same instant', () => {
    const world = worldOf([['a', 'm']]);
    world.submit(taskSpec(1, { className: 'critical', workUs: 5 * S }));
    world.submit(low(2, [DEFAULT], { deadlineAt: 10 * S, workUs: S, tenant: 'other' }));
    world.now = 20 * S;
    world.apply({ kind: 'cancel', taskId: 2 });
    expect(world.outcomes.get(2)).toEqual({ kind: 'degraded', alternative: 0 });
    expect(world.accounts).toMatchObject({ degraded: 1, cancelled: 0, queued: 0 });
  });

  test('goes on as the lesser task of a cheaper model when its own is switched off, and whole again when it is back', () => {
    const world = worldOf([
      ['a', 'm'],
      ['b', 'small'],
    ]);
    world.submit(low(1, []));
    world.submit(low(2, [cheaper('small', MS)]));
    const off = {
      ...world.config,
      models: world.config.models.map((one) => ({ ...one, off: one.id === 'm' })),
    };
    world.apply({ kind: 'config', config: off });
    expect(world.runningOn('b')).toEqual([2]);
    expect(world.submit(low(3, []))).toMatchObject({
      kind: 'rejected',
      reason: 'no-node',
      cause: 'the model is switched off by configuration',
    });
    expect(world.submit(low(4, [DEFAULT]))).toMatchObject({ kind: 'degraded' });
    world.end(1);
    world.apply({ kind: 'config', config: world.config });
    world.submit(low(5, [cheaper('small', MS)]));
    expect(world.runningOn('a')).toEqual([5]);
  });
});

describe('a task that failed', () => {
  test('is answered with a remembered answer after its attempts, and with none once a part has left', () => {
    const world = worldOf([['a', 'm']]);
    world.submit(low(1, [CACHE]));
    world.end(1, { kind: 'failed', failure: 'reset', retryable: true });
    expect(world.outcomes.get(1)).toEqual({ kind: 'degraded', alternative: 0 });
    expect(degradedLines(world, 1)).toEqual(['degraded 1 0 node-failed taken']);
    world.submit(low(2, [CACHE]));
    world.advance(S);
    if (!world.permits.has(2)) world.advance(60 * S);
    world.end(2, { kind: 'failed', failure: 'reset', retryable: false });
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
  });

  test('goes on with a cheaper model on another node, within the one bound on attempts', () => {
    const world = worldOf([
      ['a', 'm'],
      ['b', 'm'],
      ['c', 'small'],
      ['d', 'tiny'],
      ['e', 'tiny'],
    ]);
    world.submit(low(1, [cheaper('small', MS), cheaper('tiny', MS), DEFAULT]));
    for (let i = 0; i < 5 && world.permits.has(1); i++)
      world.end(1, { kind: 'failed', failure: 'server-error', retryable: true });
    expect(world.tried.get(1)).toHaveLength(world.config.retry.attemptsMax);
    expect(new Set(world.tried.get(1)?.slice(0, 2))).toEqual(new Set(['a', 'b']));
    expect(world.tried.get(1)?.[2]).toBe('c');
    expect(world.outcomes.get(1)).toEqual({ kind: 'degraded', alternative: 2 });
  });

  test('is not tried on the node again that failed it, also not with a cheaper model', () => {
    const world = worldOf([['a', 'm', 'small']]);
    world.submit(low(1, [cheaper('small', MS)]));
    world.end(1, { kind: 'failed', failure: 'server-error', retryable: true });
    expect(world.outcomes.get(1)).toMatchObject({ kind: 'failed', reason: 'node-failed' });
    expect(degradedLines(world, 1)).toEqual(['degraded 1 0 node-failed no-node']);
  });

  test('is not tried there again with a cheaper model where its failure shuts its own everywhere', () => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const world = worldOf(ids.map((id): [string, ...string[]] => [id, 'm', 'small']));
    const task = (id: number): TaskSpec =>
      low(id, [cheaper('small', MS)], { deadlineAt: world.now + 600 * S });
    const failure = { kind: 'failed', failure: 'server-error' } as const;
    for (let id = 1; id < 100; id++) {
      world.submit(task(id));
      const nodeId = world.permits.get(id)?.nodeId;
      // Nowhere else to go: each other node is closed for the time of this failure.
      const others = ids.filter((other) => other !== nodeId);
      for (const other of others) world.apply({ kind: 'node-cordoned', nodeId: other, cordoned: true });
      world.end(id, { ...failure, retryable: true });
      expect(world.outcomes.get(id), `task ${id}`).toMatchObject({ kind: 'failed', reason: 'node-failed' });
      for (const other of others) world.apply({ kind: 'node-cordoned', nodeId: other, cordoned: false });
      world.advance(S / 100);
      if (world.scheduler.node('a', world.now)?.breakers.some((row) => row.scope === 'everywhere')) return;
    }
    expect.unreachable('the model is never given up');
  });

  test('by its deadline gets what needs no work, and its node is stopped', () => {
    const world = worldOf([
      ['a', 'm'],
      ['b', 'small'],
    ]);
    world.submit(low(1, [cheaper('small', MS), DEFAULT], { deadlineAt: 2 * S }));
    world.advance(3 * S);
    expect(world.outcomes.get(1)).toEqual({ kind: 'degraded', alternative: 1 });
    expect(degradedLines(world, 1)).toEqual([
      'degraded 1 0 node-timeout too-slow',
      'degraded 1 1 node-timeout taken',
    ]);
    expect(world.permits.get(1)?.isAborted).toBe(true);
    world.end(1, { kind: 'aborted' });
    expect(world.accounts).toMatchObject({ degraded: 1, running: 0, failed: 0 });
  });
});

describe('the books', () => {
  test('charge a flow for the lesser work alone', () => {
    const world = overloaded(
      worldOf([
        ['a', 'm'],
        ['b', 'small'],
      ]),
    );
    const before = served(world);
    world.submit(low(4, [cheaper('small', 10 * MS)]));
    world.end(4);
    const weight = world.config.classes.length > 0 ? served(world) - before : 0;
    expect(weight).toBeGreaterThan(0);
    expect(weight).toBeLessThan(S);
  });

  test('reserve of limits what the lesser task may use, and nothing for one that needs no work', () => {
    const limits = { tokensPerMinute: 1, tokensBurst: 1_000, requestsPerMinute: 1, requestsBurst: 100 };
    const world = overloaded(
      worldOf(
        [
          ['a', 'm'],
          ['b', 'small'],
        ],
        { tenantWeights: [{ id: 't', weight: 1 }], tenantLimitsOwn: [{ id: 't', limits }] },
      ),
    );
    const row = (): unknown => world.scheduler.limits(world.now).find(({ name }) => name === 't');
    world.submit(low(4, [CACHE], { tokens: 900, promptTokens: 100 }));
    expect(row()).toMatchObject({ tokensReserved: 0, tasks: 2, tokens: { remaining: 1_000 } });
    world.submit(
      low(5, [{ ...(cheaper('small', MS) as LesserTask), tokens: 150, promptTokens: 100 }], {
        tokens: 900,
        promptTokens: 100,
      }),
    );
    expect(row()).toMatchObject({ tokensReserved: 150, tasks: 3, tokens: { remaining: 850 } });
    world.end(5);
    expect(row()).toMatchObject({ tokensReserved: 0, tasks: 2, tokens: { remaining: 850 } });
  });

  test('hold whatever happens: one outcome each, every alternative taken once at most, nothing left behind', () => {
    const step = fc.record({
      pick: fc.nat(9),
      end: fc.constantFrom('ok', 'failed', 'none', 'none', 'cancel', 'wait', 'off', 'on'),
      workUs: fc.integer({ min: 1, max: 8 * S }),
      ttlUs: fc.integer({ min: 1, max: 30 * S }),
      list: fc.array(
        fc.constantFrom(CACHE, DEFAULT, cheaper('small', 500 * MS), cheaper('tiny', MS), lower(200 * MS)),
        { maxLength: 5 },
      ),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const world = worldOf(
          [
            ['a', 'm'],
            ['b', 'm', 'small'],
            ['c', 'tiny'],
          ],
          {
            bounds: { tasksMax: 6 },
          },
        );
        steps.forEach((one, i) => {
          const className = one.pick % 3 === 0 ? 'critical' : 'low';
          const { workUs, list } = one;
          world.submit(
            taskSpec(i + 1, {
              className,
              workUs,
              tenant: `t${one.pick % 2}`,
              deadlineAt: world.now + one.ttlUs,
              alternatives: list,
            }),
          );
          const picked = [...world.permits.keys()][one.pick % Math.max(1, world.permits.size)];
          if (one.end === 'wait') world.advance(one.ttlUs);
          else if (one.end === 'off' || one.end === 'on') {
            const models = world.config.models.map((model) => ({
              ...model,
              off: model.id === 'm' && one.end === 'off',
            }));
            world.apply({ kind: 'config', config: { ...world.config, models } });
          } else if (one.end === 'cancel') world.apply({ kind: 'cancel', taskId: i });
          else if (picked !== undefined && one.end !== 'none') {
            world.end(
              picked,
              one.end === 'ok' ? { kind: 'ok' } : { kind: 'failed', failure: 'reset', retryable: true },
            );
          }
        });
        world.apply({ kind: 'config', config: world.config });
        for (let i = 0; i < 20; i++) {
          world.endAll();
          world.advance(10 * S);
        }
        expect(world.accounts).toMatchObject({ queued: 0, running: 0 });
        expect(world.outcomes.size).toBe(steps.length);
        for (const [id, outcome] of world.outcomes) {
          if (outcome.kind === 'degraded') expect(world.taken.get(id)?.at(-1)).toBe(outcome.alternative);
        }
      }),
    );
  });
});

function served(world: CheckedScheduler): number {
  const dump = world.scheduler.dump(world.now) as { classes: { name: string; served: number }[] };
  return dump.classes.find((one) => one.name === 'low')?.served ?? 0;
}
