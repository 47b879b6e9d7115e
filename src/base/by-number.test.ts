import { describe, expect, it } from 'vitest';
import { ByNumber } from './by-number.ts';

describe('ByNumber', () => {
  it('finds what was kept of a number, in whatever order they came, and nothing of the others', () => {
    const names = new ByNumber<string>();
    for (const number of [3, 0, 7]) names.set(number, `n${number}`);
    names.set(3, 'again');
    expect(Array.from({ length: 9 }, (_, number) => names.get(number) ?? '')).toEqual([
      'n0',
      '',
      '',
      'again',
      '',
      '',
      '',
      'n7',
      '',
    ]);
  });

  it('keeps nothing of who has no number', () => {
    const names = new ByNumber<string>();
    names.set(-1, 'nobody');
    expect(names.get(-1)).toBeUndefined();
    names.set(0, 'first');
    expect([names.get(-1), names.get(0)]).toEqual([undefined, 'first']);
  });

  it('forgets all of it', () => {
    const names = new ByNumber<string>();
    names.set(2, 'two');
    names.clear();
    expect(names.get(2)).toBeUndefined();
  });
});
