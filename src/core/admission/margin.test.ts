import { expect, test } from 'vitest';
import { PredictionMargin } from './margin.ts';

test('PredictionMargin follows the 90th percentile of actual over predicted, between its limits', () => {
  const exact = new PredictionMargin();
  const wild = new PredictionMargin();
  for (let i = 0; i < 5_000; i++) {
    exact.observe(100, 100);
    wild.observe(i % 5 === 0 ? 300 : 100, 100);
  }
  expect(exact.usualWithin(0, 10)).toBeCloseTo(1, 1);
  expect(exact.usualWithin(1.15, 1.5)).toBe(1.15);
  expect(wild.usualWithin(0, 10)).toBeGreaterThan(1.5);
  expect(wild.usualWithin(1.15, 1.5)).toBe(1.5);
});

test('PredictionMargin follows the 98th percentile too, for where one more that misses costs others', () => {
  const margin = new PredictionMargin();
  for (let i = 0; i < 20_000; i++) margin.observe(i % 20 === 0 ? 300 : 100, 100);
  expect(margin.usualWithin(0, 10)).toBeCloseTo(1, 1);
  expect(margin.sureWithin(0, 10)).toBeCloseTo(3, 1);
  expect(margin.sureWithin(1.15, 2)).toBe(2);
  expect(margin.sureWithin(4, 5)).toBe(4);
});

test('PredictionMargin learns nothing from a task without a prediction', () => {
  const margin = new PredictionMargin();
  margin.observe(100, 0);
  expect([margin.usualWithin(0, 10), margin.sureWithin(0, 10)]).toEqual([1.25, 1.25]);
});
