/**
 * Reads the test runner's JSON report and tells it in one line. A run that could not collect a file, that broke outside
 * of a test, or that found no test at all counts as failed: silence must never look like success.
 */

export interface TestReport {
  readonly testResults: readonly TestFileReport[];
}

export interface TestFileReport {
  readonly name: string;
  readonly status: string;
  readonly message?: string;
  readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
}

export interface TestSummary {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Skipped tests by file, in the report's order. */
  readonly leftOut: ReadonlyMap<string, number>;
  /** Failures that belong to no test. */
  readonly brokenFiles: readonly string[];
}

export function summarize(report: TestReport, exitCode: number): TestSummary {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const leftOut = new Map<string, number>();
  const brokenFiles: string[] = [];
  for (const file of report.testResults) {
    const failedBefore = counts.failed;
    for (const { status } of file.assertionResults) {
      if (status === 'passed') counts.passed += 1;
      else if (status === 'failed') counts.failed += 1;
      else {
        counts.skipped += 1;
        leftOut.set(file.name, (leftOut.get(file.name) ?? 0) + 1);
      }
    }
    if (file.status === 'failed' && counts.failed === failedBefore) {
      counts.failed += 1;
      brokenFiles.push(file.name);
    }
  }
  const ranNothing = counts.passed + counts.failed === 0;
  if (counts.failed === 0 && (exitCode !== 0 || ranNothing)) {
    counts.failed = 1;
    brokenFiles.push(ranNothing ? 'no test ran' : `the runner ended with code ${exitCode} outside of a test`);
  }
  return { ...counts, leftOut, brokenFiles };
}

export function summaryLine(summary: Pick<TestSummary, 'passed' | 'failed' | 'skipped'>): string {
  const skipped = summary.skipped === 0 ? '' : `, ${summary.skipped} skipped`;
  return `${summary.passed} passed, ${summary.failed} failed${skipped}`;
}
