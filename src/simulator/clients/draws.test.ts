import { describe, expect, test } from 'vitest';
import { drawKey, Draws } from './draws.ts';

function first(key: ReturnType<typeof drawKey>, index: number, turn = 0): number {
  const draws = new Draws();
  draws.begin(key, index, turn);
  return draws.ratio();
}

describe('Draws', () => {
  test('an index gets the same whatever was drawn before, a half-used pair of normals included', () => {
    const draws = new Draws();
    const key = drawKey(1, 'user');
    draws.begin(key, 7);
    const alone = [draws.normal(), draws.normal(), draws.ratio()];
    draws.begin(key, 6);
    draws.normal();
    draws.begin(key, 7);
    expect([draws.normal(), draws.normal(), draws.ratio()]).toEqual(alone);
  });

  test('seeds, purposes, indices and turns are told apart', () => {
    const key = drawKey(1, 'user');
    const values = [
      first(key, 0),
      first(key, 1),
      first(key, 0, 1),
      first(drawKey(2, 'user'), 0),
      first(drawKey(1, 'gap'), 0),
      first(drawKey(1 + 2 ** 32, 'user'), 0),
    ];
    expect(new Set(values).size).toBe(values.length);
  });

  test('neighbours and successive draws are even and unrelated', () => {
    const draws = new Draws();
    const key = drawKey(3, 'user');
    const cells = new Int32Array(64);
    const count = 64_000;
    for (let index = 0; index < count; index += 1) {
      draws.begin(key, index);
      const cell = Math.floor(draws.ratio() * 8) * 8 + Math.floor(draws.ratio() * 8);
      cells[cell] = (cells[cell] as number) + 1;
    }
    const mean = count / 64;
    const chiSquare = cells.reduce((sum, cell) => sum + (cell - mean) ** 2 / mean, 0);
    // 63 degrees of freedom: beyond 110 once in 5,000.
    expect(chiSquare).toBeLessThan(110);
    let product = 0;
    for (let index = 0; index < count; index += 1)
      product += (first(key, index) - 0.5) * (first(key, index + 1) - 0.5);
    expect(Math.abs((12 * product) / count)).toBeLessThan(0.016);
  });
});
