/** A short scenario with something of everything: unlike nodes, classes, retries, a spike, faults, a crash. */
import type { Scenario } from '../../src/simulator/scenario/types.ts';
import { nodeGroup, scenarioSpec, streamSpec } from './scenarios.ts';
import { S } from './specs.ts';

export const ROUGH: Scenario = scenarioSpec({
  name: 'rough',
  spanUs: 60 * S,
  drainUs: 30 * S,
  sampleUs: 5 * S,
  fleet: [
    nodeGroup({ name: 'slow', count: 6, speedSigma: 0.3, rttUs: 3_000 }),
    nodeGroup({ name: 'fast', count: 3, speed: 6, speedSigma: 0.1, ratesKnown: false }),
  ],
  streams: [
    streamSpec({
      arrivals: { kind: 'gamma', rate: { kind: 'load', load: 0.7 }, cv: 2 },
      course: [
        { from: 20 * S, times: 4 },
        { from: 35 * S, times: 1 },
      ],
      classes: [
        { name: 'critical', share: 0.2, deadlineUs: 10 * S },
        { name: 'normal', share: 0.5, deadlineUs: 20 * S },
        { name: 'low', share: 0.3, deadlineUs: 60 * S },
      ],
      tenants: { kind: 'many', prefix: 't', count: 12, zipf: 1 },
      sizes: { kind: 'work', meanUs: S, sigma: 0.8 },
      estimateSigma: 0.4,
      serviceSigma: 0.2,
      users: { triesMax: 3, patientShare: 0.5, thinkUs: [S, 3 * S], hangsUp: true, tellsCount: true },
    }),
  ],
  faults: [
    { at: 10 * S, kind: 'gray', nodes: { group: 'fast', count: 1 }, failShare: 0.3, forUs: 20 * S },
    { at: 15 * S, kind: 'partition', nodes: { group: 'slow', count: 2 }, forUs: 8 * S },
    { at: 25 * S, kind: 'slow', nodes: { group: 'slow', count: 3 }, times: 3, forUs: 10 * S },
    { at: 30 * S, kind: 'restart', nodes: { group: 'fast', count: 1 }, forUs: 2 * S },
    { at: 45 * S, kind: 'scheduler-crash', downUs: S },
  ],
});
