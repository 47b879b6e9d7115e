import { describe, expect, test } from 'vitest';
import { scene, SIGNAL_CASES, type SignalCase, traffic, WORKFLOW } from '../../test/support/signal-cases.ts';
import { busyMemory, runCase } from '../../test/support/signal-run.ts';
import { policySpec } from '../../test/support/scenarios.ts';
import { S } from '../../test/support/specs.ts';
import { type OutsideSample, SIGNAL_NAMES } from '../core/signals/index.ts';
import { runScenario } from './run-scenario.ts';

describe('the detectors in virtual time', () => {
  test.each(SIGNAL_CASES.map((one) => [one.fault, one] as const))(
    'raise what is wrong when %s',
    (_fault, one) => {
      const { raised } = runCase(one, 1).signals;
      for (const signal of one.raises) {
        const found = raised.find((row) => row.signal === signal);
        expect(found, signal).toBeDefined();
        expect(found?.at).toBeGreaterThanOrEqual(one.at);
        expect(found?.at).toBeLessThanOrEqual(one.at + one.withinUs);
      }
      const declared: readonly string[] = [...one.raises, ...one.mayRaise];
      expect(raised.filter(({ signal }) => !declared.includes(signal))).toEqual([]);
    },
  );

  test.each([0.2, 0.6, 0.85])(
    'find nothing in twenty minutes of healthy noise at %s of the capacity',
    (load) => {
      const scenario = scene({
        spanUs: 1_200 * S,
        drainUs: 0,
        streams: [traffic({ stages: WORKFLOW }, load)],
      });
      const { signals } = runScenario(scenario, policySpec(), 7, { watchesSignals: true });
      expect(signals?.samples).toBe(1_200);
      expect(signals?.raised).toEqual([]);
    },
  );

  test('find nothing in memory of busy nodes that goes up and down', () => {
    const { raised, samples } = runCase(busyMemory(0.85), 7).signals;
    expect(samples).toBe(1_200);
    expect(raised).toEqual([]);
  });

  test('name the most frequent cause of the last minute, not of all time', () => {
    const one = SIGNAL_CASES.find(({ raises }) => raises.includes('ghost-queue')) as SignalCase;
    const outside = (now: number): OutsideSample => ({
      failures: [
        { id: 1, cause: '500: before', count: 10_000 },
        { id: 2, cause: '500: out of memory', count: Math.max(0, Math.floor((now - one.at) / (S / 10))) },
      ],
    });
    const { raised } = runCase({ ...one, signals: { outside } }, 1).signals;
    const found = raised.find(({ signal }) => signal === 'ghost-queue');
    expect(found?.evidence).toMatchObject({ cause: '500: out of memory', ofCause: 1 });
  });

  test('change no decision by looking on', () => {
    const scenario = scene({ spanUs: 120 * S });
    const plain = runScenario(scenario, policySpec(), 3);
    const watched = runScenario(scenario, policySpec(), 3, { watchesSignals: true });
    expect(watched.report.decisionHash).toBe(plain.report.decisionHash);
    expect(plain.signals).toBeUndefined();
  });

  test('have a fault each', () => {
    const covered = new Set(SIGNAL_CASES.flatMap(({ raises }) => raises));
    // Have tests of their own: a fleet that is exchanged, real pages of engines.
    const apart = ['affinity-loss', 'stale-readings'];
    expect(SIGNAL_NAMES.filter((name) => !covered.has(name))).toEqual(apart);
  });
});
