/** Installs Portkey's gateway into bench/portkey, apart from the root's dependencies: only the benchmark compares with it. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const INSTALL_MS_MAX = 300_000;

// Without its install scripts: one of them patches packages that are not there.
const run = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
  cwd: fileURLToPath(new URL('../bench/portkey', import.meta.url)),
  stdio: 'inherit',
  timeout: INSTALL_MS_MAX,
});
process.exitCode = run.status ?? 1;
