import { describe, expect, test } from 'vitest';
import { policyReport, policyRuns, results } from '../../../test/support/simulation-results.ts';
import type { Bar } from '../scenario/types.ts';
import { judgeBars } from './judge.ts';
import { numberAt } from './look-up.ts';
import { figureText, reportRows } from './rows.ts';
import { resultsToJson } from './to-json.ts';

describe('numberAt', () => {
  test('finds figures by path, also below keys with dots, and those of everybody without a prefix', () => {
    const report = policyReport(0.8);
    expect(numberAt(report, 'byClass.low.attained')).toBe(0.4);
    expect(numberAt(report, 'bySize.0.5-1s.responseMs.p99')).toBe(3_000);
    expect(numberAt(report, 'responseMs.p95')).toBe(2_000);
    expect(numberAt(report, 'byClass.normal.attained')).toBeUndefined();
    expect(numberAt(report, 'decisionHash')).toBeUndefined();
  });
});

function bar(fields: Partial<Bar>): Bar {
  return { about: '', policy: 'ours', variant: '', metric: 'byClass.critical.attained', ...fields };
}

describe('judgeBars', () => {
  const both = results({
    calm: [
      policyRuns('ours', [policyReport(0.9), policyReport(1)]),
      policyRuns('old', [policyReport(0.5), policyReport(0.5)]),
    ],
    storm: [policyRuns('ours', [policyReport(0.6), policyReport(0.8)])],
  });
  const judged = (fields: Partial<Bar>): unknown =>
    judgeBars([bar(fields)], both).map(({ variant, value, kind }) => [variant, value?.toFixed(3), kind]);

  test('judges the mean over seeds, in every variant unless one is named', () => {
    expect(judged({ atLeast: 0.9 })).toEqual([
      ['calm', '0.950', 'held'],
      ['storm', '0.700', 'missed'],
    ]);
    expect(judged({ atLeast: 0.7, atMost: 0.7, variant: 'storm' })).toEqual([['storm', '0.700', 'held']]);
  });

  test('takes the multiple of another policy or of another variant', () => {
    expect(judged({ atMost: 2, variant: 'calm', of: { policy: 'old', variant: '' } })).toEqual([
      ['calm', '1.900', 'held'],
    ]);
    expect(judged({ atLeast: 0.8, variant: 'storm', of: { policy: '', variant: 'calm' } })).toEqual([
      ['storm', '0.737', 'missed'],
    ]);
  });

  test('takes the multiple of another figure', () => {
    const of = { policy: '', variant: '', metric: 'byClass.low.attained' };
    expect(judged({ atMost: 2, atLeast: 2, variant: 'calm', of })).toEqual([['calm', '2.000', 'held']]);
    expect(judged({ atMost: 1, variant: 'calm', of: { ...of, metric: 'byClass.normal.attained' } })).toEqual([
      ['calm', 'NaN', 'missed'],
    ]);
  });

  test('judges the worst seed where every seed is asked for', () => {
    const every = { everySeed: true, variant: 'calm' };
    expect(judged({ ...every, atLeast: 0.95 })).toEqual([['calm', '0.900', 'missed']]);
    expect(judged({ ...every, atMost: 0.95 })).toEqual([['calm', '1.000', 'missed']]);
    expect(judged({ ...every, atLeast: 0.8 })).toEqual([['calm', '0.900', 'held']]);
    expect(judged({ ...every, atLeast: 0.95, atMost: 0.96 })).toEqual([['calm', '0.900', 'missed']]);
    expect(judged({ ...every, atLeast: 0.8, atMost: 0.85 })).toEqual([['calm', '1.000', 'missed']]);
    expect(judged({ ...every, atMost: 2, of: { policy: 'old', variant: '' } })).toEqual([
      ['calm', '2.000', 'held'],
    ]);
    expect(judged({ ...every, metric: 'byClass.normal.attained', atMost: 1 })).toEqual([
      ['calm', 'NaN', 'missed'],
    ]);
  });

  test('misses a figure that is not there, and leaves open what was not run', () => {
    expect(judged({ metric: 'byClass.normal.attained', atMost: 1, variant: 'calm' })).toEqual([
      ['calm', 'NaN', 'missed'],
    ]);
    expect(judged({ policy: 'old', atMost: 1, variant: 'storm' })).toEqual([['storm', undefined, 'not-run']]);
    expect(judged({ atMost: 1, variant: 'quake' })).toEqual([['quake', undefined, 'not-run']]);
  });
});

describe('resultsToJson', () => {
  test('gives the reports of one seed as they are', () => {
    const json = resultsToJson(results({ '': [policyRuns('ours', [policyReport(0.9)])] }), []);
    expect(json).toMatchObject({
      scenario: 'small',
      seeds: 1,
      policies: {
        ours: {
          decisionHash: 'hash-0.9',
          requests: 100,
          byClass: { critical: { attained: 0.9, waitMs: { p99: 300 } } },
        },
      },
    });
    expect(json).not.toHaveProperty('variants');
  });

  test('gives every number of several seeds as a figure, and what never came as null', () => {
    const reports = [
      policyReport(0.8, { recoverySeconds: 10 }),
      policyReport(1, { recoverySeconds: Number.POSITIVE_INFINITY }),
    ];
    const json = resultsToJson(results({ '2x': [policyRuns('ours', reports)] }), []);
    const ours = {
      decisionHashes: ['hash-0.8', 'hash-1'],
      byClass: { critical: { attained: { mean: 0.9 }, offered: { mean: 100, low: 100, high: 100 } } },
      recoverySeconds: { mean: null },
    };
    expect(json).toMatchObject({ policies: { ours }, variants: { '2x': { policies: { ours } } } });
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
  });
});

describe('reportRows', () => {
  test('has a row for each figure that some policy has, with a cell for each policy', () => {
    const { variants } = results({
      '': [
        policyRuns('ours', [policyReport(0.9, { jain: 1 })]),
        policyRuns('old', [policyReport(0.5, { recoverySeconds: Number.POSITIVE_INFINITY })]),
      ],
    });
    const rows = new Map(
      reportRows(variants[0] as (typeof variants)[0]).map(({ label, cells }) => [label, cells]),
    );
    expect(rows.get('in time: critical')).toEqual(['90 %', '50 %']);
    expect(rows.get('response p99')).toEqual(['3 s', '3 s']);
    expect(rows.get('Jain fairness of tenants')).toEqual(['1', '']);
    expect(rows.has('swaps per request')).toBe(false);
    expect(rows.has('failed')).toBe(false);
  });
});

test('figureText chooses the unit by size and tells the interval of several seeds alone', () => {
  const around = (mean: number, half: number): Parameters<typeof figureText>[0] => ({
    mean,
    low: mean - half,
    high: mean + half,
  });
  expect(figureText(around(250.4, 10), 'ms')).toBe('250 ±10 ms');
  expect(figureText(around(20_550, 400), 'ms')).toBe('20.6 ±0.4 s');
  expect(figureText(around(0.97512, 0.004), 'percent')).toBe('97.5 ±0.4 %');
  expect(figureText(around(12_345, 0), 'number')).toBe('12,345');
  expect(figureText(around(Number.POSITIVE_INFINITY, 0), 'seconds')).toBe('never');
});
