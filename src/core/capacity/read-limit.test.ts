import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { ReadLimit } from './read-limit.ts';

const MAX = 256;

/** An engine that does so many at once, read each second, to which as many are sent as the limit allows. */
class Engine {
  readonly limit = new ReadLimit(MAX);
  inflight = 0;
  /** Of others: they are in its places and wait as ours do. */
  foreign = 0;
  #second = 0;

  /** A second with so much demand and so many places, in which so many of ours end. */
  pass(demand: number, places: number, ended = this.inflight): void {
    this.inflight = Math.max(this.inflight - ended, Math.min(demand, this.limit.limit));
    this.#second += 1;
    const waiting = Math.max(0, this.inflight + this.foreign - places);
    this.limit.told({ waiting, inflight: this.inflight, max: MAX }, this.#second * S);
  }
}

describe('a limit by what waits inside', () => {
  test('does not hold before some waited', () => {
    const engine = new Engine();
    for (const demand of [1, 40, 200, MAX]) {
      engine.pass(demand, MAX);
      expect(engine.limit.limit).toBe(MAX);
    }
  });

  test('keeps what waits inside to about an eighth of what the engine does, and never leaves a place empty', () => {
    const placesOf = fc.integer({ min: 1, max: 200 });
    fc.assert(
      fc.property(placesOf, fc.integer({ min: 1, max: 12 }), (places, each) => {
        const engine = new Engine();
        for (let second = 0; second < 300; second++) {
          engine.pass(1_000, places, each);
          if (second < MAX / each + 2) continue;
          expect(engine.inflight).toBeGreaterThanOrEqual(Math.min(MAX, places));
          expect(engine.inflight).toBeLessThanOrEqual(places + 2 + places / 4);
        }
      }),
    );
  });

  test('finds places that are new within seconds, and those that are gone within two minutes', () => {
    const engine = new Engine();
    for (let second = 0; second < 10; second++) engine.pass(1_000, 8);
    expect(engine.limit.limit).toBeLessThanOrEqual(11);
    for (let second = 0; second < 8; second++) engine.pass(1_000, 100);
    expect(engine.limit.limit).toBeGreaterThanOrEqual(100);
    for (let second = 0; second < 121; second++) engine.pass(1_000, 8);
    expect(engine.limit.limit).toBeLessThanOrEqual(11);
  });

  test('is not lowered, time after time, by what waits for something else than a place', () => {
    const engine = new Engine();
    // Most of the time half of them wait for a model that is not loaded.
    for (let second = 0; second < 600; second++) {
      const isLoading = second % 30 > 0;
      engine.pass(1_000, isLoading ? Math.ceil(engine.inflight / 2) : 16);
    }
    expect(engine.limit.limit).toBeGreaterThanOrEqual(16);
  });

  test('counts what it does of ours alone', () => {
    const engine = new Engine();
    engine.foreign = 12;
    for (let second = 0; second < 10; second++) engine.pass(1_000, 16);
    expect(engine.limit.limit).toBeLessThanOrEqual(6);
    expect(engine.limit.limit).toBeGreaterThanOrEqual(4);
  });

  test('is none while it does none of ours, and is back when it does', () => {
    const engine = new Engine();
    engine.pass(1_000, 16);
    engine.pass(1_000, 0);
    expect(engine.limit.limit).toBe(0);
    engine.inflight = 0;
    engine.pass(0, 16);
    expect(engine.limit.limit).toBeGreaterThanOrEqual(16);
  });
});
