import { expect, test } from 'vitest';
import { sampleAt, US_PER_S } from '../../../../test/support/samples.ts';
import type { NodeSample, Sample } from '../sample.ts';
import { nodesSince, useOver } from './since.ts';

/** Eight tasks at all times on a node that has that many places. */
function sampleOf(second: number, slots: number): Sample {
  const sums = { count: 0, sum: 0, squares: 0 };
  const inflightUs = 8 * second * US_PER_S;
  const node: NodeSample = {
    id: 'a',
    hardware: '',
    state: 'active',
    isOpen: true,
    isReady: true,
    inflight: 8,
    slots,
    drainUs: 0,
    capacity: 1,
    inflightUs,
    started: 0,
    startedWorkUs: 0,
    served: 0,
    servedWorkUs: 0,
    failed: 0,
    refused: 0,
    elapsedUs: 0,
    flips: 0,
    predictions: sums,
    paces: [],
  };
  return sampleAt(second, { slots, inflight: 8, inflightUs, nodes: [node] });
}

test.each([
  ['has room', 16, 0.5],
  ['is on trial, with one place for what it had before', 1, 1],
])('nodesSince tells the use of a node that %s', (_, slots, use) => {
  expect(nodesSince(sampleOf(0, slots), sampleOf(10, slots))).toMatchObject([{ use }]);
});

test.each([
  ['have room', 16, 0.5],
  ['are closed and still at work', 0, 1],
])('useOver tells the use of nodes that %s', (_, slots, use) => {
  expect(useOver(sampleOf(0, slots), sampleOf(10, slots))).toBe(use);
});
