import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import { saneMemory, saneNode, saneResult, saneTask } from './sane.ts';

const ABSURD = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -5, 1e308] as const;

/** Every number anywhere in the state. */
function numbersOf(value: unknown): number[] {
  if (typeof value === 'number') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(numbersOf);
}

function worldOf(): CheckedScheduler {
  const world = new CheckedScheduler(
    defaultSchedulerConfig({
      tenantLimits: { tokensPerMinute: 1_000_000 },
      models: [{ id: 'm', aliases: [], profile: { kind: 'embedding', fixedMs: 1, msPerToken: 1 } }],
    }),
  );
  world.apply({ kind: 'node-registered', node: nodeSpec('a') });
  return world;
}

describe('the scheduler', () => {
  test.each(ABSURD)('keeps every counter finite when a client sends %d for sizes', (value) => {
    const world = worldOf();
    world.submit(taskSpec(1, { workUs: value, bytes: value, firstByteWorkUs: value, deadlineWished: false }));
    world.submit(taskSpec(2, { bytes: value, tokens: value, promptTokens: value }));
    world.endAll();
    for (const number of numbersOf(world.scheduler.dump(0))) expect(Number.isFinite(number)).toBe(true);
  });

  test.each(ABSURD)('keeps every counter finite when a node reports %d tokens', (value) => {
    const world = worldOf();
    world.submit(taskSpec(1));
    world.advance(S);
    world.end(1, { kind: 'ok', usage: { promptTokens: value, outputTokens: value } });
    world.submit(taskSpec(2, { tokens: 9 }));
    world.end(2, { kind: 'aborted', passed: { promptTokens: value, outputTokens: value } });
    for (const number of numbersOf(world.scheduler.dump(world.now)))
      expect(Number.isFinite(number)).toBe(true);
    const [view] = world.scheduler.nodes(world.now);
    expect(view?.rates[0]?.rate).toBeGreaterThan(0);
  });
});

describe('saneTask', () => {
  test.each(ABSURD)('takes %d tries for a number that means something', (retryCount) => {
    const { retryCount: sane } = saneTask(taskSpec(1, { retryCount }), 0);
    expect(sane).toBeGreaterThanOrEqual(0);
    expect(sane).toBeLessThanOrEqual(100);
  });
});

describe('what is sane already', () => {
  test('is passed on as it is, without a copy', () => {
    const task = taskSpec(1);
    const node = nodeSpec('a');
    const failed = { kind: 'failed', failure: 'reset', retryable: true } as const;
    const served = { kind: 'ok', usage: { promptTokens: 5 } } as const;
    expect(saneTask(task, 0)).toBe(task);
    expect(saneNode(node)).toBe(node);
    expect(saneResult(failed)).toBe(failed);
    expect(saneResult(served)).toBe(served);
  });
});

describe('saneMemory', () => {
  test('bounds the rest of an ejection and leaves out rates that are none', () => {
    const rates = [
      { model: '', rate: 0.5, observations: 9 },
      { model: 'm', rate: 0, observations: 9 },
      { model: 'x', rate: Number.NaN, observations: 9 },
      { model: 'y', rate: 1, observations: Number.NaN },
    ];
    const memory = { cordoned: true, draining: false, ejectedForUs: 1e300, ejections: Number.NaN, rates };
    expect(saneMemory(memory, 60 * S)).toEqual({
      cordoned: true,
      draining: false,
      ejectedForUs: 60 * S,
      ejections: 0,
      rates: [{ model: '', rate: 0.5, observations: 9 }],
    });
  });
});
