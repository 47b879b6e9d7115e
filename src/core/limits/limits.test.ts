/** Limits in the scheduler: what is reserved when, what comes back when, and what a refusal says. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { LimitsConfig, SchedulerConfig } from '../config/types.ts';
import type { AttemptResult, LimitView } from '../request/outcome.ts';
import type { LimiterView } from './index.ts';

const MODEL = { id: 'm', aliases: [], profile: { kind: 'generic', meanMs: 1_000 } } as const;

/** Tenant `t` has these limits, and anything else the overrides say. */
function configOf(limits: LimitsConfig, overrides: SchedulerOverrides = {}): SchedulerConfig {
  return defaultSchedulerConfig({
    tenantWeights: [{ id: 't', weight: 1 }],
    tenantLimitsOwn: [{ id: 't', limits }],
    ...overrides,
    health: { slowStartTasks: 0 },
    gates: { 'flow-wait': 'off', ...overrides.gates },
  });
}

function worldOf(config: SchedulerConfig, slots = 1): CheckedScheduler {
  const world = new CheckedScheduler(config);
  world.apply({ kind: 'node-registered', node: nodeSpec('a', { slots }) });
  return world;
}

function rowOf(world: CheckedScheduler, name = 't'): LimiterView {
  const row = world.scheduler.limits(world.now).find((candidate) => candidate.name === name);
  if (row === undefined) throw new Error(`Nothing is limited by the name ${name}`);
  return row;
}

/** Requests and tokens left, tasks held, tokens reserved. */
function leftOf(world: CheckedScheduler, name = 't'): readonly number[] {
  const { requests, tokens, tasks, tokensReserved } = rowOf(world, name);
  return [(requests as LimitView).remaining, (tokens as LimitView).remaining, tasks, tokensReserved];
}

const BOTH: LimitsConfig = { requestsPerMinute: 10, tokensPerMinute: 1_000 };
const WHOLE = [10, 1_000, 0, 0];
/** A rate at which nothing comes back while a test looks. */
const SLOW: LimitsConfig = {
  requestsPerMinute: 1,
  requestsBurst: 10,
  tokensPerMinute: 1,
  tokensBurst: 1_000,
};

function admittedBy({ accounts }: CheckedScheduler): number {
  return accounts.arrived - accounts.rejected;
}

function reasons(world: CheckedScheduler): string[] {
  return [...world.outcomes.values()].map((outcome) => ('reason' in outcome ? outcome.reason : outcome.kind));
}

describe('limits at a submit', () => {
  test('let a thousand at the same instant take a hundred requests, and no more', () => {
    const world = worldOf(configOf({ requestsPerMinute: 100 }), 1_000);
    for (let id = 1; id <= 1_000; id++) world.submit(taskSpec(id));
    expect(admittedBy(world)).toBe(100);
    expect(reasons(world)).toEqual(Array.from({ length: 900 }, () => 'rate-limited'));
  });

  test('let a thousand at the same instant take ten thousand tokens, and no more', () => {
    const world = worldOf(configOf({ tokensPerMinute: 10_000 }), 1_000);
    for (let id = 1; id <= 1_000; id++) world.submit(taskSpec(id, { tokens: 300, promptTokens: 100 }));
    expect(admittedBy(world)).toBe(33);
  });

  test('name the limit and the exact time until the request would pass', () => {
    const world = worldOf(configOf({ requestsPerMinute: 100 }), 1_000);
    for (let id = 1; id <= 100; id++) world.submit(taskSpec(id));
    world.now = 1_000;
    expect(world.submit(taskSpec(101))).toEqual({
      kind: 'rejected',
      reason: 'rate-limited',
      cause: 'tenant t: 100 requests per minute',
      hint: { retryable: true, afterUs: 599_000 },
      limits: { requests: { limit: 100, remaining: 0, resetUs: 60 * S - 1_000 } },
    });
    world.now = 599_999;
    expect(world.submit(taskSpec(102))).toMatchObject({ hint: { afterUs: 1 } });
    world.now = 600_000;
    expect(world.submit(taskSpec(103))).toBeUndefined();
  });

  test('refuse for good what is larger than a bucket can ever hold', () => {
    const world = worldOf(configOf({ tokensPerMinute: 12_000, tokensBurst: 4_000 }));
    expect(world.submit(taskSpec(1, { tokens: 4_001 }))).toMatchObject({
      reason: 'rate-limited',
      cause: 'tenant t: at most 4,000 tokens at once, and the request counts 4,001',
      hint: { retryable: false },
    });
    expect(world.submit(taskSpec(2, { tokens: 4_000 }))).toBeUndefined();
  });

  test('hold for class and model as well, and name the one that is short for longest', () => {
    const classes = defaultSchedulerConfig().classes.map((row) =>
      row.name === 'normal' ? { ...row, limits: { requestsPerMinute: 60, requestsBurst: 3 } } : row,
    );
    const models = [{ ...MODEL, limits: { tokensPerMinute: 60, tokensBurst: 100 } }];
    const world = worldOf(configOf({ requestsPerMinute: 60, requestsBurst: 4 }, { classes, models }), 9);
    for (let id = 1; id <= 3; id++) world.submit(taskSpec(id));
    expect(world.submit(taskSpec(4))).toMatchObject({ cause: 'class normal: 60 requests per minute' });
    world.submit(taskSpec(5, { className: 'low', tokens: 100 }));
    expect(world.submit(taskSpec(6, { className: 'low', tenant: 'u', tokens: 30 }))).toMatchObject({
      cause: 'model m: 60 tokens per minute',
      hint: { afterUs: 30 * S },
    });
  });

  test('take from everything that applies or from nothing', () => {
    const models = [{ ...MODEL, limits: { requestsPerMinute: 1 } }];
    const world = worldOf(configOf(BOTH, { models }), 9);
    world.submit(taskSpec(1, { tokens: 100 }));
    world.submit(taskSpec(2, { tokens: 100 }));
    expect(world.outcomes.get(2)).toMatchObject({ cause: 'model m: 1 request per minute' });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
  });

  test.each([
    ['no node offers the model', { model: 'unknown' }],
    ['no node can do it in time', { workUs: 100 * S, deadlineAt: S }],
  ])('give everything back when the same submit is refused because %s', (_title, change) => {
    const world = worldOf(configOf(BOTH));
    expect(world.submit(taskSpec(1, { tokens: 100, ...change }))).toMatchObject({ kind: 'rejected' });
    expect(leftOf(world)).toEqual(WHOLE);
  });

  test('give everything back when the queue is full, also what an evicted task held', () => {
    const bounds = { tasksMax: 1, classShareMax: 1, tenantShareMax: 1 };
    const world = worldOf(configOf(BOTH, { bounds }));
    world.submit(taskSpec(1, { tokens: 100 }));
    world.submit(taskSpec(2, { tokens: 100, className: 'low' }));
    expect(world.submit(taskSpec(3, { tokens: 100, className: 'low' }))).toMatchObject({
      reason: 'queue-full',
    });
    expect(leftOf(world)).toEqual([8, 800, 2, 200]);
    world.submit(taskSpec(4, { tokens: 50, className: 'critical' }));
    expect(world.outcomes.get(2)).toMatchObject({ kind: 'evicted' });
    expect(leftOf(world)).toEqual([8, 850, 2, 150]);
  });

  test('ask nothing of a request without tokens while the tokens are in debt', () => {
    const world = worldOf(configOf(SLOW), 9);
    world.submit(taskSpec(1, { tokens: 900, promptTokens: 900 }));
    world.end(1, { kind: 'ok', usage: { promptTokens: 1_500 } });
    expect(world.submit(taskSpec(2, { tokens: 1 }))).toMatchObject({ reason: 'rate-limited' });
    expect(world.submit(taskSpec(3))).toBeUndefined();
  });
});

describe('a reservation', () => {
  /** One task of 100 tokens, 40 of them its prompt, that has been sent; then what the rest says. */
  function running(): CheckedScheduler {
    const world = worldOf(configOf(SLOW));
    world.submit(taskSpec(1, { tokens: 100, promptTokens: 40, stream: true }));
    world.apply({ kind: 'attempt-sent', taskId: 1 });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
    return world;
  }

  const ENDS: readonly (readonly [string, AttemptResult, number, number])[] = [
    [
      'answered, with fewer tokens than estimated',
      { kind: 'ok', usage: { promptTokens: 30, outputTokens: 5 } },
      1,
      35,
    ],
    ['answered, with more', { kind: 'ok', usage: { promptTokens: 50, outputTokens: 500 } }, 1, 550],
    ['answered, and nobody counted', { kind: 'ok' }, 1, 100],
    ['answered, and only the output was counted', { kind: 'ok', usage: { outputTokens: 7 } }, 1, 47],
    ['answered without output', { kind: 'ok', usage: { promptTokens: 33 } }, 1, 33],
    ['judged wrong by the node', { kind: 'declined' }, 1, 0],
    ['aborted before a byte was passed on', { kind: 'aborted' }, 0, 0],
    ['aborted after seven tokens', { kind: 'aborted', passed: { outputTokens: 7 } }, 1, 47],
    [
      'aborted after seven tokens of a node that counts',
      { kind: 'aborted', passed: { promptTokens: 30, outputTokens: 7 } },
      1,
      37,
    ],
    ['aborted within a part that nobody counted', { kind: 'aborted', passed: {} }, 1, 100],
    ['failed before a byte was passed on', { kind: 'failed', failure: 'reset', retryable: false }, 0, 0],
    [
      'failed after seven tokens',
      { kind: 'failed', failure: 'reset', retryable: false, passed: { outputTokens: 7 } },
      1,
      47,
    ],
  ];

  test.each(ENDS)('of a request that was %s pays for what was used', (_title, result, requests, tokens) => {
    const world = running();
    world.end(1, result);
    expect(leftOf(world)).toEqual([10 - requests, 1_000 - tokens, 0, 0]);
  });

  test.each(ENDS)(
    'is ended once, when the client had left, of one that was %s',
    (_title, result, requests, tokens) => {
      const world = running();
      world.apply({ kind: 'cancel', taskId: 1 });
      expect(leftOf(world), 'until the node has really ended').toEqual([9, 900, 1, 100]);
      world.apply({ kind: 'cancel', taskId: 1 });
      world.end(1, result);
      world.end(1, result);
      expect(leftOf(world)).toEqual([10 - requests, 1_000 - tokens, 0, 0]);
    },
  );

  test('comes back whole when the client leaves the queue', () => {
    const world = running();
    world.submit(taskSpec(2, { tokens: 300 }));
    expect(leftOf(world)).toEqual([8, 600, 2, 400]);
    world.apply({ kind: 'cancel', taskId: 2 });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
  });

  test('comes back whole when the wait is over or the gateway stops', () => {
    const world = running();
    world.submit(taskSpec(2, { tokens: 100, deadlineAt: 2 * S }));
    world.submit(taskSpec(3, { tokens: 100, deadlineAt: 50 * S }));
    world.advance(3 * S);
    expect(world.outcomes.get(2)).toMatchObject({ reason: 'wait-expired' });
    expect(leftOf(world)).toEqual([8, 800, 2, 200]);
    world.apply({ kind: 'shutdown' });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
  });

  test('is one over all attempts', () => {
    const world = running();
    world.apply({ kind: 'node-registered', node: nodeSpec('b') });
    world.end(1, { kind: 'failed', failure: 'reset', retryable: true });
    expect(world.permits.get(1)).toMatchObject({ attempt: 2 });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
    world.end(1, { kind: 'ok', usage: { promptTokens: 40, outputTokens: 10 } });
    expect(leftOf(world)).toEqual([9, 950, 0, 0]);
  });

  test('leaves no debt beyond the burst, which a refusal waits for', () => {
    const world = running();
    world.end(1, { kind: 'ok', usage: { promptTokens: 90_000, outputTokens: 1 } });
    expect(world.submit(taskSpec(2, { tokens: 1 }))).toMatchObject({ hint: { afterUs: 1_001 * 60 * S } });
  });
});

describe('a limit on concurrency', () => {
  test('counts what is queued and what runs, until the node has really ended', () => {
    const world = worldOf(configOf({ concurrency: 2 }));
    world.submit(taskSpec(1));
    world.submit(taskSpec(2));
    expect(world.submit(taskSpec(3))).toMatchObject({ cause: 'tenant t: 2 requests at once' });
    world.apply({ kind: 'cancel', taskId: 1 });
    expect(world.submit(taskSpec(4))).toMatchObject({ reason: 'rate-limited' });
    world.end(1, { kind: 'aborted' });
    expect(world.submit(taskSpec(5))).toBeUndefined();
    world.apply({ kind: 'cancel', taskId: 5 });
    world.endAll();
    expect(rowOf(world)).toMatchObject({ tasks: 0, tasksMax: 2 });
  });

  test('tells to come back when one of those that are held should have left', () => {
    const world = worldOf(configOf({ concurrency: 4 }), 4);
    for (let id = 1; id <= 4; id++) world.submit(taskSpec(id));
    world.advance(8 * S);
    world.endAll();
    for (let id = 5; id <= 8; id++) world.submit(taskSpec(id));
    expect(world.submit(taskSpec(9))).toMatchObject({ hint: { retryable: true, afterUs: 2 * S } });
  });
});

describe('the gate of limits', () => {
  function refusedOf(mode: 'on' | 'shadow' | 'off'): CheckedScheduler {
    const world = worldOf(configOf({ requestsPerMinute: 3 }, { gates: { limits: mode } }), 9);
    for (let id = 1; id <= 5; id++) world.submit(taskSpec(id));
    return world;
  }

  const countOf = (world: CheckedScheduler): unknown =>
    world.scheduler.gates().find((count) => count.gate === 'limits');

  test('in shadow refuses nothing, counts exactly what it would have refused, and tells clients nothing', () => {
    const world = refusedOf('shadow');
    expect(admittedBy(world)).toBe(5);
    expect(countOf(world)).toMatchObject({ refused: 0, wouldRefuse: 2 });
    expect(world.scheduler.limitsOf('t', 0)).toBeUndefined();
    world.endAll();
    expect(rowOf(world)).toMatchObject({ tasks: 0, requests: { remaining: 0 } });
    expect(countOf(refusedOf('on'))).toMatchObject({ refused: 2, wouldRefuse: 0 });
  });

  test('does nothing when off', () => {
    const world = refusedOf('off');
    expect(admittedBy(world)).toBe(5);
    expect(countOf(world)).toMatchObject({ refused: 0, wouldRefuse: 0 });
    expect(rowOf(world)).toMatchObject({ tasks: 0, requests: { remaining: 3 } });
  });

  test('closes what is reserved when it is switched off meanwhile', () => {
    const world = worldOf(configOf(SLOW), 9);
    world.submit(taskSpec(1, { tokens: 100 }));
    world.apply({ kind: 'config', config: configOf(SLOW, { gates: { limits: 'off' } }) });
    world.end(1, { kind: 'aborted' });
    expect(leftOf(world)).toEqual(WHOLE);
  });
});

describe('limits after a change of the configuration', () => {
  test('keep what was used up', () => {
    const world = worldOf(configOf(SLOW), 9);
    world.submit(taskSpec(1, { tokens: 900 }));
    world.apply({ kind: 'config', config: configOf({ ...SLOW, tokensBurst: 5_000, requestsBurst: 20 }) });
    expect(leftOf(world)).toEqual([9, 100, 1, 900]);
    world.apply({ kind: 'config', config: configOf(SLOW) });
    world.end(1, { kind: 'aborted' });
    expect(leftOf(world)).toEqual(WHOLE);
  });

  test('keep it when a tenant gets limits of its own, loses them, or its name', () => {
    const each = { requestsPerMinute: 1, requestsBurst: 10 };
    const named = { tenantWeights: [{ id: 't', weight: 1 }], tenantLimits: each };
    const own = { ...named, tenantLimitsOwn: [{ id: 't', limits: { ...each, requestsBurst: 5 } }] };
    const world = worldOf(defaultSchedulerConfig({ tenantLimits: each }), 9);
    for (let id = 1; id <= 7; id++) world.submit(taskSpec(id));
    for (const overrides of [named, own, named, { tenantLimits: each }, own]) {
      world.apply({ kind: 'config', config: defaultSchedulerConfig(overrides) });
      expect(world.scheduler.limitsOf('t', 0)?.requests?.remaining).toBe(3);
    }
    world.endAll();
    expect(rowOf(world)).toMatchObject({ tasks: 0 });
  });

  test('take a limit away, and put it back, with a request under way', () => {
    const world = worldOf(configOf(SLOW), 9);
    world.submit(taskSpec(1, { tokens: 100 }));
    world.apply({ kind: 'config', config: configOf({}) });
    world.apply({ kind: 'config', config: configOf(SLOW) });
    world.submit(taskSpec(2, { tokens: 200 }));
    world.end(1, { kind: 'aborted' });
    expect(leftOf(world)).toEqual([9, 800, 1, 200]);
    world.end(2, { kind: 'aborted' });
    expect(leftOf(world)).toEqual(WHOLE);
  });
});

describe('limits of each tenant', () => {
  const each = { requestsPerMinute: 2 };

  test('hold for tenants without their own, one by one, and not for one that is to have none', () => {
    const config = configOf({}, { tenantLimits: each });
    const world = worldOf(config, 99);
    for (let id = 1; id <= 5; id++) world.submit(taskSpec(id));
    expect(world.outcomes.size, 'tenant t has no limits on purpose').toBe(0);
    for (let id = 6; id <= 10; id++) world.submit(taskSpec(id, { tenant: id % 2 === 0 ? 'u' : 'v' }));
    expect([...world.outcomes]).toMatchObject([[10, { cause: 'each tenant: 2 requests per minute' }]]);
  });
});

describe('a lesser answer', () => {
  const lesser = {
    how: 'model',
    name: 'small',
    model: 'small',
    needs: taskSpec(1).needs,
    workUs: S,
    firstByteWorkUs: S,
  } as const;
  const small = { ...MODEL, id: 'small' };
  /** Model `m` is switched off, so that whoever consented goes on as `small`. */
  const config = (limits: LimitsConfig, ofSmall: LimitsConfig): SchedulerConfig =>
    configOf(limits, {
      models: [
        { ...MODEL, limits: SLOW, off: true },
        { ...small, limits: ofSmall },
      ],
    });

  function smallWorld(limits: LimitsConfig, ofSmall: LimitsConfig): CheckedScheduler {
    const world = new CheckedScheduler(config(limits, ofSmall));
    const models = [{ model: 'm' }, { model: 'small' }];
    world.apply({ kind: 'node-registered', node: nodeSpec('a', { slots: 9, models }) });
    return world;
  }

  test('reserves anew, from the limits of its own model, and of its tenant once', () => {
    const world = smallWorld(SLOW, SLOW);
    world.submit(taskSpec(1, { tokens: 100, alternatives: [lesser] }));
    expect(world.outcomes.size).toBe(0);
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
    expect([leftOf(world, 'm'), leftOf(world, 'small')]).toEqual([WHOLE, [9, 900, 1, 100]]);
    world.end(1, { kind: 'aborted' });
    expect([leftOf(world), leftOf(world, 'small')]).toEqual([WHOLE, WHOLE]);
  });

  test('is none where its own model’s limits refuse, and then nothing stays reserved', () => {
    const world = smallWorld(SLOW, { requestsPerMinute: 1 });
    world.submit(taskSpec(1, { tokens: 100, alternatives: [lesser] }));
    expect(world.submit(taskSpec(2, { tokens: 100, alternatives: [lesser] }))).toMatchObject({
      reason: 'no-node',
    });
    expect(leftOf(world)).toEqual([9, 900, 1, 100]);
  });

  test('that needs no work uses nothing', () => {
    const world = smallWorld(SLOW, SLOW);
    expect(world.submit(taskSpec(1, { tokens: 100, alternatives: [{ how: 'default' }] }))).toMatchObject({
      kind: 'degraded',
    });
    expect([leftOf(world), leftOf(world, 'm')]).toEqual([WHOLE, WHOLE]);
  });

  test('does not stand in for a limit', () => {
    const world = smallWorld({ requestsPerMinute: 1 }, SLOW);
    for (const id of [1, 2]) world.submit(taskSpec(id, { alternatives: [lesser, { how: 'default' }] }));
    expect(world.outcomes.get(2)).toMatchObject({ reason: 'rate-limited' });
  });
});
