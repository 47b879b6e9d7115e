import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PrefixCache } from './prefix-cache.ts';

/** The same rule over a plain list, least recently used first. */
class NaiveCache {
  #kept: number[] = [];
  readonly #blocksMax: number;

  constructor(blocksMax: number) {
    this.#blocksMax = blocksMax;
  }

  use(blocks: readonly number[]): number {
    const missing = blocks.findIndex((id) => !this.#kept.includes(id));
    const hit = missing < 0 ? blocks.length : missing;
    for (const id of blocks.slice(0, this.#blocksMax).reverse()) {
      this.#kept = [...this.#kept.filter((other) => other !== id), id].slice(-this.#blocksMax);
    }
    return hit;
  }
}

describe('PrefixCache', () => {
  test('keeps what a list by last use would keep', () => {
    const prompt = fc.uniqueArray(fc.integer({ min: 0, max: 12 }), { maxLength: 8 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(prompt, { maxLength: 60 }),
        (blocksMax, prompts) => {
          const cache = new PrefixCache(blocksMax);
          const naive = new NaiveCache(blocksMax);
          for (const blocks of prompts) expect(cache.use(blocks)).toBe(naive.use(blocks));
          expect(cache.size).toBeLessThanOrEqual(blocksMax);
        },
      ),
    );
  });

  test('counts only blocks from the beginning, and forgets all when it is cleared', () => {
    const cache = new PrefixCache(5);
    cache.use([1, 2, 3]);
    expect(cache.use([9, 2, 3])).toBe(0);
    expect(cache.use([1, 2, 8])).toBe(2);
    cache.clear();
    expect(cache.use([1])).toBe(0);
    expect(cache.stats).toEqual({ blocksAsked: 10, blocksHit: 2 });
  });
});
