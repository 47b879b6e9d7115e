/** Small scenarios for tests of the simulator: everything has a default, a test names only what it is about. */
import { defaultSchedulerConfig } from '../../src/core/config/defaults.ts';
import type {
  EngineSpec,
  NodeGroup,
  PolicySpec,
  Scenario,
  StreamSpec,
} from '../../src/simulator/scenario/types.ts';
import { S } from './specs.ts';
import { streamSpec as steadyStream } from './stream-spec.ts';

/** Sixteen texts at a time, with prompts of ten thousand tokens each. */
export const TEXT_ENGINE: EngineSpec = {
  kind: 'text-batch',
  sequencesMax: 16,
  cacheTokensMax: 200_000,
  prefixBlocksMax: 0,
  tokensPerBlock: 16,
};

/** Four reference machines of one slot that beat every 5 s. */
export function nodeGroup(change: Partial<NodeGroup> = {}): NodeGroup {
  return {
    name: 'node',
    count: 4,
    hardware: 'reference',
    statedHardware: '',
    speed: 1,
    speedSigma: 0,
    engine: { kind: 'slots', slots: 1 },
    models: ['m'],
    residentMax: 0,
    swapUs: 0,
    zone: '',
    rttUs: 0,
    beatUs: 5 * S,
    heartbeats: true,
    canAbort: true,
    ratesKnown: true,
    ...change,
  };
}

/** Requests of one second, 60 % of capacity, one try each, 60 s of time. */
export function streamSpec(change: Partial<StreamSpec> = {}): StreamSpec {
  return steadyStream({
    name: 'chat',
    arrivals: { kind: 'poisson', rate: { kind: 'load', load: 0.6 } },
    users: { triesMax: 1, patientShare: 1, thinkUs: [S, 2 * S], hangsUp: false, tellsCount: true },
    ...change,
  });
}

/** Five minutes, all of which count, and two to let them end. */
export function scenarioSpec(change: Partial<Scenario> = {}): Scenario {
  const spanUs = change.spanUs ?? 300 * S;
  return {
    name: 'test',
    about: '',
    spanUs,
    drainUs: 120 * S,
    window: { from: 0, until: spanUs },
    sampleUs: 0,
    seed: 1,
    config: defaultSchedulerConfig({}),
    fleet: [nodeGroup()],
    streams: [streamSpec()],
    faults: [],
    policies: [],
    bars: [],
    ...change,
  };
}

export function policySpec(change: Partial<PolicySpec> = {}): PolicySpec {
  return {
    name: 'spillway',
    policy: 'spillway',
    config: defaultSchedulerConfig({}),
    options: {},
    process: { tasksMax: 0, restartUs: 10 * S, registryIsDurable: true },
    ...change,
  };
}
