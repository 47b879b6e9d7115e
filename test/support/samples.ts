/** Samples for tests of detectors: a healthy gateway, of which a test changes what it is about. */
import type { ClassSample, NodeSample, Sample } from '../../src/core/signals/index.ts';
import { PACE_STEPS } from '../../src/core/signals/tally.ts';

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

export function nodeSample(id: string, change: Partial<NodeSample> = {}): NodeSample {
  return {
    id,
    hardware: 'T4',
    state: 'active',
    isOpen: true,
    isReady: true,
    inflight: 0,
    slots: 1,
    drainUs: 0,
    capacity: 1,
    inflightUs: 0,
    started: 0,
    startedWorkUs: 0,
    served: 0,
    servedWorkUs: 0,
    failed: 0,
    refused: 0,
    elapsedUs: 0,
    flips: 0,
    predictions: { count: 0, sum: 0, squares: 0 },
    paces: [],
    ...change,
  };
}

export function classSample(name: string, change: Partial<ClassSample> = {}): ClassSample {
  return {
    name,
    share: 0.5,
    depth: 0,
    workUs: 0,
    oldestWaitUs: 0,
    running: 0,
    arrived: 0,
    dispatched: 0,
    waitS: 0,
    waitSquares: 0,
    dispatchedWorkUs: 0,
    served: 0,
    missed: 0,
    failed: 0,
    cancelled: 0,
    overtaken: 0,
    pace: { count: 0, sum: 0, squares: 0 },
    paceSteps: new Float64Array(PACE_STEPS),
    deadlineUsed: 0,
    ...change,
  };
}
