import { describe, expect, test } from 'vitest';
import { summarize, summaryLine } from './test-summary.ts';

const file = (name: string, statuses: readonly string[], status = 'passed') => ({
  name,
  status,
  assertionResults: statuses.map((each) => ({ fullName: 't', status: each })),
});

describe('summarize', () => {
  test('counts tests over files and names the files with skipped ones', () => {
    const report = {
      testResults: [file('a', ['passed', 'skipped']), file('b', ['passed', 'failed'], 'failed')],
    };
    const summary = summarize(report, 1);
    expect(summaryLine(summary)).toBe('2 passed, 1 failed, 1 skipped');
    expect([...summary.leftOut]).toEqual([['a', 1]]);
  });

  test('counts a file that could not be collected as failed', () => {
    const summary = summarize({ testResults: [file('a', ['passed']), file('b', [], 'failed')] }, 1);
    expect(summaryLine(summary)).toBe('1 passed, 1 failed');
    expect(summary.brokenFiles).toEqual(['b']);
  });

  test('counts an error outside of any test as failed', () => {
    expect(summarize({ testResults: [file('a', ['passed'])] }, 1).failed).toBe(1);
  });

  test('counts a run without any test as failed, also when the runner is content', () => {
    expect(summarize({ testResults: [] }, 0)).toMatchObject({ failed: 1, brokenFiles: ['no test ran'] });
    expect(summarize({ testResults: [file('a', ['skipped'])] }, 0).failed).toBe(1);
  });
});
