import { describe, expect, test } from 'vitest';
import type { Picture } from '../wire.ts';
import { createHistory, HISTORY_CLASSES_MAX, HISTORY_SAMPLES_MAX } from './history.ts';

function pictureAt(at: number, depths: Readonly<Record<string, number>>): Picture {
  const byClass = Object.fromEntries(
    Object.entries(depths).map(([name, depth]) => [name, { depth, workMs: 0, oldestWaitMs: 0 }]),
  );
  return { at, queue: { byClass } } as Picture;
}

describe('history', () => {
  test('keeps the last samples and no more', () => {
    const history = createHistory();
    for (let i = 0; i < HISTORY_SAMPLES_MAX + 50; i++) history.add(pictureAt(i * 1_000, { low: i }));
    expect(history.times).toHaveLength(HISTORY_SAMPLES_MAX);
    expect(history.times[0]).toBe(50);
    expect(history.depths.get('low')).toHaveLength(HISTORY_SAMPLES_MAX);
    expect(history.depths.get('low')?.at(-1)).toBe(HISTORY_SAMPLES_MAX + 49);
  });

  test('fills with nothing where a class was not there, and forgets one that is long gone', () => {
    const history = createHistory();
    history.add(pictureAt(0, { low: 1 }));
    history.add(pictureAt(1_000, { low: 2, fresh: 3 }));
    expect(history.depths.get('fresh')).toEqual([null, 3]);
    for (let i = 2; i < HISTORY_SAMPLES_MAX + 2; i++) history.add(pictureAt(i * 1_000, { fresh: 0 }));
    expect([...history.depths.keys()]).toEqual(['fresh']);
  });

  test('keeps so many classes and no more', () => {
    const history = createHistory();
    const names = Array.from({ length: HISTORY_CLASSES_MAX + 5 }, (_, i) => [`class-${i}`, i] as const);
    history.add(pictureAt(0, Object.fromEntries(names)));
    expect(history.depths.size).toBe(HISTORY_CLASSES_MAX);
  });
});
