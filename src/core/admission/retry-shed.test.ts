/** Retries before their time are shed before first attempts; who keeps to the time it was told finds its place. */
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { Outcome } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';

/** One node of one task per second; the gate of these tasks allows five seconds. */
class World extends CheckedScheduler {
  #id = 1;

  constructor(overrides: SchedulerOverrides = {}) {
    super(defaultSchedulerConfig(overrides));
    this.apply({ kind: 'node-registered', node: nodeSpec('a') });
  }

  /** A task of some user, equal in body to that user's others. */
  ask(user: string, change: Partial<TaskSpec> = {}): Outcome | undefined {
    return this.submit(
      taskSpec(this.#id++, { fingerprint: user, deadlineAt: this.now + 600 * S, ...change }),
    );
  }

  /** First attempts of many, until this much work waits. */
  fill(tasks: number): void {
    for (let i = 0; this.accounts.queued < tasks; i++) this.ask(`filler ${this.#id} ${i}`);
  }

  gate(name: string): { readonly refused: number; readonly wouldRefuse: number } | undefined {
    return this.scheduler.gates().find(({ gate }) => gate === name);
  }
}

describe('a repeated request', () => {
  test('by the client’s own count is shed where a first attempt still waits', () => {
    const world = new World();
    world.fill(2);
    expect(world.ask('again', { retryCount: 1 })).toMatchObject({
      kind: 'rejected',
      reason: 'shed',
      hint: { retryable: true },
      cause: expect.stringContaining('repeated'),
    });
    expect(world.ask('first', { retryCount: 0 })).toBeUndefined();
    expect(world.gate('retry-shed')).toMatchObject({ refused: 1 });
  });

  test('by its body is shed until the time that it was told, and is told the same time again', () => {
    const world = new World();
    world.fill(6);
    const told = world.ask('ada') as Extract<Outcome, { kind: 'rejected' }>;
    expect(told.reason).toBe('deadline-infeasible');
    world.advance(S / 2);
    expect(world.ask('ada')).toMatchObject({
      reason: 'shed',
      hint: { afterUs: told.hint.afterUs - S / 2 },
    });
    expect(world.ask('bob', { tenant: 'other' }), 'another tenant’s first attempt').toBeUndefined();
  });

  test('is let in while little waits: a calm gateway sheds nobody', () => {
    const world = new World();
    world.fill(1);
    expect(world.ask('again', { retryCount: 3 })).toBeUndefined();
  });

  test('of the first class is treated like its first attempts', () => {
    const world = new World();
    const critical = { className: 'critical', deadlineAt: 10 * S };
    for (let i = 0; i < 3; i++) world.ask(`critical ${i}`, critical);
    expect(world.ask('again', { ...critical, retryCount: 1 })).toBeUndefined();
  });

  test('takes an idle node that does it in time, whatever waits', () => {
    const world = new World();
    const big = { workUs: 8 * S, deadlineAt: 30 * S };
    for (const user of ['runs', 'waits']) world.ask(user, big);
    // Too slow for what waits, and fast enough for a small one.
    world.apply({ kind: 'node-registered', node: nodeSpec('slow', { hardware: 'T4' }) });
    expect(world.accounts).toMatchObject({ running: 1, queued: 1 });
    expect(world.ask('again', { workUs: S / 10, retryCount: 1 })).toBeUndefined();
    expect(world.accounts).toMatchObject({ running: 2, queued: 1 });
    expect(world.ask('and again', { workUs: S / 10, retryCount: 1 })).toMatchObject({ reason: 'shed' });
  });

  test('is let in again once what waits has left, though nothing was ever completed', () => {
    const world = new World();
    for (let i = 0; i < 4; i++) world.ask(`waits ${i}`, { deadlineAt: world.now + 20 * S });
    expect(world.ask('again', { retryCount: 1 })).toMatchObject({ reason: 'shed' });
    world.advance(21 * S);
    expect(world.accounts).toMatchObject({ served: 0, queued: 0 });
    expect(world.ask('again', { retryCount: 1 })).toBeUndefined();
  });

  test('is let in and counted in shadow, and not even looked at when the gate is off', () => {
    const shadow = new World({ gates: { 'retry-shed': 'shadow' } });
    shadow.fill(2);
    expect(shadow.ask('again', { retryCount: 1 })).toBeUndefined();
    expect(shadow.gate('retry-shed')).toMatchObject({ refused: 0, wouldRefuse: 1 });
    const off = new World({ gates: { 'retry-shed': 'off' } });
    off.fill(2);
    expect(off.ask('again', { retryCount: 1 })).toBeUndefined();
    expect(off.gate('retry-shed')).toMatchObject({ refused: 0, wouldRefuse: 0 });
  });

  test('costs no fingerprint while nobody has been refused', () => {
    const world = new World();
    world.fill(3);
    let asked = 0;
    const spec = {
      ...taskSpec(1_000),
      get fingerprint(): string {
        asked += 1;
        return 'body';
      },
    };
    expect(world.submit(spec)).toBeUndefined();
    expect(asked).toBe(0);
  });
});

describe('places that were promised', () => {
  test('follow each other as fast as half of what the flow is served: the rest is for first attempts', () => {
    const world = new World();
    world.fill(6);
    const told = ['a', 'b', 'c'].map((user) => world.ask(user));
    const waits = told.map((outcome) =>
      outcome !== undefined && 'hint' in outcome ? outcome.hint.afterUs : 0,
    );
    expect(waits).toEqual([3.5 * S, 5.5 * S, 7.5 * S]);
  });

  test('are kept for those who were told: a first attempt waits with them only up to half of the gate', () => {
    const world = new World();
    world.fill(6);
    world.ask('ada');
    for (let task = 1; task <= 3; task++) {
      world.advance(S);
      world.end(task);
    }
    expect(world.ask('stranger'), 'three seconds wait').toMatchObject({ reason: 'deadline-infeasible' });
    world.advance(S / 2);
    expect(world.ask('ada'), 'she kept to her time').toBeUndefined();
  });

  test('are kept although the queue is full when their time comes: who keeps to a promise draws no lots', () => {
    const world = new World();
    world.fill(6);
    const told = world.ask('ada') as Extract<Outcome, { kind: 'rejected' }>;
    world.advance(told.hint.afterUs);
    expect(world.ask('stranger'), 'nothing was served meanwhile').toMatchObject({ kind: 'rejected' });
    expect(world.ask('ada')).toBeUndefined();
  });

  test('hold nobody back once their time is over, though nobody came', () => {
    const world = new World();
    world.fill(6);
    world.ask('ada');
    world.ask('bob');
    for (let task = 1; task <= 3; task++) {
      world.advance(S);
      world.end(task);
    }
    world.advance(5 * S);
    expect(world.ask('stranger')).toBeUndefined();
  });

  test('lie a minute ahead at most; beyond it the estimate is told and nothing is promised', () => {
    const world = new World();
    world.fill(6);
    const waits = Array.from({ length: 70 }, (_, i) => {
      const outcome = world.ask(`user ${i}`);
      return outcome !== undefined && 'hint' in outcome ? outcome.hint.afterUs / S : 0;
    });
    expect(waits[25]).toBe(53.5);
    const [beyond = 0, ...others] = waits.slice(29);
    expect(beyond).toBe(61.5);
    expect(new Set(others)).toEqual(new Set([beyond]));
  });

  test('are not kept for who was content with a lesser answer', () => {
    const world = new World();
    world.fill(6);
    const outcome = world.ask('ada', { alternatives: [{ how: 'default' }] });
    expect(outcome).toMatchObject({ kind: 'degraded' });
    expect(world.ask('bob')).toMatchObject({ hint: { afterUs: 3.5 * S } });
  });

  test('are none while the gate is in shadow', () => {
    const world = new World({ gates: { 'retry-shed': 'shadow' } });
    world.fill(6);
    const waits = ['a', 'b'].map((user) => world.ask(user));
    for (const outcome of waits) expect(outcome).toMatchObject({ hint: { afterUs: 3.5 * S } });
    world.advance(S);
    world.end(1);
    expect(world.ask('stranger')).toBeUndefined();
  });
});

describe('a refusal that is not for queueing', () => {
  test('tells when a class returns that the gateway’s survival refuses, the higher ones first', () => {
    const world = new World();
    world.apply({ kind: 'survival', shedClasses: 2 });
    expect(world.ask('n')).toMatchObject({ reason: 'self-protection', hint: { afterUs: 2 * S } });
    expect(world.ask('l', { className: 'low' })).toMatchObject({ hint: { afterUs: 4 * S } });
  });

  test('by a shutdown tells when what runs will be done and the next gateway there, one after the other', () => {
    const world = new World();
    world.ask('runs', { workUs: 8 * S });
    world.ask('waits');
    world.ask('waits too');
    world.apply({ kind: 'shutdown' });
    expect(world.outcomes.get(2)).toMatchObject({ reason: 'shutting-down', hint: { afterUs: 10 * S } });
    expect(world.outcomes.get(3)).toMatchObject({ hint: { afterUs: 11 * S } });
    expect(world.ask('late')).toMatchObject({ reason: 'shutting-down', hint: { afterUs: 12 * S } });
  });

  test('without any node tells when the fleet is looked at again', () => {
    const models = [{ id: 'm', aliases: [], profile: { kind: 'generic', meanMs: 1_000 } }] as const;
    const world = new CheckedScheduler(defaultSchedulerConfig({ models }));
    expect(world.submit(taskSpec(1))).toMatchObject({ reason: 'no-node', hint: { afterUs: 10 * S } });
  });
});
