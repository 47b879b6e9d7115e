/** The rules of the learned limit, fed by hand: what makes it grow, shrink, stay, and start again. */
import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { ConcurrencyLimit } from './concurrency.ts';

/** A node that serves `knee` tasks side by side, each at `pace` seconds per second of work. */
class Feed {
  readonly limit: ConcurrencyLimit;
  knee: number;
  pace = 1;
  now = S;

  constructor(knee: number, bounds = { start: 4, max: 64 }) {
    this.limit = new ConcurrencyLimit(bounds);
    this.knee = knee;
  }

  /** Tasks of a size, with as many in flight as asked for or as the limit allows. */
  serve(tasks: number, inflight = this.limit.limit, workUs = S): void {
    for (let i = 0; i < tasks; i++) {
      this.now += S / 4;
      const elapsedUs = workUs * this.pace * Math.max(1, inflight / this.knee);
      this.limit.starting(0, this.now);
      this.limit.observe({ workUs, elapsedUs, inflight }, this.now);
    }
  }

  /** The limit follows whatever it allows. */
  saturate(tasks: number): void {
    for (let i = 0; i < tasks; i++) this.serve(1);
  }
}

describe('the learned limit', () => {
  test('grows to the configured most while more at once take no longer', () => {
    const feed = new Feed(1_000);
    feed.saturate(4_000);
    expect(feed.limit.settled).toBe(64);
  });

  test('never falls below one task', () => {
    const feed = new Feed(1);
    for (let i = 0; i < 2_000; i++) {
      feed.saturate(1);
      expect(feed.limit.limit).toBeGreaterThanOrEqual(1);
    }
    feed.limit.refused(1);
    expect(feed.limit.limit).toBe(1);
  });

  test('settles at one and a half times the knee, and a step of growth', () => {
    const feed = new Feed(8);
    feed.saturate(2_000);
    const seen: number[] = [];
    for (let i = 0; i < 2_000; i++) {
      feed.saturate(1);
      seen.push(feed.limit.settled);
    }
    expect(Math.min(...seen)).toBeGreaterThanOrEqual(8);
    expect(Math.max(...seen)).toBeLessThanOrEqual(15);
  });

  test('does not move while fewer than half of it are in flight', () => {
    const feed = new Feed(8);
    feed.saturate(2_000);
    const before = feed.limit.settled;
    feed.serve(2_000, 4);
    expect(feed.limit.settled).toBe(before);
  });

  test('does not take large tasks for a crowd', () => {
    const feed = new Feed(8);
    feed.saturate(2_000);
    const before = feed.limit.settled;
    let least = before;
    for (let i = 0; i < 200; i++) {
      feed.serve(1, feed.limit.limit, 20 * S);
      least = Math.min(least, feed.limit.settled);
    }
    expect(least).toBeGreaterThanOrEqual(before - 4);
  });

  test('allows one task where two take twice as long, though that is within what it tolerates of noise', () => {
    const feed = new Feed(1);
    feed.saturate(1_000);
    let tasks = 0;
    for (let i = 0; i < 1_000; i++) {
      feed.saturate(1);
      tasks += feed.limit.settled;
    }
    expect(tasks / 1_000).toBeLessThan(1.5);
  });
});

describe('the pace of few', () => {
  test('is measured with a third of the limit, once in two minutes at most', () => {
    const feed = new Feed(16);
    feed.saturate(2_000);
    let measuring = 0;
    let begins = 0;
    for (let i = 0; i < 2_000; i++) {
      const wasMeasuring = feed.limit.reason === 'measuring';
      feed.saturate(1);
      if (feed.limit.reason !== 'measuring') continue;
      measuring += 1;
      if (!wasMeasuring) begins += 1;
      expect(feed.limit.limit).toBeLessThanOrEqual(feed.limit.settled / 3);
    }
    expect(begins).toBeGreaterThanOrEqual(1);
    // 2,000 tasks take 500 s.
    expect(begins).toBeLessThanOrEqual(500 / 120);
    expect(measuring / 2_000).toBeLessThan(0.1);
  });

  test('is measured anew when a node became slower, and the limit comes back', () => {
    const feed = new Feed(8);
    feed.saturate(2_000);
    feed.pace = 4;
    feed.saturate(2_000);
    expect(feed.limit.paceOfFew).toBeCloseTo(4, 1);
    expect(feed.limit.settled).toBeGreaterThanOrEqual(8);
  });

  test('a measurement that gets no tasks ends by itself', () => {
    const feed = new Feed(16);
    for (let i = 0; i < 8_000 && feed.limit.reason !== 'measuring'; i++) feed.saturate(1);
    expect(feed.limit.reason).toBe('measuring');
    feed.limit.starting(0, feed.now + 60 * S);
    expect(feed.limit.limit).toBe(feed.limit.settled);
  });
});

describe('a limit that fell', () => {
  test('starts again where new nodes start after half a minute of idleness, without any work', () => {
    const feed = new Feed(1);
    feed.saturate(200);
    expect(feed.limit.settled).toBeLessThan(4);
    feed.limit.starting(29 * S, feed.now + 29 * S);
    expect(feed.limit.settled).toBeLessThan(4);
    feed.limit.starting(30 * S, feed.now + 60 * S);
    expect([feed.limit.limit, feed.limit.reason]).toEqual([4, 'rested']);
  });

  test('a node that says it is full is held to a tenth less than it had', () => {
    const feed = new Feed(1_000);
    feed.saturate(4_000);
    feed.limit.refused(20);
    expect(feed.limit.settled).toBe(64);
    feed.limit.refused(40);
    expect([feed.limit.limit, feed.limit.reason]).toEqual([36, 'refused']);
  });
});
