import { describe, expect, test } from 'vitest';
import { createLoadPage, isPressing, lookedAt } from './load-page.ts';

const FULL = { running: 8, waiting: 3, cacheUse: 0.95 };
const IDLE = { running: 0, waiting: 0, cacheUse: 0 };
const S = 1_000_000;

describe('lookedAt', () => {
  test('hands on what changes, full or not', () => {
    const page = createLoadPage();
    for (let second = 0; second < 20; second++) {
      const reading = { ...FULL, waiting: 1 + (second % 5) };
      expect(lookedAt(page, reading, second * S)).toEqual(reading);
    }
    expect(page.isStale).toBe(false);
    expect(isPressing(page)).toBe(true);
  });

  test('takes an account that stays full without any change as unknown, until it changes', () => {
    const page = createLoadPage();
    expect(lookedAt(page, FULL, 0)).toEqual(FULL);
    expect(lookedAt(page, FULL, 4 * S)).toEqual(FULL);
    expect(lookedAt(page, FULL, 5 * S)).toEqual({});
    expect(page.isStale).toBe(true);
    expect(lookedAt(page, { ...FULL, waiting: 2 }, 6 * S)).toEqual({ ...FULL, waiting: 2 });
    expect(page.isStale).toBe(false);
  });

  test('sees nothing wrong in an idle engine that stays idle', () => {
    const page = createLoadPage();
    for (let second = 0; second < 20; second++) expect(lookedAt(page, IDLE, second * S)).toEqual(IDLE);
    expect([page.isStale, isPressing(page)]).toEqual([false, false]);
  });

  test('takes a page that went away as unknown, and one that never was as nothing', () => {
    const page = createLoadPage();
    expect(lookedAt(page, undefined, 0)).toBeUndefined();
    expect(page.isStale).toBe(false);
    lookedAt(page, FULL, S);
    expect(lookedAt(page, undefined, 2 * S)).toBeUndefined();
    expect(isPressing(page), 'no look is owed to a page that is gone').toBe(false);
    expect(lookedAt(page, undefined, 7 * S)).toEqual({});
    expect(page.isStale).toBe(true);
    expect(lookedAt(page, FULL, 8 * S)).toEqual(FULL);
    expect(page.isStale).toBe(false);
  });
});
