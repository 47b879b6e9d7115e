/** The index of prefixes against caches that are kept and searched naively. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PREFIX_HOLDERS_MAX, type PrefixHolder, PrefixIndex } from './prefix-index.ts';

/** Blocks of a prompt in a tree of prompts: each id covers the way to it, as a chained hash does. */
function chained(words: readonly number[]): readonly number[] {
  const blocks: number[] = [];
  let id = 1;
  for (const word of words) blocks.push((id = id * 4 + word));
  return blocks;
}

/** The same belief kept as a list, the newest block first. */
class NaiveCache {
  readonly name: string;
  blocks: number[] = [];
  usedAt = 0;

  constructor(name: string) {
    this.name = name;
  }

  use(blocks: readonly number[], capacity: number): void {
    const kept = blocks.slice(0, capacity);
    this.blocks = [...kept, ...this.blocks.filter((block) => !kept.includes(block))].slice(0, capacity);
  }

  matched(blocks: readonly number[]): number {
    const missing = blocks.findIndex((block) => !this.blocks.includes(block));
    return missing < 0 ? blocks.length : missing;
  }
}

const NODES = 6;
const ENTRIES_MAX = 40;
const PROMPT = fc.array(fc.nat({ max: 3 }), { maxLength: 9 }).map(chained);
const STEP = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('use' as const), node: fc.nat(NODES - 1), blocks: PROMPT }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('forget' as const), node: fc.nat(NODES - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('restate' as const),
      node: fc.nat(NODES - 1),
      stated: fc.nat(20),
    }),
  },
);

class Both {
  readonly index = new PrefixIndex<NaiveCache>(ENTRIES_MAX);
  readonly holders: PrefixHolder<NaiveCache>[] = [];

  constructor() {
    for (let at = 0; at < NODES; at++) this.holders.push(this.index.join(new NaiveCache(`n${at}`), 8));
    this.#trim();
  }

  take(step: typeof STEP extends fc.Arbitrary<infer Step> ? Step : never): void {
    const holder = this.holders[step.node] as PrefixHolder<NaiveCache>;
    const naive = holder.owner;
    if (step.kind === 'use') {
      this.index.use(holder, step.blocks);
      naive.use(step.blocks, holder.capacity);
    } else if (step.kind === 'forget') {
      this.index.forget(holder);
      naive.blocks = [];
    } else {
      this.index.restate(holder, step.stated);
    }
    this.#trim();
  }

  #trim(): void {
    for (const { owner, capacity } of this.holders) owner.blocks = owner.blocks.slice(0, capacity);
  }
}

describe('PrefixIndex', () => {
  test('finds as much of a prompt on each node as a naive scan, whatever was used, forgotten and restated', () => {
    fc.assert(
      fc.property(
        fc.array(STEP, { maxLength: 60 }),
        fc.array(PROMPT, { minLength: 3, maxLength: 3 }),
        (steps, prompts) => {
          const both = new Both();
          for (const step of steps) both.take(step);
          for (const blocks of prompts) {
            for (const holder of both.holders)
              expect(both.index.matched(holder, blocks)).toBe(holder.owner.matched(blocks));
          }
        },
      ),
    );
  });

  test('gives the nodes with the longest matches, the longest first, as a naive scan does', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 60 }), PROMPT, (steps, blocks) => {
        const both = new Both();
        for (const step of steps) both.take(step);
        const found = both.index.longest(blocks);
        const expected = both.holders
          .map(({ owner }) => owner.matched(blocks))
          .filter((matched) => matched > 0)
          .sort((a, b) => b - a)
          .slice(0, PREFIX_HOLDERS_MAX);
        expect(found.map(({ owner }) => owner.matched(blocks))).toEqual(expected);
        expect(new Set(found).size).toBe(found.length);
      }),
    );
  });

  test('never exceeds the capacity of a node, nor its bound over all nodes', () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 80 }), (steps) => {
        const both = new Both();
        for (const step of steps) {
          both.take(step);
          let sum = 0;
          for (const { rows, capacity } of both.holders) {
            expect(rows.size).toBeLessThanOrEqual(capacity);
            sum += rows.size;
          }
          expect(both.index.size).toBe(sum);
          expect(sum).toBeLessThanOrEqual(ENTRIES_MAX);
        }
      }),
    );
  });

  test('gives those first who used the blocks last, of those who hold as many', () => {
    const index = new PrefixIndex<string>();
    const holders = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => index.join(name, 10));
    const blocks = chained([1, 2, 3]);
    for (const holder of holders) index.use(holder, blocks);
    index.use(holders[1] as PrefixHolder<string>, blocks);
    expect(index.longest(blocks).map(({ owner }) => owner)).toEqual(['b', 'f', 'e', 'd']);
  });

  test('keeps the beginning of a prompt that is longer than the cache, and loses the ends of others first', () => {
    const index = new PrefixIndex<string>();
    const holder = index.join('a', 4);
    index.use(holder, chained([1, 1, 1]));
    index.use(holder, chained([1, 2, 2]));
    expect(index.matched(holder, chained([1, 1, 1]))).toBe(2);
    index.use(holder, chained([3, 3, 3, 3, 3, 3]));
    expect(index.matched(holder, chained([3, 3, 3, 3, 3, 3]))).toBe(4);
    expect(index.matched(holder, chained([1, 2, 2]))).toBe(0);
  });

  test('shares its entries out in proportion once nodes state more than there are', () => {
    const index = new PrefixIndex<string>(100);
    const small = index.join('small', 50);
    index.use(small, chained(Array.from({ length: 24 }, () => 1)));
    const large = index.join('large', 450);
    expect([small.capacity, large.capacity]).toEqual([10, 90]);
    expect(small.rows.size).toBe(10);
    index.leave(large);
    expect([small.capacity, index.size]).toEqual([50, 10]);
  });
});
