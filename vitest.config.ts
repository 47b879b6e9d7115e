/**
 * Three projects, one after another: unit tests beside the code, then tests over real sockets, two files at a time, then
 * those whose load or whose measure needs the machine alone.
 */
import { defineConfig } from 'vitest/config';

const UNIT = [
  'src',
  'conformance',
  'scripts',
  'bench',
  'engines',
  'console',
  'deploy',
  'test/scenarios',
  'test/support',
];

/** What these measure (goodput, places in use, cost of a refusal, frames) depends on who else works. */
const ALONE = [
  'test/e2e/console-load.test.ts',
  'test/integration/adaptive-concurrency.test.ts',
  'test/integration/bulkheads.test.ts',
  'test/integration/case-herd.test.ts',
  'test/integration/case-metastable.test.ts',
  'test/integration/contention-heat.test.ts',
  'test/integration/emulator-demo.test.ts',
];

// Tests wait for conditions; the limit is for what hangs, and a machine that is busy elsewhere is not that.
const OVER_SOCKETS = {
  setupFiles: ['scripts/test-setup.ts'],
  testTimeout: 120_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  test: {
    watch: false,
    projects: [
      {
        test: {
          name: 'unit',
          include: UNIT.map((folder) => `${folder}/**/*.test.ts`),
          exclude: ['**/node_modules/**'],
          setupFiles: ['scripts/test-setup.ts'],
          maxWorkers: 2,
          testTimeout: 30_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...OVER_SOCKETS,
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          exclude: ALONE,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...OVER_SOCKETS,
          name: 'alone',
          include: ALONE,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
