import { describe, expect, test } from 'vitest';
import { LogSketch } from './log-sketch.ts';

describe('LogSketch', () => {
  test('gives the upper edge of the bucket of a quantile, at most a quarter octave above it', () => {
    const sketch = new LogSketch();
    for (let i = 1; i <= 100; i++) sketch.add(i / 10);
    for (const [q, exact] of [
      [0.5, 5],
      [0.9, 9],
      [0.99, 9.9],
    ] as const) {
      expect(sketch.quantile(q)).toBeGreaterThanOrEqual(exact);
      expect(sketch.quantile(q)).toBeLessThanOrEqual(exact * 2 ** 0.25 * 1.01);
    }
  });

  test('holds at most 1,024 counts: the past is halved and fades', () => {
    const sketch = new LogSketch();
    for (let i = 0; i < 100; i++) sketch.add(32);
    let most = 0;
    for (let i = 0; i < 20_000; i++) {
      sketch.add(1);
      most = Math.max(most, sketch.total);
    }
    expect(most).toBeLessThan(1_024);
    expect(sketch.quantile(0.99)).toBe(1);
  });

  test('puts every ratio into the first bucket whose upper edge is not below it, edges included', () => {
    const edges = Array.from({ length: 64 }, (_, bucket) => 2 ** (-10 + (bucket + 1) / 4));
    for (const [bucket, edge] of edges.entries()) {
      const below = edges[bucket - 1] ?? 2 ** -10;
      for (const ratio of [below * (1 + 1e-12), (below + edge) / 2, edge]) {
        const sketch = new LogSketch();
        sketch.add(ratio);
        expect(sketch.quantile(0.5), `${ratio}`).toBe(edge);
      }
    }
  });

  test('counts what is out of range at its ends, and what is no positive number not at all', () => {
    const sketch = new LogSketch();
    for (const ratio of [0, -1, Number.NaN]) sketch.add(ratio);
    expect([sketch.total, sketch.quantile(0.5)]).toEqual([0, 0]);
    for (const ratio of [Number.POSITIVE_INFINITY, 1e12]) sketch.add(ratio);
    expect(sketch.quantile(0.5)).toBe(64);
    for (let i = 0; i < 10; i++) sketch.add(1e-12);
    expect(sketch.quantile(0.5)).toBeCloseTo(2 ** -9.75, 6);
  });
});
