import { expect, test } from 'vitest';
import { NumberRows } from './number-rows.ts';

test('NumberRows.next gives rows of zeros that share no number, from block to block', () => {
  const rows = new NumberRows(3);
  const taken = Array.from({ length: 200 }, () => rows.next());
  for (const [row, { cells, at }] of taken.entries())
    for (let place = 0; place < 3; place++) {
      expect(cells[at + place]).toBe(0);
      cells[at + place] = 10 * row + place;
    }
  for (const [row, { cells, at }] of taken.entries())
    expect([...cells.subarray(at, at + 3)]).toEqual([10 * row, 10 * row + 1, 10 * row + 2]);
});
