/**
 * Installs Chromium from the packages of a Debian-like system, for the tests of the console. Takes about half a minute;
 * ends with 1 and the reason where there is no such system, no right to install, or it takes too long.
 */
import { spawnSync } from 'node:child_process';
import { browserPath } from '../test/support/browser.ts';

const STEP_MS_MAX = 150_000;

function run(args: readonly string[]): string | undefined {
  const done = spawnSync('apt-get', args, {
    stdio: 'ignore',
    timeout: STEP_MS_MAX,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (done.error !== undefined) return `apt-get could not run to its end: ${done.error.message}`;
  return done.status === 0 ? undefined : `apt-get ${args[0]} ended with code ${done.status}`;
}

function install(): string | undefined {
  const packages = ['install', '-y', '--no-install-recommends', 'chromium'];
  // Lists of packages may be missing or old: they are fetched when it does not work without.
  const failed = run(packages) === undefined ? undefined : (run(['update']) ?? run(packages));
  return failed ?? (browserPath() === undefined ? 'the package holds no browser' : undefined);
}

const failure = browserPath() === undefined ? install() : undefined;
if (failure === undefined) process.stdout.write(`The browser is at ${browserPath()}\n`);
else {
  process.stderr.write(`No browser could be installed: ${failure}\n`);
  process.exitCode = 1;
}
