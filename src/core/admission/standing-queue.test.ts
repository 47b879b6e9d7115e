/** A flow of which much is refused all the time keeps a short queue: queues are for bursts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CheckedScheduler } from '../../../test/support/checked-scheduler.ts';
import { drawsOf } from '../../../test/support/depth.ts';
import { nodeSpec, S, taskSpec } from '../../../test/support/specs.ts';
import { defaultSchedulerConfig, type SchedulerOverrides } from '../config/defaults.ts';
import type { Outcome } from '../request/outcome.ts';
import type { TaskSpec } from '../request/task.ts';
import { type Arrivals, type At, keptShareOf, noteArrival, refusedShareOf } from './standing-queue.ts';

/** One node of one task per second, of which every whole second one ends. The usual gate is five seconds. */
class World extends CheckedScheduler {
  #id = 1;
  readonly #running: number[] = [];

  constructor(overrides: SchedulerOverrides = {}) {
    super(
      defaultSchedulerConfig({
        ...overrides,
        gates: { 'retry-shed': 'off', ladder: 'off', ...overrides.gates },
      }),
    );
    this.onAssign = (taskId) => void this.#running.push(taskId);
    this.apply({ kind: 'node-registered', node: nodeSpec('a') });
  }

  ask(change: Partial<TaskSpec> = {}): Outcome | undefined {
    return this.submit(
      taskSpec(this.#id++, {
        deadlineAt: this.now + (change.className === 'critical' ? 40 : 600) * S,
        ...change,
      }),
    );
  }

  /** So many arrivals per second, one after the other, while a task per second ends. */
  offer(perSecond: number, seconds: number, change: Partial<TaskSpec> = {}): void {
    for (let second = 0; second < seconds; second++) {
      for (let i = 0; i < perSecond; i++) {
        this.ask(change);
        this.advance(Math.floor(S / perSecond));
      }
      this.endOne();
    }
  }

  get lastId(): number {
    return this.#id - 1;
  }

  rest(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.advance(S);
      this.endOne();
    }
  }

  endOne(): void {
    const task = this.#running.shift();
    if (task !== undefined) this.end(task);
  }

  /** How many get in at one instant, beside those who wait. */
  burst(change: Partial<TaskSpec> = {}): number {
    for (let letIn = 0; ; letIn++) if (this.ask(change) !== undefined) return letIn;
  }
}

/** The rules as shipped, or with another share, at an instant. */
function at(now: number, admission: SchedulerOverrides['admission'] = {}): At {
  return { now, config: defaultSchedulerConfig({ admission }) };
}

/** Arrivals ten times a second, of which every `nth` is refused. */
function arrivals(seconds: number, nth: number): Arrivals {
  const flow = { refusedShare: 0, arrivedAt: 0 };
  const { config } = at(0);
  for (let i = 1; i <= seconds * 10; i++) noteArrival(flow, i % nth === 0, { now: (i * S) / 10, config });
  return flow;
}

describe('the refused share', () => {
  test('is that of the arrivals of the last 20 s or so', () => {
    expect(refusedShareOf(arrivals(120, 2), at(120 * S))).toBeCloseTo(0.5, 1);
    expect(refusedShareOf(arrivals(120, 1), at(120 * S))).toBeCloseTo(1, 2);
    expect(refusedShareOf(arrivals(14, 1), at(14 * S))).toBeCloseTo(0.5, 1);
  });

  test('of arrivals in one instant is that of the first of them', () => {
    const flow = { refusedShare: 0, arrivedAt: 100 * S };
    noteArrival(flow, false, at(101 * S));
    for (let i = 0; i < 1_000; i++) noteArrival(flow, true, at(101 * S));
    expect(refusedShareOf(flow, at(101 * S))).toBe(0);
  });

  test('is no more than a fifth after a single refusal, however long nobody came before', () => {
    const flow = { refusedShare: 0, arrivedAt: 0 };
    noteArrival(flow, true, at(3_600 * S));
    expect(refusedShareOf(flow, at(3_600 * S))).toBe(0.2);
  });

  test('is remembered four times as long as a queue may be', () => {
    const flow = { refusedShare: 0.8, arrivedAt: 0 };
    expect(refusedShareOf(flow, at(2 * S, { flowWaitMsMax: 500 }))).toBe(0.4);
  });

  test('halves in 20 s without arrivals', () => {
    expect(refusedShareOf(arrivals(1_000, 1), at(1_020 * S))).toBeCloseTo(0.5, 2);
  });
});

describe('the kept share', () => {
  const keptAt = (refusedShare: number, refusedShareMax: number): number =>
    keptShareOf({ refusedShare, arrivedAt: 0 }, at(0, { refusedShareMax }));

  test('is the whole of the gate up to the configured share, and falls steadily from there to nothing', () => {
    expect([0, 0.1, 0.2].map((share) => keptAt(share, 0.2))).toEqual([1, 1, 1]);
    expect(keptAt(0.201, 0.2)).toBeCloseTo(1, 2);
    expect(keptAt(0.6, 0.2)).toBeCloseTo(0.25, 10);
    expect(keptAt(1, 0.2)).toBe(0);
  });

  test('is the whole of it at 1, whatever is refused, and of a flow that never waited', () => {
    expect(keptAt(1, 1)).toBe(1);
    expect(keptShareOf(undefined, at(0))).toBe(1);
  });
});

describe('the queue of a flow', () => {
  const WHOLE = 6;

  test('is kept short while most of the flow is refused, and the refusal tells so', () => {
    const world = new World();
    world.offer(4, 60);
    expect(world.accounts.queued).toBeLessThanOrEqual(2);
    world.burst();
    expect(world.outcomes.get(world.lastId)).toMatchObject({
      reason: 'deadline-infeasible',
      cause: expect.stringMatching(
        /^7\d % of this flow was refused in the last 20 s, so its queue is kept at \d+ % /,
      ),
    });
  });

  test('of the first class is kept short as well', () => {
    const world = new World();
    world.offer(4, 60, { className: 'critical' });
    expect(world.accounts.queued, 'of ten').toBeLessThanOrEqual(3);
  });

  test('stays as long as the gate allows where the configuration says so, or the gate refuses nothing', () => {
    const asked = new World({ admission: { refusedShareMax: 1 } });
    asked.offer(4, 60);
    expect(asked.accounts.queued).toBeGreaterThanOrEqual(WHOLE - 1);
    const shadow = new World({ gates: { 'flow-wait': 'shadow' } });
    shadow.offer(4, 60);
    const [gate] = shadow.scheduler.gates().filter(({ gate: name }) => name === 'flow-wait');
    expect(gate?.wouldRefuse).toBeLessThan(240);
    expect(shadow.accounts.rejected).toBe(0);
  });

  test('has room for who was told a time and comes at it, as much as the whole gate has', () => {
    const world = new World();
    world.offer(20, 60);
    // From now on those who are refused are told a place in line.
    world.apply({ kind: 'config', config: defaultSchedulerConfig({ gates: { ladder: 'off' } }) });
    world.burst();
    const refusal = world.ask({ fingerprint: 'told' });
    const hint = refusal !== undefined && 'hint' in refusal ? refusal.hint.afterUs : 0;
    expect(hint).toBeGreaterThan(0);
    world.advance(hint);
    world.burst();
    expect(world.ask(), 'somebody new').toMatchObject({ reason: 'deadline-infeasible' });
    expect(world.ask({ fingerprint: 'told' })).toBeUndefined();
  });

  test('keeps no other tenant short', () => {
    const world = new World();
    world.offer(4, 60);
    expect(world.burst({ tenant: 'other' })).toBeGreaterThanOrEqual(WHOLE / 2);
  });

  test('may be long again by itself once nobody comes for a minute', () => {
    const world = new World();
    world.offer(4, 60);
    world.rest(5);
    const early = world.burst();
    world.rest(80);
    expect(world.burst()).toBe(WHOLE + 1);
    expect(early).toBeLessThan(WHOLE);
  });

  test('holds each of several bursts in full', () => {
    const world = new World();
    const held = Array.from({ length: 5 }, () => {
      const queued = world.burst();
      for (let i = 0; i < 100; i++) world.ask();
      world.rest(10);
      return queued;
    });
    expect(held).toEqual(held.map(() => WHOLE + 1));
  });

  test('lets one wait where none does, and one start where the node is idle, whatever was refused before', () => {
    const step = fc.record({
      arrivals: fc.integer({ min: 0, max: 6 }),
      gapMs: fc.integer({ min: 0, max: 900 }),
    });
    fc.assert(
      fc.property(fc.array(step, { minLength: 100, maxLength: 300 }), (steps) => {
        const world = new World();
        for (const [index, { arrivals: count, gapMs }] of steps.entries()) {
          for (let i = 0; i < count; i++) {
            const isFree = world.accounts.queued === 0;
            const outcome = world.ask();
            if (isFree) expect(outcome).toBeUndefined();
          }
          world.advance(gapMs * 1_000);
          if (index % 2 === 0) world.endOne();
        }
        expect(world.accounts.rejected).toBeGreaterThan(0);
      }),
      { numRuns: drawsOf(50) },
    );
  });
});
