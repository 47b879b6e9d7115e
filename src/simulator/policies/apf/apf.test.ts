import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { dealHand } from './priority-level.ts';
import { allocateSeats } from './seat-allocation.ts';
import { SeatDemand } from './seat-demand.ts';

describe('allocateSeats', () => {
  const claim = fc.record({ min: fc.nat(20), lower: fc.nat(20), target: fc.nat(60) }).map((row) => {
    const lowerSeats = row.min + row.lower;
    return {
      minSeats: row.min,
      lowerSeats,
      targetSeats: lowerSeats + row.target,
      upperSeats: 200,
    };
  });

  test('gives out all seats, but for rounding, and nobody less than its bound when there is enough', () => {
    fc.assert(
      fc.property(
        fc.array(claim, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 200 }),
        (claims, seats) => {
          const given = allocateSeats(claims, seats);
          const sum = given.reduce((total, value) => total + value, 0);
          const lowerSum = claims.reduce((total, { lowerSeats }) => total + lowerSeats, 0);
          const minSum = claims.reduce((total, { minSeats }) => total + minSeats, 0);
          if (seats >= minSum) expect(Math.abs(sum - seats)).toBeLessThanOrEqual(claims.length / 2 + 1e-9);
          for (const [index, { minSeats, lowerSeats }] of claims.entries()) {
            expect(given[index]).toBeGreaterThanOrEqual(minSeats);
            if (seats > lowerSum) expect(given[index]).toBeGreaterThanOrEqual(lowerSeats);
          }
        },
      ),
    );
  });

  test('divides in proportion to targets where no bound holds', () => {
    const claims = [10, 30].map((targetSeats) => ({
      minSeats: 0,
      lowerSeats: 0,
      upperSeats: 100,
      targetSeats,
    }));
    expect(allocateSeats(claims, 80)).toEqual([20, 60]);
  });
});

describe('SeatDemand', () => {
  test('follows demand up at once, and down by 2.3 % a period', () => {
    const demand = new SeatDemand();
    demand.set(10, 0);
    demand.closePeriod(10_000_000);
    expect(demand.smoothed).toBeCloseTo(10);
    demand.set(0, 10_000_000);
    demand.closePeriod(20_000_000);
    expect(demand.smoothed).toBeCloseTo(9.77);
    expect(demand.highWatermark).toBe(10);
  });
});

describe('dealHand', () => {
  test('deals different queues, the same for the same flow', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 31), fc.integer({ min: 6, max: 128 }), (hash, queues) => {
        const hand = dealHand(hash * 65_537, queues, 6);
        expect(new Set(hand).size).toBe(6);
        expect(Math.max(...hand)).toBeLessThan(queues);
        expect(dealHand(hash * 65_537, queues, 6)).toEqual(hand);
      }),
    );
  });

  test('gives two flows the same hand of 6 out of 128 hardly ever', () => {
    const hands = Array.from({ length: 2_000 }, (_, index) =>
      [...dealHand(index * 2_654_435_761, 128, 6)].sort((one, other) => one - other).join(),
    );
    expect(new Set(hands).size).toBeGreaterThan(1_990);
  });
});
