import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { DEFAULT_LADDER } from '../config/defaults.ts';
import { noQueue } from './evidence.ts';
import { ModelLadder } from './model-ladder.ts';

const CALM = { memoryUse: undefined, pressure: 0 };
const FULL = { memoryUse: 0.9, pressure: 0 };
const LONG = { memoryUse: undefined, pressure: 2 };

class Run {
  readonly ladder = new ModelLadder('m', 0);
  /** Second and stage of every change. */
  readonly changes: [number, number][] = [];
  now = 0;

  /** Samples every half second; `each` is called before each. */
  samples(seconds: number, of: typeof CALM | typeof FULL, each?: () => void): this {
    for (let i = 0; i < seconds * 2; i++) {
      each?.();
      const sample = {
        memoryUse: of.memoryUse,
        queue: { ...noQueue(), pressure: of.pressure },
        sinceUs: S / 2,
      };
      if (this.ladder.sample(sample, this.now, DEFAULT_LADDER))
        this.changes.push([this.now / S, this.ladder.stage]);
      this.now += S / 2;
    }
    return this;
  }

  misses(perSample: number): () => void {
    return () => {
      for (let i = 0; i < 100; i++) this.ladder.window.add(i >= perSample, this.now);
    };
  }

  get stages(): number[] {
    return this.changes.map(([, stage]) => stage);
  }
}

describe('ModelLadder', () => {
  test('goes to stage 1 when memory was nearly full for thirty seconds, and no further', () => {
    const run = new Run().samples(30, FULL);
    expect(run.changes, 'not before').toEqual([]);
    run.samples(300, FULL);
    expect(run.changes).toEqual([[30, 1]]);
  });

  test('goes to stage 2 by the queue alone: memory that is unknown or low never blocks it', () => {
    for (const memoryUse of [undefined, 0]) {
      const run = new Run();
      for (let second = 0; second < 60; second++) {
        run.samples(1, { memoryUse: memoryUse as number, pressure: 2 });
      }
      expect(run.stages, String(memoryUse)).toEqual([1, 2]);
    }
  });

  test('passes through the stages on its way up, a second in each', () => {
    const run = new Run();
    run.samples(60, LONG, run.misses(10));
    expect(run.stages).toEqual([1, 2, 3]);
    const [first, second, third] = run.changes.map(([at]) => at) as [number, number, number];
    expect([second - first, third - second]).toEqual([1, 1]);
  });

  test('never gives up the others while the first class keeps its own deadlines', () => {
    const run = new Run();
    const others = (): void => {
      for (let i = 0; i < 10; i++) run.ladder.noteDeadline(0, true, run.now);
      for (let i = 0; i < 90; i++) run.ladder.noteDeadline(1, i >= 20, run.now);
    };
    run.samples(60, LONG, others);
    expect(run.stages, 'a fifth of the second class misses').toEqual([1, 2]);
    run.samples(60, LONG, () => run.ladder.noteDeadline(0, false, run.now));
    expect(run.stages).toEqual([1, 2, 3]);
  });

  test('never goes to stage 3 by missed deadlines without a queue', () => {
    const run = new Run();
    run.samples(120, CALM, run.misses(50));
    run.samples(120, FULL, run.misses(50));
    expect(run.stages).toEqual([1]);
  });

  test('never goes to stage 3 by a few misses, or by many that are over', () => {
    const few = new Run();
    few.ladder.window.add(false, 0);
    for (let i = 0; i < 3; i++) few.ladder.window.add(false, 0);
    expect(few.samples(60, LONG).stages, 'four misses of four').toEqual([1, 2]);
    const past = new Run();
    past.samples(5, CALM, past.misses(100)).samples(30, CALM, past.misses(0));
    expect(past.ladder.window.ratio(past.now)).toBeGreaterThan(0.1);
    expect(past.samples(60, LONG, past.misses(0)).stages).toEqual([1, 2]);
  });

  test('holds a stage while evidence stays between the thresholds', () => {
    const run = new Run().samples(30, LONG);
    run.samples(600, { memoryUse: undefined, pressure: 0.3 });
    expect(run.stages).toEqual([1, 2]);
    const memory = new Run().samples(40, FULL).samples(600, { memoryUse: 0.76, pressure: 0 } as typeof FULL);
    expect(memory.stages).toEqual([1]);
  });

  test('goes down one stage at a time when evidence is gone, each stage with a lease of its own', () => {
    const run = new Run();
    run.samples(60, LONG, run.misses(10));
    const calmFrom = run.now / S;
    run.samples(200, CALM);
    expect(run.stages).toEqual([1, 2, 3, 2, 1, 0]);
    const [two, one, none] = run.changes.slice(3).map(([at]) => at) as [number, number, number];
    expect([one - two, none - one]).toEqual([20, 20]);
    expect(none - calmFrom, 'all of it within a bounded time, without any completed work').toBeLessThan(90);
  });

  test('ends stage 3 by itself while the queue still holds stage 2', () => {
    const run = new Run();
    run.samples(60, LONG, run.misses(10));
    const lastMiss = run.now / S;
    run.samples(120, LONG, run.misses(0));
    expect(run.stages).toEqual([1, 2, 3, 2]);
    expect((run.changes.at(-1)?.[0] ?? 0) - lastMiss).toBeLessThan(70);
  });

  test('is armed again for stage 3 by misses that begin anew', () => {
    const run = new Run();
    run.samples(60, LONG, run.misses(10)).samples(120, LONG, run.misses(0)).samples(60, LONG, run.misses(10));
    expect(run.stages).toEqual([1, 2, 3, 2, 3]);
  });

  test('lets a gap shorter than the lease pass without a change', () => {
    const run = new Run().samples(30, LONG);
    for (let i = 0; i < 20; i++) run.samples(10, CALM).samples(20, LONG);
    expect(run.stages).toEqual([1, 2]);
  });

  test('lets the first and then each hundredth of a refused class pass', () => {
    const ladder = new ModelLadder('m', 0);
    const passed = Array.from({ length: 1_000 }, () => ladder.trickles(1));
    expect(passed.filter(Boolean)).toHaveLength(10);
    expect([passed[0], passed[100], passed[99]]).toEqual([true, true, false]);
    expect(ladder.trickles(2), 'each class has its own').toBe(true);
  });
});
