import { expect, test } from 'vitest';
import { RefilledList } from './refilled-list.ts';

test('holds what was pushed since it was emptied last, in order', () => {
  const list = new RefilledList<number | undefined>();
  for (const round of [3, 1, 5]) {
    for (let item = 0; item < round; item++) list.push(item === 2 ? undefined : round * 10 + item);
    expect(list.size).toBe(round);
    expect(list.at(0)).toBe(round * 10);
    if (round > 2) expect(list.at(2)).toBe(undefined);
    list.clear();
    expect(list.size).toBe(0);
  }
});
