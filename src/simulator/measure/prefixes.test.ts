import { describe, expect, test } from 'vitest';
import type { Demand } from '../machines/machine.ts';
import { Prefixes, type PrefixNode } from './prefixes.ts';

function node(prefixBlocks: number, asked: number, hit: number): PrefixNode {
  return { spec: { prefixBlocks }, machine: { prefixStats: { blocksAsked: asked, blocksHit: hit } } };
}

function prompt(...blocks: number[]): Demand {
  return { kind: 'text', promptTokens: 10, outputTokens: 1, blocks };
}

const IDLE = { served: 0, busyRatio: 0, workSeconds: 0 };

describe('Prefixes', () => {
  test('are measured only where a node keeps prompts', () => {
    expect(Prefixes.of([node(0, 0, 0), { spec: {}, machine: {} }])).toBeUndefined();
  });

  test('tell what nodes had, and what one cache as large as theirs together would have had', () => {
    const prefixes = Prefixes.of([node(2, 6, 2), node(2, 4, 1)]);
    // Of three blocks, each asked for twice, one cache of four has all of the second time; one of two would have none.
    for (const blocks of [[1], [2], [3], [1], [2], [3]]) prefixes?.asked(prompt(...blocks));
    expect(prefixes?.report([IDLE, IDLE])).toMatchObject({
      blocksAsked: 10,
      hitRatio: 0.3,
      sharedHitRatio: 0.5,
      hitOfShared: 0.6,
    });
  });

  test('tell how much more than the mean one node did', () => {
    const prefixes = Prefixes.of([node(2, 0, 0)]);
    const nodes = [
      { served: 1, busyRatio: 0.2, workSeconds: 30 },
      { served: 1, busyRatio: 0.6, workSeconds: 10 },
    ];
    const report = prefixes?.report(nodes);
    expect(report?.busyMaxOfMean).toBeCloseTo(1.5, 9);
    expect(report?.workMaxOfMean).toBeCloseTo(1.5, 9);
    expect(prefixes?.report([IDLE]).busyMaxOfMean).toBe(0);
  });
});
