/** A stream of traffic with a default for everything: a test names only what it is about. */
import type { StreamSpec } from '../../src/simulator/scenario/types.ts';
import { S } from './specs.ts';

/** 10 requests per second of one second of work, class `normal` within 60 s, tenant `t`, model `m`, one try each. */
export function streamSpec(change: Partial<StreamSpec> = {}): StreamSpec {
  return {
    name: 'stream',
    arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 10 } },
    course: [],
    classes: [{ name: 'normal', share: 1, deadlineUs: 60 * S }],
    serviceTimesMin: 0,
    tenants: { kind: 'one', id: 't' },
    models: [{ id: 'm', share: 1 }],
    modelSwitch: undefined,
    stages: [],
    sizes: { kind: 'work', meanUs: S, sigma: 0 },
    estimateSigma: 0,
    serviceSigma: 0,
    isStream: false,
    users: { triesMax: 1, patientShare: 0, thinkUs: [S, 5 * S], hangsUp: false, tellsCount: false },
    ...change,
  };
}
