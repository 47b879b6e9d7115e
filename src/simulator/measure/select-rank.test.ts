import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { selectRank } from './select-rank.ts';

describe('selectRank', () => {
  test('gives what sorting gives, for ascending ranks of the same values, equal ones among them', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 200 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), {
          minLength: 1,
          maxLength: 5,
        }),
        (list, shares) => {
          const sorted = [...list].sort((a, b) => a - b);
          const ranks = shares.map((share) => Math.floor(share * list.length)).sort((a, b) => a - b);
          const values = Float64Array.from(list);
          let from = 0;
          for (const rank of ranks) {
            expect(selectRank(values, rank, from)).toBe(sorted[rank]);
            from = rank;
          }
        },
      ),
    );
  });
});
