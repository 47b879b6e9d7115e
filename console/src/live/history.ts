/**
 * What the queue chart shows: how many requests of each class waited, over the last pictures. Bounded by
 * `HISTORY_SAMPLES_MAX`, so that a console that stays open for a week holds what one of five minutes holds.
 */
import type { Picture } from '../wire.ts';

export const HISTORY_SAMPLES_MAX = 600;
/** The gateway allows 16. */
export const HISTORY_CLASSES_MAX = 32;

export interface History {
  /** Seconds since 1970. */
  readonly times: number[];
  /** By class, null where the class was not there; each as long as `times`. */
  readonly depths: ReadonlyMap<string, (number | null)[]>;
  add(picture: Picture): void;
}

export function createHistory(): History {
  const times: number[] = [];
  const depths = new Map<string, (number | null)[]>();
  return {
    times,
    depths,
    add({ at, queue }) {
      times.push(at / 1_000);
      for (const name of Object.keys(queue.byClass)) {
        if (!depths.has(name) && depths.size < HISTORY_CLASSES_MAX)
          depths.set(
            name,
            Array.from({ length: times.length - 1 }, () => null),
          );
      }
      for (const [name, row] of depths) row.push(queue.byClass[name]?.depth ?? null);
      if (times.length <= HISTORY_SAMPLES_MAX) return;
      times.shift();
      for (const [name, row] of depths) {
        row.shift();
        if (row.every((depth) => depth === null)) depths.delete(name);
      }
    },
  };
}
