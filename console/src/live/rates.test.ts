import { expect, test } from 'vitest';
import type { Picture } from '../wire.ts';
import { createRateMeter } from './rates.ts';

function pictureAt(at: number, arrived: number, served: number): Picture {
  const accounts = { arrived, served, degraded: 0, rejected: 0, evicted: 0, failed: 0, cancelled: 0 };
  return { at, accounts } as Picture;
}

test('rates are what happened between two pictures, over at least two seconds', () => {
  const meter = createRateMeter();
  meter.add(pictureAt(1_000, 10, 10));
  meter.add(pictureAt(2_000, 500, 10));
  expect(meter.rates.arrived).toBe(0);
  meter.add(pictureAt(5_000, 50, 30));
  expect(meter.rates).toMatchObject({ arrived: 10, served: 5 });
});

test('a gateway that started again gives no negative rate', () => {
  const meter = createRateMeter();
  meter.add(pictureAt(1_000, 1_000, 900));
  meter.add(pictureAt(4_000, 3, 1));
  meter.add(pictureAt(8_000, 43, 41));
  expect(meter.rates).toMatchObject({ arrived: 10, served: 10 });
});
