/**
 * Puts promtool and Prometheus, which come in one package, and the node exporter beside the dependencies, from the packages of a
 * Debian-like system, without installing a service. Takes some seconds; ends with 1 and the reason where there is no such
 * system or it takes too long.
 */
import { spawnSync } from 'node:child_process';
import { globSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { nodeExporterPath, prometheusPath, PROMTOOL_FOLDER, promtoolPath } from '../test/support/promtool.ts';

const PACKAGES = ['prometheus', 'prometheus-node-exporter'];
const STEP_MS_MAX = 20_000;

function run(command: string, args: readonly string[]): string | undefined {
  const done = spawnSync(command, args, { cwd: PROMTOOL_FOLDER, stdio: 'ignore', timeout: STEP_MS_MAX });
  if (done.error !== undefined) return `${command} could not run to its end: ${done.error.message}`;
  return done.status === 0 ? undefined : `${command} ${args[0]} ended with code ${done.status}`;
}

function install(): string | undefined {
  mkdirSync(PROMTOOL_FOLDER, { recursive: true });
  const failed = run('apt-get', ['download', ...PACKAGES]);
  if (failed !== undefined) return failed;
  for (const name of PACKAGES) {
    const [archive] = globSync(`${name}_*.deb`, { cwd: PROMTOOL_FOLDER });
    if (archive === undefined) return `apt-get download left no archive of ${name}`;
    const path = join(PROMTOOL_FOLDER, archive);
    const problem = run('dpkg', ['-x', path, PROMTOOL_FOLDER]);
    rmSync(path);
    if (problem !== undefined) return problem;
  }
  return isThere() ? undefined : 'the packages do not hold all of them';
}

const isThere = (): boolean =>
  [promtoolPath(), prometheusPath(), nodeExporterPath()].every((path) => path !== undefined);

const failure = isThere() ? undefined : install();
if (failure === undefined)
  process.stdout.write(
    `promtool is at ${promtoolPath()}, Prometheus at ${prometheusPath()}, the node exporter at ${nodeExporterPath()}\n`,
  );
else {
  process.stderr.write(`promtool, Prometheus and the node exporter could not be installed: ${failure}\n`);
  process.exitCode = 1;
}
