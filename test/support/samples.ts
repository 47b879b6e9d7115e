/** Samples for tests of detectors: a healthy gateway, of which a test changes what it is about. */
import type { Sample } from '../../src/core/signals/index.ts';

export const US_PER_S = 1_000_000;

export function sampleAt(seconds: number, change: Partial<Sample> = {}): Sample {
  return {
    at: seconds * US_PER_S,
    accounts: {
      arrived: 0,
      served: 0,
      degraded: 0,
      rejected: 0,
      evicted: 0,
      failed: 0,
      cancelled: 0,
      queued: 0,
      running: 0,
    },
    permits: 0,
    inside: 0,
    insideUs: 0,
    left: 0,
    stayedUs: 0,
    classes: [],
    nodes: [],
    nodesTotal: 0,
    openNodes: 0,
    slots: 0,
    inflight: 0,
    capacity: 0,
    inflightUs: 0,
    servedWorkUs: 0,
    waiting: [],
    tenants: [],
    gates: [],
    rejections: {},
    ladderStage: 0,
    isLadderSet: false,
    shedClasses: 0,
    retries: 0,
    comebacks: 0,
    promptWorkUs: 0,
    savedWorkUs: 0,
    fleetChanges: 0,
    fleetChangedAt: Number.NEGATIVE_INFINITY,
    ...change,
  };
}
