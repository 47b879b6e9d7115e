import { describe, expect, test } from 'vitest';
import { policyReport, policyRuns, results, samples } from '../../../../test/support/simulation-results.ts';
import type { Verdict } from '../judge.ts';
import { reportPage } from './page.ts';
import { stride, thinned } from './series.ts';

const TWO = results({
  '2x <b>': [
    policyRuns('spillway', [policyReport(0.9)], samples(4)),
    policyRuns('old', [policyReport(0.5)], samples(400)),
  ],
});
const MISSED: Verdict = {
  bar: { about: 'a & b', policy: 'old', variant: '', metric: 'goodputRatio', atLeast: 0.9 },
  variant: '2x <b>',
  value: 0.25,
  kind: 'missed',
};

describe('reportPage', () => {
  const page = reportPage(TWO, [MISSED]);

  test('needs nothing else: no script, no address beyond the name of the SVG format', () => {
    expect(page).not.toMatch(/<script|<link|<img|@import/i);
    const addresses = [...page.matchAll(/https?:[^"' )<]+/g)].map(([address]) => address);
    expect(new Set(addresses)).toEqual(new Set(['http://www.w3.org/2000/svg']));
  });

  test('draws each plot for each policy, with a label and a title on the axes', () => {
    const labels = [...page.matchAll(/<svg[^>]*aria-label="([^"]+)"/g)].map(([, label]) => label);
    expect(labels.filter((label) => label === 'Requests that wait, by class and time').length).toBe(2);
    expect(labels.filter((label) => label === 'Time until each node is done, by time').length).toBe(2);
    expect(labels.filter((label) => label === 'Offered work over capacity, by time').length).toBe(1);
    for (const title of [
      'time (minutes)',
      'waiting requests',
      '95th percentile of waits (s)',
      'users per second',
    ])
      expect(page).toContain(title);
  });

  test('gives policies side by side the same scale', () => {
    const [ours, old] = [...page.matchAll(/<svg[^>]*aria-label="Requests that wait[\s\S]*?<\/svg>/g)].map(
      ([svg]) => [...svg.matchAll(/>(\d+)<\/text>/g)].map(([, tick]) => tick),
    );
    expect(ours?.length).toBeGreaterThan(3);
    expect(ours).toEqual(old);
  });

  test('tells figures and bars, and lets no name become markup', () => {
    expect(page).toContain('<th>in time: critical</th><td>90 %</td><td>50 %</td>');
    expect(page).toContain('<td class="missed">MISSED</td>');
    expect(page).toContain('a &amp; b');
    expect(page).toContain('2x &lt;b&gt;');
    expect(page).not.toContain('2x <b>');
  });
});

test('thinned joins neighbours so that a plot has no more points than pixels', () => {
  expect(stride(720)).toBe(2);
  expect(thinned([1, 3, 5], 2, 'mean')).toEqual([2, 5]);
  expect(thinned([1, 3, 5, 4], 2, 'max')).toEqual([3, 5]);
  expect(thinned([1, 3, 5], 2, 'last')).toEqual([3, 5]);
});
