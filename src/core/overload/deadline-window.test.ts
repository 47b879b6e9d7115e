import { describe, expect, test } from 'vitest';
import { S } from '../../../test/support/specs.ts';
import { DeadlineWindow } from './deadline-window.ts';

function add(window: DeadlineWindow, at: number, met: number, missed: number): void {
  for (let i = 0; i < met; i++) window.add(true, at);
  for (let i = 0; i < missed; i++) window.add(false, at);
}

describe('DeadlineWindow', () => {
  test('knows nothing without outcomes: no ratio is neither zero nor one', () => {
    const window = new DeadlineWindow();
    expect([window.ratio(0), window.recentRatio(0), window.missed(0)]).toEqual([undefined, undefined, 0]);
  });

  test('counts misses over all of five minutes, and forgets them after', () => {
    const window = new DeadlineWindow();
    add(window, 5 * S, 97, 3);
    expect(window.ratio(5 * S)).toBe(0.03);
    expect(window.ratio(299 * S)).toBe(0.03);
    expect(window.ratio(300 * S)).toBeUndefined();
    expect(window.missed(300 * S)).toBe(0);
  });

  test('tells the last half minute apart', () => {
    const window = new DeadlineWindow();
    add(window, 5 * S, 0, 10);
    add(window, 100 * S, 90, 0);
    expect(window.ratio(100 * S)).toBe(0.1);
    expect(window.recentRatio(29 * S), 'time does not go back').toBe(0);
    expect(window.recentRatio(129 * S)).toBe(0);
    expect(window.recentRatio(130 * S)).toBeUndefined();
  });

  test('is empty after an absence of any length', () => {
    for (const absenceS of [300, 305, 3_000, 1e9]) {
      const window = new DeadlineWindow();
      for (let second = 0; second < 300; second += 10) add(window, second * S, 1, 1);
      expect(window.missed(299 * S)).toBe(30);
      expect(window.ratio((299 + absenceS) * S), String(absenceS)).toBeUndefined();
    }
  });
});
