import { describe, expect, test } from 'vitest';
import { policySpec, scenarioSpec, streamSpec } from '../../test/support/scenarios.ts';
import { S } from '../../test/support/specs.ts';
import { defaultSchedulerConfig } from '../core/config/defaults.ts';
import { disturbanceOf, runScenario } from './run-scenario.ts';

const load = (times: number): ReturnType<typeof streamSpec> =>
  streamSpec({ arrivals: { kind: 'poisson', rate: { kind: 'load', load: times } } });

describe('runScenario', () => {
  test('serves everybody below capacity: goodput is the load, waits are short, groups agree', () => {
    const { report } = runScenario(scenarioSpec(), policySpec(), 1);
    expect(report.all.attained).toBe(1);
    expect(report.all.offered).toBeGreaterThan(600);
    expect(report.goodputRatio).toBeGreaterThan(0.5);
    expect(report.goodputRatio).toBeLessThan(0.7);
    expect(report.busyRatio).toBeCloseTo(report.goodputRatio, 1);
    expect(report.byClass['normal']).toEqual(report.all);
    expect(report.byStream['chat']).toEqual(report.all);
    expect(report.byTenant['t']).toMatchObject(report.all);
    expect(report.bySize['1-2s']).toEqual(report.all);
    expect(report.byTenant['t']?.acceleratorSeconds).toBeCloseTo(report.all.workSeconds, 3);
    const served = Object.values(report.nodes).reduce((sum, node) => sum + node.served, 0);
    expect(served).toBe(report.requests);
    expect(report.all.waitMs.p50).toBe(0);
    expect(report.all.responseMs.p50).toBe(1_000);
  });

  test('at twice the capacity serves what the fleet can do, and says how many were refused', () => {
    const { report } = runScenario(scenarioSpec({ streams: [load(2)] }), policySpec(), 1);
    expect(report.goodputRatio).toBeGreaterThan(0.97);
    expect(report.goodputRatio).toBeLessThanOrEqual(1);
    expect(report.all.attained).toBeGreaterThan(0.45);
    expect(report.all.attained).toBeLessThan(0.6);
    expect(report.all.missed).toBeCloseTo(1 - report.all.attained, 10);
    expect(report.all.refused + report.all.served).toBe(report.all.offered);
    expect(report.peakOpen).toBeGreaterThan(4);
    expect(report.all.maxWaitMs).toBeGreaterThanOrEqual(report.all.waitMs.max);
  });

  test('counts users who arrive within the window only', () => {
    const scenario = scenarioSpec();
    const whole = runScenario(scenario, policySpec(), 3).report;
    const part = runScenario(
      { ...scenario, window: { from: 100 * S, until: 200 * S } },
      policySpec(),
      3,
    ).report;
    expect(part.decisionHash).toBe(whole.decisionHash);
    expect(part.all.offered / whole.all.offered).toBeGreaterThan(0.25);
    expect(part.all.offered / whole.all.offered).toBeLessThan(0.42);
    expect(part.goodputRatio).toBeGreaterThan(0.45);
  });

  test('gives the same for the same seed, other users for another', () => {
    const [one, same, other] = [1, 1, 2].map(
      (seed) => runScenario(scenarioSpec(), policySpec(), seed).report,
    );
    expect({ ...same, wallSeconds: 0 }).toEqual({ ...one, wallSeconds: 0 });
    expect(other?.decisionHash).not.toBe(one?.decisionHash);
  });

  test('samples queues, load and nodes over time', () => {
    const scenario = scenarioSpec({ sampleUs: 10 * S, streams: [load(2)] });
    const { samples } = runScenario(scenario, policySpec(), 1);
    expect(samples?.atSeconds.length).toBe(42);
    expect(samples?.nodes.map(({ id }) => id)).toEqual(['node-1', 'node-2', 'node-3', 'node-4']);
    expect(Math.max(...(samples?.queued['normal'] ?? []))).toBeGreaterThan(4);
    expect(samples?.running.slice(1, 28).every((count) => count === 4)).toBe(true);
    expect(samples?.nodes[0]?.busyRatio[10]).toBeCloseTo(1, 5);
    expect(samples?.queued['normal']?.at(-1)).toBe(0);
  });

  test('counts deadlines from the first try, and beside it from the try that was served', () => {
    const users = {
      triesMax: 8,
      patientShare: 0,
      thinkUs: [S, 2 * S],
      hangsUp: true,
      tellsCount: true,
    } as const;
    const classes = [{ name: 'normal', share: 1, deadlineUs: 3 * S }];
    const streams = [{ ...load(2), users, classes }];
    const { report } = runScenario(scenarioSpec({ streams }), policySpec(), 1);
    expect(report.all.attained).toBeLessThan(report.all.answered - 0.1);
    expect(report.goodputRatio).toBeLessThan(report.goodputByTryRatio - 0.1);
    expect(report.goodputByTryRatio).toBeGreaterThan(0.97);
    expect(report.goodputByTryRatio).toBeLessThanOrEqual(1);
  });

  test('tells what part of the attempts gave way to others', () => {
    const low = streamSpec({
      name: 'low',
      arrivals: { kind: 'poisson', rate: { kind: 'load', load: 2 } },
      classes: [{ name: 'low', share: 1, deadlineUs: 600 * S }],
      sizes: { kind: 'work', meanUs: 60 * S, sigma: 0 },
    });
    const urgent = streamSpec({
      name: 'urgent',
      arrivals: { kind: 'poisson', rate: { kind: 'per-second', perSecond: 0.2 } },
      classes: [{ name: 'critical', share: 1, deadlineUs: 4 * S }],
    });
    const config = defaultSchedulerConfig({ preemption: { budgetRatio: 1, budgetReserve: 100 } });
    const { report } = runScenario(
      scenarioSpec({ streams: [low, urgent], config }),
      policySpec({ config }),
      1,
    );
    const { low: lower, urgent: upper } = report.byStream;
    expect(lower?.preemptedRatio).toBeGreaterThan(0.2);
    expect(lower?.preemptedRatio).toBeLessThanOrEqual(1);
    expect(upper?.preemptedRatio).toBe(0);
  });

  test('tells how long those whose node was cut off waited for another', () => {
    const streams = [streamSpec({ classes: [{ name: 'normal', share: 1, deadlineUs: 20 * S }] })];
    const nodes = { group: 'node', count: 2 };
    const cut = { at: 100 * S, kind: 'partition', nodes, forUs: 60 * S } as const;
    const policy = policySpec({ policy: 'least-connections' });
    const { report } = runScenario(scenarioSpec({ streams, faults: [cut] }), policy, 1);
    expect(report.retriedRatio).toBeGreaterThan(0.5);
    // A connection that nobody answers is given up after a second.
    expect(report.retryDelayMs?.p50).toBeGreaterThanOrEqual(1_000);
    expect(report.retryDelayMs?.p50).toBeLessThan(20_000);
    expect(runScenario(scenarioSpec(), policySpec(), 1).report.retryDelayMs).toBeUndefined();
  });

  test('tells how long a spike is felt after it', () => {
    const course = [
      { from: 100 * S, times: 6 },
      { from: 160 * S, times: 1 },
    ];
    const scenario = scenarioSpec({ streams: [{ ...load(0.5), course }] });
    expect(disturbanceOf(scenario)).toEqual({ from: 100 * S, until: 160 * S });
    const { report } = runScenario(scenario, policySpec(), 1);
    expect(report.recoverySeconds).toBeGreaterThanOrEqual(0);
    expect(report.recoverySeconds).toBeLessThan(60);
    expect(report.goodputRecoverySeconds).toBeLessThanOrEqual(20);
    expect(report.answersRecoverySeconds).toBeLessThanOrEqual(20);
    expect(runScenario(scenarioSpec(), policySpec(), 1).report.recoverySeconds).toBeUndefined();
  });

  test('tells load and goodput of each phase of the course', () => {
    const course = [
      { from: 100 * S, times: 4 },
      { from: 200 * S, times: 1 },
    ];
    const scenario = scenarioSpec({ streams: [{ ...load(0.5), course }] });
    const { report } = runScenario(scenario, policySpec(), 1);
    const phases = Object.values(report.byPhase ?? {});
    expect(phases.map(({ fromSeconds }) => fromSeconds)).toEqual([0, 100, 200]);
    expect(phases[1]?.offeredRatio).toBeGreaterThan(1.8);
    expect(phases[1]?.usedRatio).toBeGreaterThan(0.97);
    expect(phases[1]?.all.attained).toBeLessThan(0.6);
    expect(phases[2]?.all.attained).toBeGreaterThan(0.98);
    const offered = phases.reduce((sum, { all }) => sum + all.offered, 0);
    expect(offered).toBe(report.all.offered);
    expect(runScenario(scenarioSpec(), policySpec(), 1).report.byPhase).toBeUndefined();
  });

  test('judges waits against what shares promise: kept by fair queueing, not by one queue for all', () => {
    const mice = {
      ...load(0.2),
      name: 'mice',
      tenants: { kind: 'many', prefix: 'mouse', count: 50, zipf: 0 },
    } as const;
    const scenario = scenarioSpec({ streams: [mice, { ...load(4), name: 'elephant' }] });
    const bound = (policy: string): number | undefined =>
      runScenario(scenario, policySpec({ policy }), 1).report.waitBound?.ratioMax;
    expect(bound('spillway')).toBeLessThan(1);
    expect(bound('fifo')).toBeGreaterThan(2);
  });
});
