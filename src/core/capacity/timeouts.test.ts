/** The rules by which bounds on silence are learned, without a scheduler: what lengthens one, and what must not. */
import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import {
  FIRST_BYTE,
  IDLE,
  NodePatience,
  STRETCH_MAX,
  TIMED_MODELS_MAX,
  Timeouts,
  WHOLE,
  type WaitQuestion,
} from './timeouts.ts';

const MINUTE = 60 * S;
const UNKNOWN = { rate: 1, span: 1_000 };
const KNOWN = { rate: 0.5, span: 8 };

/** Nodes of one model, each with its own clockless way of being slow. */
class World {
  readonly timeouts: Timeouts = new Timeouts();
  readonly nodes: readonly NodePatience[];
  now = 0;

  constructor(nodes: number) {
    this.nodes = Array.from({ length: nodes }, () => new NodePatience());
  }

  node(at: number): NodePatience {
    return this.nodes[at] as NodePatience;
  }

  asked(at: number, change: Partial<WaitQuestion> = {}): WaitQuestion {
    return {
      model: 'm',
      modelNumber: -1,
      workUs: S,
      patience: this.node(at),
      prior: UNKNOWN,
      inflight: 1,
      slots: 1,
      ...change,
    };
  }

  limit(at: number, change: Partial<WaitQuestion> = {}): number {
    return this.timeouts.limitUs(WHOLE, this.asked(at, change), this.now);
  }

  /** A success of a second's work that took `factor` seconds, a second after the last. */
  serve(
    at: number,
    factor: number,
    change: { inflight?: number; limitUs?: number; model?: string } = {},
  ): void {
    const { model = 'm', inflight = 1, limitUs = 0 } = change;
    this.now += S;
    const sample = { workUs: S, elapsedUs: factor * S, inflight, limitUs };
    this.timeouts.learn(WHOLE, { ...sample, model, modelNumber: -1, patience: this.node(at), now: this.now });
  }

  /** So many rounds over all nodes, each as slow as told. */
  serveAll(rounds: number, factors: readonly number[]): void {
    for (let round = 0; round < rounds; round++) factors.forEach((factor, at) => this.serve(at, factor));
  }
}

describe('a bound on silence', () => {
  test('follows the 99th percentile of the model times the time that the node usually takes', () => {
    const world = new World(2);
    for (let i = 0; i < 400; i++) {
      world.serve(0, i % 20 === 0 ? 3 : 1);
      world.serve(1, i % 20 === 10 ? 12 : 4);
    }
    const [fast, slow] = [world.limit(0), world.limit(1)];
    expect(fast / S).toBeGreaterThan(2.5);
    expect(fast / S).toBeLessThan(4.5);
    expect(slow / fast).toBeGreaterThan(3);
    expect(slow / fast).toBeLessThan(5);
  });

  test('grows with the size of the task, which is learned by octave', () => {
    const world = new World(1);
    world.serveAll(100, [1]);
    expect(world.limit(0, { workUs: 8 * S }) / world.limit(0)).toBeGreaterThan(8);
  });

  test('is four times the usual until a size was seen often enough', () => {
    const world = new World(1);
    world.serveAll(30, [1]);
    expect(world.limit(0)).toBeCloseTo(4 * S, -3);
    world.serveAll(100, [1]);
    expect(world.limit(0)).toBeLessThan(1.5 * S);
  });

  test('is none before unknown hardware was measured, and the prior within its span for known hardware', () => {
    const world = new World(1);
    expect(world.limit(0)).toBe(Number.POSITIVE_INFINITY);
    expect(world.limit(0, { prior: KNOWN })).toBe(4 * 8 * 2 * S);
  });

  test('follows the tasks in flight: beyond what was seen, a node does no more in all than it did there', () => {
    const world = new World(1);
    world.serveAll(100, [1]);
    expect(world.limit(0, { inflight: 16, slots: 64 }) / world.limit(0)).toBeCloseTo(32, 1);
    for (let i = 0; i < 100; i++) world.serve(0, 4, { inflight: 32 });
    expect(world.limit(0, { inflight: 16, slots: 64 }) / world.limit(0)).toBeLessThan(5);
  });
});

describe('slowness does not lengthen its own timeout', () => {
  test('one node of three that becomes ten times slower keeps its bound', () => {
    const world = new World(3);
    world.serveAll(200, [1, 1, 1]);
    const before = world.limit(2);
    for (let minute = 0; minute < 60; minute++) world.serveAll(20, [1, 1, 10]);
    expect(world.limit(2)).toBeLessThan(2.5 * before);
    expect(world.limit(0)).toBeLessThan(2.5 * before);
  });

  test('one that becomes slower step by step keeps it too', () => {
    const world = new World(3);
    world.serveAll(200, [1, 1, 1]);
    const before = world.limit(2);
    for (let step = 0; step < 40; step++) world.serveAll(20, [1, 1, 1.1 ** step]);
    expect(world.limit(2)).toBeLessThan(2.5 * before);
  });

  test('when all are slower their bounds follow, by twice in ten minutes and no faster', () => {
    const world = new World(3);
    world.serveAll(200, [1, 1, 1]);
    const before = world.limit(0);
    const endAt = world.now + 10 * MINUTE;
    while (world.now < endAt) world.serveAll(1, [10, 10, 10]);
    expect(world.limit(0)).toBeLessThan(2.5 * before);
    for (let i = 0; i < 3_000; i++) world.serveAll(1, [10, 10, 10]);
    expect(world.limit(0)).toBeGreaterThan(7 * before);
  });

  test('the percentile itself at most doubles in ten minutes', () => {
    const world = new World(1);
    world.serveAll(200, [1]);
    const before = world.limit(0);
    for (let i = 0; i < 500; i++) world.serveAll(1, [i % 20 === 0 ? 5 : 1]);
    expect(world.limit(0)).toBeLessThanOrEqual(2 * before);
    expect(world.limit(0)).toBeGreaterThan(1.5 * before);
  });

  test('a success that came near its bound teaches nothing', () => {
    const world = new World(2);
    world.serveAll(200, [1, 1]);
    const before = world.limit(0);
    for (let i = 0; i < 1_000; i++) {
      world.serve(0, 8, { limitUs: 10 * S });
      world.limit(0);
    }
    expect(world.limit(0)).toBe(before);
  });
});

describe('what is really slower is not cut for ever', () => {
  test('each cut of a node is counted once for all that it fell silent on, up to eight times the bound', () => {
    const node = new NodePatience();
    for (const startedAt of [1, 2, 3]) node.cut(startedAt, 10);
    expect(node.stretch).toBe(1);
    for (let i = 1; i <= 5; i++) node.cut(100 * i, 100 * i + 50);
    expect(node.stretch).toBe(STRETCH_MAX);
  });

  test('a node that serves within its usual bound again is as before', () => {
    const world = new World(1);
    world.serveAll(100, [1]);
    const before = world.limit(0);
    world.node(0).cut(world.now, world.now + S);
    world.node(0).served(world.now + 2 * S, true, world.now + 3 * S);
    expect([world.node(0).stretch, world.limit(0)]).toEqual([0, before]);
  });

  test('one that serves beyond it is taken as it is, from its next tasks on', () => {
    const world = new World(2);
    world.serveAll(100, [1, 1]);
    world.node(1).cut(world.now, world.now + S);
    world.node(1).served(world.now + 2 * S, false, world.now + 3 * S);
    world.serveAll(30, [1, 12]);
    expect(world.limit(1) / world.limit(0)).toBeGreaterThan(8);
  });

  test('a size that is cut on two nodes in turn is learned to take so long; on one node alone it is not', () => {
    const world = new World(2);
    world.serveAll(100, [1, 1]);
    const before = world.limit(0);
    const cut = (at: number): void =>
      world.timeouts.learnCut(WHOLE, { ...world.asked(at), nodeOrder: at, elapsedUs: 5 * S });
    for (let i = 0; i < 20; i++) cut(0);
    expect(world.limit(0)).toBe(before);
    for (let i = 0; i < 20; i++) cut(i % 2);
    expect(world.limit(0)).toBeGreaterThan(1.9 * before);
  });
});

describe('bounds inside streams', () => {
  test('are learned from the longest silence of streams that ended well', () => {
    const world = new World(1);
    world.serveAll(50, [1]);
    const idle = (): number => world.timeouts.limitUs(IDLE, world.asked(0), world.now);
    expect(idle()).toBe(Number.POSITIVE_INFINITY);
    const silence = { workUs: S, elapsedUs: S / 10, inflight: 1, limitUs: 0 };
    const sample = { ...silence, model: 'm', modelNumber: -1, patience: world.node(0), now: world.now };
    for (let i = 0; i < 60; i++) world.timeouts.learnSilence(sample);
    expect(idle()).toBeGreaterThan(S / 10);
    expect(idle()).toBeLessThan(S / 7);
    expect(world.timeouts.limitUs(FIRST_BYTE, world.asked(0), world.now)).toBe(Number.POSITIVE_INFINITY);
  });
});

test('times of more models than the bound share one record', () => {
  const world = new World(1);
  for (let i = 0; i < TIMED_MODELS_MAX + 50; i++) world.serve(0, 1, { model: `m${i}` });
  expect(world.timeouts.models).toBe(TIMED_MODELS_MAX);
});
