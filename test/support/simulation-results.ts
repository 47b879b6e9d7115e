/** Small results of a simulation, made by hand, for what reports say of them. */
import { defaultSchedulerConfig } from '../../src/core/config/index.ts';
import type { GroupReport, PolicyReport, Quantiles } from '../../src/simulator/measure/report.ts';
import type { Samples } from '../../src/simulator/measure/samples.ts';
import type { PolicyRuns, SimulationResults, VariantRuns } from '../../src/simulator/report/results.ts';

function quantiles(ms: number): Quantiles {
  return { mean: ms, p50: ms, p95: 2 * ms, p99: 3 * ms, max: 4 * ms };
}

function group(attained: number, ms: number): GroupReport {
  const counts = { offered: 100, served: 90, degraded: 0, refused: 10, failed: 0, gaveUp: 0 };
  return {
    ...counts,
    attained,
    answered: 0.9,
    missed: 1 - attained,
    preemptedRatio: 0,
    waitMs: quantiles(ms),
    maxWaitMs: 4 * ms,
    responseMs: quantiles(10 * ms),
    workSeconds: 50,
  };
}

export function policyReport(attained: number, overrides: Partial<PolicyReport> = {}): PolicyReport {
  const all = group(attained, 100);
  return {
    decisionHash: `hash-${attained}`,
    requests: 100,
    simulatedSeconds: 60,
    wallSeconds: 1,
    crashes: 0,
    resumeSeconds: 0,
    goodputRatio: attained / 2,
    goodputByTryRatio: attained / 2,
    busyRatio: 0.5,
    swapsPerRequest: 0,
    peakOpen: 7,
    all,
    byClass: { critical: all, low: group(attained / 2, 200) },
    byStream: { users: all },
    byTenant: {},
    bySize: { '0.5-1s': all },
    nodes: {},
    ...overrides,
  };
}

export function policyRuns(name: string, reports: readonly PolicyReport[], samples?: Samples): PolicyRuns {
  return { name, reports, samples };
}

export function results(variants: Readonly<Record<string, readonly PolicyRuns[]>>): SimulationResults {
  const [seeds = 1] = Object.values(variants).map((policies) => policies[0]?.reports.length ?? 1);
  return {
    name: 'small',
    about: 'Made by hand.',
    seed: 1,
    seeds,
    variants: Object.entries(variants).map(
      ([name, policies]): VariantRuns => ({ name, scenario: SCENARIO, policies }),
    ),
  };
}

const SCENARIO: VariantRuns['scenario'] = {
  name: 'small',
  about: '',
  spanUs: 60_000_000,
  drainUs: 0,
  window: { from: 0, until: 60_000_000 },
  sampleUs: 0,
  seed: 1,
  config: defaultSchedulerConfig(),
  fleet: [],
  streams: [],
  faults: [],
  policies: [],
  bars: [],
};

/** Four periods of 10 s on two nodes. */
export function samples(peak: number): Samples {
  return {
    periodUs: 10_000_000,
    atSeconds: [10, 20, 30, 40],
    offeredRatio: [0.5, 2, 0.5, 0],
    triesPerSecond: [1, 4, 2, 0],
    queued: { critical: [0, 1, 0, 0], low: [0, peak, 2, 0] },
    running: [2, 2, 1, 0],
    waitMs: [10, 5_000, 100, 0],
    ends: { served: [10, 20, 10, 0], refused: [0, peak, 0, 0] },
    nodes: ['a-1', 'a-2'].map((id) => ({
      id,
      busyRatio: [0.5, 1, 1, 0],
      drainMs: [100, 20_000, 10_000, 0],
    })),
  };
}
