import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EtaLedger } from './eta.ts';

describe('EtaLedger', () => {
  test('tells the same error for twice too long and twice too short, whatever came in which order', () => {
    const factors = fc.array(fc.double({ min: 1.1, max: 30, noNaN: true }), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(factors, (ratios) => {
        const long = new EtaLedger();
        const short = new EtaLedger();
        for (const ratio of ratios) long.note('a', 'dispatch', 1 / ratio);
        for (const ratio of ratios.toReversed()) short.note('a', 'dispatch', ratio);
        const [one, other] = [long, short].map((ledger) => ledger.errorOf('a', 'dispatch'));
        expect(one?.samples).toBe(ratios.length);
        expect([one?.p50, one?.p95]).toEqual([other?.p50, other?.p95]);
        expect(one?.sum).toBeCloseTo(other?.sum ?? 0, 6);
        expect(one?.p95).toBeGreaterThanOrEqual(one?.p50 ?? 0);
      }),
    );
  });

  test('is not moved by what is no ratio', () => {
    const ledger = new EtaLedger();
    for (const ratio of [Number.NaN, 0, -1, Number.POSITIVE_INFINITY]) ledger.note('a', 'admission', ratio);
    expect(ledger.errorOf('a', 'admission')).toBeNull();
  });

  test('tells apart a bounded number of classes, and the rest together', () => {
    const ledger = new EtaLedger();
    for (let i = 0; i < 1_000; i++) ledger.note(`class-${i}`, 'dispatch', 2);
    expect(ledger.classNames).toHaveLength(65);
    expect(ledger.errorOf('other', 'dispatch')?.samples).toBe(1_000 - 64);
  });
});
