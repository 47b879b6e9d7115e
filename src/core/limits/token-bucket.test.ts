import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BucketRate, TokenBucket } from './token-bucket.ts';

const S = 1_000_000;
const MINUTE = 60 * S;

describe('TokenBucket', () => {
  test('gives its burst at once, and then one unit per share of a minute, to the microsecond', () => {
    const bucket = new TokenBucket({ perMinute: 100, burst: 100 }, 0);
    bucket.take(100, 0);
    expect(bucket.waitUs(1, 0)).toBe(600_000);
    expect(bucket.waitUs(1, 599_999)).toBe(1);
    expect(bucket.waitUs(1, 600_000)).toBe(0);
    expect(bucket.waitUs(3, 600_000)).toBe(1_200_000);
  });

  test('never holds more than its burst, however long it rests', () => {
    const bucket = new TokenBucket({ perMinute: 1_000_000_000, burst: 10 }, 0);
    bucket.take(10, 0);
    expect(bucket.remaining(365 * 24 * 60 * MINUTE)).toBe(10);
    expect(bucket.fullUs(365 * 24 * 60 * MINUTE)).toBe(0);
  });

  test('can never give more than its burst at once', () => {
    const bucket = new TokenBucket({ perMinute: 100, burst: 10 }, 0);
    expect(bucket.waitUs(11, MINUTE)).toBe(Number.POSITIVE_INFINITY);
  });

  test('takes back what was not used, up to its burst', () => {
    const bucket = new TokenBucket({ perMinute: 60, burst: 100 }, 0);
    bucket.take(80, 0);
    bucket.settle(80, 30, 0);
    expect([bucket.remaining(0), bucket.reserved]).toEqual([70, 0]);
    bucket.take(10, 0);
    bucket.settle(10, 0, 40 * S);
    expect(bucket.remaining(40 * S)).toBe(100);
    bucket.take(100, 40 * S);
    expect(bucket.waitUs(1, 40 * S)).toBe(S);
  });

  test('goes into debt for what was used beyond the reservation, by its burst at most', () => {
    const bucket = new TokenBucket({ perMinute: 60, burst: 100 }, 0);
    bucket.take(10, 0);
    bucket.settle(10, 150, 0);
    expect(bucket.levelMicro(0)).toBe(-50 * S);
    expect(bucket.waitUs(1, 0)).toBe(51 * S);
    bucket.settle(0, 1_000_000, 0);
    expect(bucket.levelMicro(0)).toBe(-100 * S);
  });

  test('refuses to end a reservation twice', () => {
    const bucket = new TokenBucket({ perMinute: 60, burst: 100 }, 0);
    bucket.take(10, 0);
    bucket.settle(10, 10, 0);
    expect(() => bucket.settle(10, 10, 0)).toThrow('once');
  });

  test('gains nothing by another configuration, to and fro', () => {
    const bucket = new TokenBucket({ perMinute: 100, burst: 100 }, 0);
    bucket.take(90, 0);
    bucket.configure({ perMinute: 1_000, burst: 1_000 }, 0);
    expect(bucket.remaining(0)).toBe(10);
    bucket.configure({ perMinute: 100, burst: 5 }, 0);
    expect(bucket.remaining(0)).toBe(5);
    bucket.configure({ perMinute: 100, burst: 100 }, 0);
    expect(bucket.remaining(0)).toBe(5);
  });

  test('refills at the old rate until the change, and at the new one from then on', () => {
    const bucket = new TokenBucket({ perMinute: 60, burst: 600 }, 0);
    bucket.take(600, 0);
    bucket.configure({ perMinute: 600, burst: 600 }, 10 * S);
    expect(bucket.remaining(20 * S)).toBe(110);
  });
});

type Step =
  | { readonly kind: 'wait'; readonly us: number }
  | { readonly kind: 'take'; readonly units: number }
  | { readonly kind: 'settle'; readonly pick: number; readonly used: number }
  | { readonly kind: 'configure'; readonly rate: BucketRate };

const rate: fc.Arbitrary<BucketRate> = fc.record({
  perMinute: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constantFrom(7, 60, 1_000_000_000)),
  burst: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constantFrom(1, 1_000_000_000)),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ kind: fc.constant('wait'), us: fc.nat(3 * S) }), weight: 4 },
  { arbitrary: fc.record({ kind: fc.constant('take'), units: fc.integer({ min: 1, max: 200 }) }), weight: 6 },
  {
    arbitrary: fc.record({ kind: fc.constant('settle'), pick: fc.nat(), used: fc.nat(400) }),
    weight: 4,
  },
  { arbitrary: fc.record({ kind: fc.constant('configure'), rate }), weight: 1 },
);

/** The same rules in exact fractions: sixtieths of a millionth of a unit, as big integers. */
class Reference {
  #rate: BucketRate;
  #level: bigint;
  #at = 0;

  constructor(first: BucketRate) {
    this.#rate = first;
    this.#level = BigInt(first.burst) * 60_000_000n;
  }

  at(now: number): bigint {
    const most = BigInt(this.#rate.burst) * 60_000_000n;
    const level = this.#level + BigInt(now - this.#at) * BigInt(this.#rate.perMinute);
    return level > most ? most : level;
  }

  add(units: number, now: number, change: BucketRate = this.#rate): void {
    const most = BigInt(change.burst) * 60_000_000n;
    const level = this.at(now) + BigInt(units) * 60_000_000n;
    this.#level = level > most ? most : level < -most ? -most : level;
    this.#rate = change;
    this.#at = now;
  }
}

interface Net {
  readonly at: number;
  readonly units: number;
}

/** In every window that ends with something taken: net of what came back, no more than burst and refill. */
function expectWithinRate(taken: readonly Net[], most: BucketRate): void {
  for (let from = 0; from < taken.length; from++) {
    let sum = 0;
    for (const { at, units } of taken.slice(from)) {
      sum += units;
      const window = at - (taken[from] as Net).at;
      if (units > 0) expect(sum).toBeLessThanOrEqual(most.burst + (most.perMinute * window) / MINUTE + 1e-6);
    }
  }
}

describe('TokenBucket, whatever happens,', () => {
  test('stays between its debt and its burst, exactly where fractions put it, and gives no more than its rate', () => {
    fc.assert(
      fc.property(rate, fc.array(step, { maxLength: 120, size: 'max' }), (first, steps) => {
        const bucket = new TokenBucket(first, 0);
        const reference = new Reference(first);
        const taken: Net[] = [];
        const open: number[] = [];
        const most = { ...first };
        let now = 0;
        for (const act of steps) {
          if (act.kind === 'wait') now += act.us;
          else if (act.kind === 'configure') {
            bucket.configure(act.rate, now);
            reference.add(0, now, act.rate);
            most.perMinute = Math.max(most.perMinute, act.rate.perMinute);
            most.burst = Math.max(most.burst, act.rate.burst);
          } else if (act.kind === 'take') {
            if (bucket.waitUs(act.units, now) > 0) continue;
            bucket.take(act.units, now);
            reference.add(-act.units, now);
            open.push(act.units);
            taken.push({ at: now, units: act.units });
          } else if (open.length > 0) {
            const [reserved] = open.splice(act.pick % open.length, 1) as [number];
            bucket.settle(reserved, act.used, now);
            reference.add(reserved - act.used, now);
            if (act.used < reserved) taken.push({ at: now, units: act.used - reserved });
          }
          const level = bucket.levelMicro(now);
          expect(BigInt(level)).toBe(floorDiv(reference.at(now), 60n));
          expect(Math.abs(level)).toBeLessThanOrEqual(bucket.rate.burst * 1e6);
          expect(bucket.reserved).toBe(open.reduce((sum, units) => sum + units, 0));
        }
        expectWithinRate(taken, most);
        for (const reserved of open) bucket.settle(reserved, 0, now);
        expect(bucket.reserved).toBe(0);
      }),
      { numRuns: 150 },
    );
  });

  test('tells the exact wait: not a microsecond before, and then', () => {
    fc.assert(
      fc.property(
        rate,
        fc.array(fc.tuple(fc.nat(S), fc.integer({ min: 1, max: 1_000 })), { maxLength: 20 }),
        (given, takes) => {
          const bucket = new TokenBucket(given, 0);
          let now = 0;
          for (const [us, units] of takes) {
            now += us;
            const waitUs = bucket.waitUs(units, now);
            if (waitUs === Number.POSITIVE_INFINITY) continue;
            if (waitUs > 0) expect(bucket.waitUs(units, now + waitUs - 1)).toBe(1);
            now += waitUs;
            bucket.take(units, now);
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});

function floorDiv(a: bigint, b: bigint): bigint {
  return a >= 0n ? a / b : -((-a + b - 1n) / b);
}
