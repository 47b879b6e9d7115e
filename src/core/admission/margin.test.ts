import { expect, test } from 'vitest';
import { PredictionMargin } from './margin.ts';

test('PredictionMargin follows the 90th percentile of actual over predicted, between its limits', () => {
  const exact = new PredictionMargin();
  const wild = new PredictionMargin();
  for (let i = 0; i < 5_000; i++) {
    exact.observe(100, 100);
    wild.observe(i % 5 === 0 ? 300 : 100, 100);
  }
  expect(exact.within(0, 10)).toBeCloseTo(1, 1);
  expect(exact.within(1.15, 1.5)).toBe(1.15);
  expect(wild.within(0, 10)).toBeGreaterThan(1.5);
  expect(wild.within(1.15, 1.5)).toBe(1.5);
});

test('PredictionMargin learns nothing from a task without a prediction', () => {
  const margin = new PredictionMargin();
  margin.observe(100, 0);
  expect(margin.within(0, 10)).toBe(1.25);
});
