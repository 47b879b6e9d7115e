import { describe, expect, it } from 'vitest';
import type { LimiterView } from '../../core/limits/index.ts';
import { leftRatio, wireLimiter } from './limits.ts';

const IDLE: LimiterView = { scope: 'tenant', name: 'acme', tasks: 0, tokensReserved: 0 };

describe('wireLimiter', () => {
  it('says null of what is not limited', () => {
    expect(wireLimiter(IDLE)).toEqual({
      scope: 'tenant',
      name: 'acme',
      requests: null,
      tokens: null,
      concurrency: { limit: null, now: 0 },
    });
  });

  it('tells what is left, what is reserved, and when it is whole again', () => {
    const requests = { limit: 10, remaining: 4, resetUs: 1_500 };
    const tokens = { limit: 1_000, remaining: 900, resetUs: 6_000_000 };
    expect(
      wireLimiter({ ...IDLE, tasks: 2, tasksMax: 8, tokensReserved: 100, requests, tokens }),
    ).toMatchObject({
      requests: { limit: 10, remaining: 4, resetMs: 2 },
      tokens: { limit: 1_000, remaining: 900, resetMs: 6_000, reserved: 100 },
      concurrency: { limit: 8, now: 2 },
    });
  });
});

describe('leftRatio', () => {
  it.each([
    ['nothing is limited', IDLE, 1],
    [
      'requests are scarcest',
      { ...IDLE, requests: { limit: 10, remaining: 1, resetUs: 0 }, tasks: 1, tasksMax: 2 },
      0.1,
    ],
    [
      'places are scarcest',
      { ...IDLE, tokens: { limit: 10, remaining: 9, resetUs: 0 }, tasks: 3, tasksMax: 4 },
      0.25,
    ],
    ['there are more than may be, after a change', { ...IDLE, tasks: 9, tasksMax: 4 }, 0],
  ])('is what is left of the scarcest: %s', (_title, row, ratio) => {
    expect(leftRatio(row)).toBe(ratio);
  });
});
