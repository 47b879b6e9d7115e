/** Two projects: unit tests in parallel beside the code, tests over real sockets one file after another. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    watch: false,
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'src/**/*.test.ts',
            'conformance/**/*.test.ts',
            'scripts/**/*.test.ts',
            'bench/**/*.test.ts',
            'test/scenarios/**/*.test.ts',
          ],
          setupFiles: ['scripts/test-setup.ts'],
          maxWorkers: 2,
          testTimeout: 20_000,
        },
      },
      {
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts', 'engines/*/*.test.ts'],
          exclude: ['**/node_modules/**'],
          setupFiles: ['scripts/test-setup.ts'],
          fileParallelism: false,
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
