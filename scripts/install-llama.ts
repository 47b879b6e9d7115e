/**
 * Installs the llama engine into engines/llama, outside of the root's dependencies because of its size, and proves that
 * it runs by one generated answer. Does nothing when it is there already. Exits with 1 and the reason otherwise.
 */
import { spawnSync } from 'node:child_process';
import { LLAMA_FOLDER, llamaEngineMissing } from '../engines/llama/installation.ts';
import { spawnEngine } from '../engines/common/spawn.ts';

const INSTALL_MS_MAX = 300_000;

function install(): string | undefined {
  // The package's install script would build from source; the prebuilt binaries need no script.
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
  const run = spawnSync('npm', args, { cwd: LLAMA_FOLDER, stdio: 'inherit', timeout: INSTALL_MS_MAX });
  if (run.error !== undefined) return `npm ci could not run to its end: ${run.error.message}`;
  return run.status === 0 ? llamaEngineMissing() : `npm ci ended with code ${run.status}`;
}

async function proveItRuns(): Promise<void> {
  const engine = await spawnEngine('llama');
  try {
    const response = await fetch(`${engine.url}/v1/completions`, {
      method: 'POST',
      body: JSON.stringify({ model: 'tiny-llama', prompt: 'the people', max_tokens: 4 }),
    });
    if (response.status !== 200) throw new Error(`The engine answered ${response.status}`);
  } finally {
    await engine.stop();
  }
}

let failure = llamaEngineMissing() === undefined ? undefined : install();
if (failure === undefined) {
  failure = await proveItRuns().then(
    () => undefined,
    (error: unknown) => `it does not run here: ${error instanceof Error ? error.message : String(error)}`,
  );
}
if (failure === undefined) {
  process.stdout.write('The llama engine is installed and answers\n');
} else {
  process.stderr.write(`The llama engine could not be installed: ${failure}\n`);
  process.exitCode = 1;
}
