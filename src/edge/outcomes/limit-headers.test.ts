import { describe, expect, it } from 'vitest';
import { limitHeaders, limitLines, resetText } from './limit-headers.ts';

describe('resetText', () => {
  it.each([
    [0, '0s'],
    [1, '0.001s'],
    [120_000, '0.12s'],
    [1_200_000, '1.2s'],
    [59_999_001, '1m0s'],
    [59_000_000, '59s'],
    [360_000_000, '6m0s'],
    [360_000_001, '6m1s'],
    [3_600_000_000, '1h0m0s'],
    [90_061_000_000, '25h1m1s'],
  ])('writes %d µs as %s', (us, text) => {
    expect(resetText(us)).toBe(text);
  });
});

describe('limitHeaders', () => {
  const requests = { limit: 100, remaining: 42, resetUs: 34_800_000 };

  it('tell of what is limited alone', () => {
    expect(limitHeaders({})).toEqual([]);
    expect(limitHeaders({ requests })).toEqual([
      'x-ratelimit-limit-requests',
      '100',
      'x-ratelimit-remaining-requests',
      '42',
      'x-ratelimit-reset-requests',
      '34.8s',
    ]);
  });

  it('are the same as lines', () => {
    expect(limitLines({ tokens: { limit: 5, remaining: 0, resetUs: 60_000_000 } })).toBe(
      'x-ratelimit-limit-tokens: 5\r\nx-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 1m0s\r\n',
    );
  });
});
