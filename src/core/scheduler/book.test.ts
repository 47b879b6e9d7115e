import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drawsOf } from '../../../test/support/depth.ts';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { FuzzPlayer, sequenceArbitrary, SMALL_BOUNDS } from '../../../test/support/fuzz.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../config/defaults.ts';
import type { LedgersView } from '../ledgers/index.ts';

/** What a task is pressed into at most; see sane.ts. */
const WORK_US_MAX = 1e12;

function worldOf(nodes = 1): CheckedScheduler {
  const world = new CheckedScheduler(defaultSchedulerConfig({ seed: 5, gates: { timeouts: 'off' } }));
  for (let i = 0; i < nodes; i++) world.apply({ kind: 'node-registered', node: nodeSpec(`n${i}`) });
  world.now = S;
  return world;
}

const ledgers = (world: CheckedScheduler): LedgersView => world.scheduler.ledgers(world.now);
const errorsOf = (world: CheckedScheduler): LedgersView['eta']['classes'][number] | undefined =>
  ledgers(world).eta.classes.find(({ className }) => className === 'normal');

describe('predictions', () => {
  test('that come true have no error worth telling', () => {
    const world = worldOf();
    world.submit(taskSpec(1));
    world.advance(S);
    world.end(1);
    const { admission, dispatch } = errorsOf(world) ?? {};
    expect(admission).toMatchObject({ samples: 1 });
    expect(admission?.p50).toBeLessThan(0.01);
    expect(dispatch?.p95).toBeLessThan(0.01);
  });

  test('twice too short and twice too long are the same error, and the bias tells which', () => {
    const short = worldOf();
    short.submit(taskSpec(1));
    short.advance(2 * S);
    short.end(1);
    const long = worldOf();
    long.submit(taskSpec(1));
    long.advance(S / 2);
    long.end(1);
    const errors = [short, long].map((world) => errorsOf(world)?.dispatch);
    for (const error of errors) expect(error?.p50).toBeCloseTo(1, 0);
    expect(errors[0]?.bias).toBeGreaterThan(1.5);
    expect(errors[1]?.bias).toBeLessThan(0.7);
  });

  test('of a stream are about its first byte', () => {
    const world = worldOf();
    world.submit(taskSpec(1, { stream: true, workUs: 10 * S, firstByteWorkUs: S }));
    world.advance(S);
    world.apply({ kind: 'attempt-first-byte', taskId: 1 });
    expect(errorsOf(world)?.admission?.p50).toBeLessThan(0.01);
    expect(errorsOf(world)?.dispatch).toBeNull();
  });

  test('that a deadline cut short count with the time that there was', () => {
    const world = worldOf();
    world.submit(taskSpec(1, { deadlineAt: world.now + 4 * S }));
    world.advance(5 * S);
    expect(errorsOf(world)?.admission?.p50).toBeGreaterThan(2.5);
  });

  test('tell their error to who asks why a request waits', () => {
    const world = worldOf();
    world.submit(taskSpec(1));
    world.advance(2 * S);
    world.end(1);
    world.submit(taskSpec(2));
    expect(world.scheduler.explain(2, world.now)?.etaError).toMatchObject({ samples: 1 });
  });
});

describe('times that refusals named', () => {
  test('are kept where who comes back at them is let in', () => {
    const world = new CheckedScheduler(
      defaultSchedulerConfig({ seed: 5, admission: { flowWaitMsMax: 1 }, gates: { timeouts: 'off' } }),
    );
    world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
    world.now = S;
    world.submit(taskSpec(1));
    world.submit(taskSpec(2));
    const refused = world.submit(taskSpec(3, { fingerprint: 'body' }));
    if (refused?.kind !== 'rejected') throw new Error('The gate lets it in');
    world.advance(refused.hint.afterUs);
    world.endAll();
    world.submit(taskSpec(4, { fingerprint: 'body' }));
    expect(ledgers(world).eta.hints).toEqual({ kept: 1, broken: 0 });
  });
});

describe('work', () => {
  test('that somebody got is useful, and nothing else', () => {
    const world = worldOf();
    world.submit(taskSpec(1));
    world.advance(S);
    world.end(1);
    expect(ledgers(world).work).toMatchObject({ usefulUs: S, wastedUs: 0, wastedRatio: 0 });
  });

  test('of a failed attempt is what its node had time for', () => {
    const world = worldOf(2);
    world.submit(taskSpec(1, { workUs: 4 * S }));
    world.advance(S);
    world.end(1, { kind: 'failed', failure: 'reset', retryable: true });
    expect(ledgers(world).work.byCause.failed).toBeCloseTo(S, -4);
    world.advance(10 * S);
    world.end(1, { kind: 'failed', failure: 'timeout', retryable: false });
    expect(ledgers(world).work.byCause['timed-out'], 'at most the whole').toBe(4 * S);
  });

  test('that a node refused is none', () => {
    const world = worldOf();
    world.submit(taskSpec(1));
    world.advance(S);
    world.end(1, { kind: 'failed', failure: 'refused', retryable: false });
    expect(ledgers(world).work.wastedUs).toBe(0);
  });

  test('is told apart by why nobody got it', () => {
    const world = worldOf(3);
    for (const id of [1, 2, 3]) world.submit(taskSpec(id, { workUs: 8 * S, deadlineAt: world.now + 12 * S }));
    world.advance(2 * S);
    world.apply({ kind: 'cancel', taskId: 1 });
    world.end(1, { kind: 'aborted' });
    world.advance(11 * S);
    world.end(2, { kind: 'aborted' });
    world.end(3);
    const { byCause } = ledgers(world).work;
    expect(byCause['client-left']).toBeCloseTo(2 * S, -4);
    expect([byCause.deadline, byCause.late]).toEqual([8 * S, 8 * S]);
    expect(ledgers(world).work.wastedRatio).toBe(1);
  });
});

test('round robin, which aborts nothing for a deadline, wastes what comes after it', () => {
  const world = new CheckedScheduler(defaultSchedulerConfig({ seed: 5, policy: 'round-robin' }));
  world.apply({ kind: 'node-registered', node: nodeSpec('n0') });
  world.now = S;
  for (const id of [1, 2, 3]) world.submit(taskSpec(id, { workUs: 2 * S, deadlineAt: world.now + 5 * S }));
  for (const id of [1, 2, 3]) {
    world.advance(2 * S);
    world.end(id);
  }
  const { usefulUs, byCause } = ledgers(world).work;
  expect([usefulUs, byCause.late]).toEqual([4 * S, 2 * S]);
});

test('whatever happens, the books hold finite numbers, and no more waste than was attempted', () => {
  fc.assert(
    fc.property(sequenceArbitrary({ absurd: true, shutdown: true, maxLength: 120 }), (steps) => {
      const world = new CheckedScheduler(defaultSchedulerConfig({ bounds: SMALL_BOUNDS, seed: 7 }));
      let attemptedUs = 0;
      world.onAssign = () => {
        attemptedUs += WORK_US_MAX;
      };
      new FuzzPlayer(world).play(steps);
      const { work, eta } = ledgers(world);
      const { byCause, ...sums } = work;
      for (const value of [...Object.values(byCause), ...Object.values(sums)]) {
        expect(Number.isFinite(value)).toBe(true);
        expect(value).toBeGreaterThanOrEqual(0);
      }
      expect(work.wastedUs).toBeLessThanOrEqual(attemptedUs);
      for (const { admission, dispatch } of eta.classes) {
        for (const error of [admission, dispatch]) {
          if (error !== null) expect(Number.isFinite(error.sum + error.p95 + error.bias)).toBe(true);
        }
      }
    }),
    { numRuns: drawsOf(60) },
  );
});
