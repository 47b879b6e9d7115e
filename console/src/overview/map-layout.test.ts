import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cellAt, layoutMap, placeAfterKey } from './map-layout.ts';

const COUNT = fc.integer({ min: 1, max: 2_000 });
const WIDTH = fc.integer({ min: 280, max: 2_000 });

describe('layout of the fleet map', () => {
  test('has a cell for every node, inside the width', () => {
    fc.assert(
      fc.property(COUNT, WIDTH, (count, width) => {
        const { columns, rows, cellPx } = layoutMap(count, width);
        expect(columns * rows).toBeGreaterThanOrEqual(count);
        expect(columns * (rows - 1)).toBeLessThan(count);
        expect(columns * cellPx).toBeLessThanOrEqual(width);
      }),
    );
  });

  test('finds the node under a point of its cell', () => {
    fc.assert(
      fc.property(COUNT, WIDTH, fc.nat(), (count, width, seed) => {
        const layout = layoutMap(count, width);
        const place = seed % count;
        const x = (place % layout.columns) * layout.cellPx + 1;
        const y = Math.floor(place / layout.columns) * layout.cellPx + 1;
        expect(cellAt(layout, x, y)).toBe(place);
      }),
    );
    expect(cellAt(layoutMap(4, 400), -5, 0)).toBe(-1);
  });

  test('keys lead to a node, and from any node to its neighbours and back', () => {
    fc.assert(
      fc.property(COUNT, WIDTH, fc.nat(), (count, width, seed) => {
        const layout = layoutMap(count, width);
        const place = seed % count;
        for (const key of ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End']) {
          const next = placeAfterKey(key, layout, { place, count }) as number;
          expect(next).toBeGreaterThanOrEqual(0);
          expect(next).toBeLessThan(count);
        }
        const down = placeAfterKey('ArrowDown', layout, { place, count }) as number;
        if (down !== place) expect(placeAfterKey('ArrowUp', layout, { place: down, count })).toBe(place);
      }),
    );
    expect(placeAfterKey('a', layoutMap(4, 400), { place: 0, count: 4 })).toBeUndefined();
  });
});
