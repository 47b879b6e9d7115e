/** Two projects: unit tests in parallel beside the code, then tests over real sockets, one file after another. */
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
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'test/e2e/**/*.test.ts'],
          setupFiles: ['scripts/test-setup.ts'],
          // Two cores: sockets, child processes and load of one file must not disturb another's.
          fileParallelism: false,
          // Tests wait for conditions; the limit is for what hangs, and a machine that is busy elsewhere is not that.
          testTimeout: 120_000,
          hookTimeout: 60_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
