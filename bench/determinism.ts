/**
 * Whether equal seeds give equal decisions, whatever the process: the same seeds in two processes, one of which goes
 * through them backwards. Prints how many hashes differ, and ends with 1 if any does.
 *
 *   node bench/determinism.ts [--seeds 1000] [--policy spillway]
 */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { runScenario } from '../src/simulator/run-scenario.ts';
import { ROUGH } from '../test/support/rough-scenario.ts';
import { policySpec } from '../test/support/scenarios.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    policy: { type: 'string', default: 'spillway' },
    only: { type: 'string', default: '' },
  },
});
const count = Number(values.seeds);
const seeds = Array.from({ length: count }, (_, index) => index + 1);

function hashOf(seed: number): string {
  return runScenario(ROUGH, policySpec({ policy: values.policy }), seed).report.decisionHash;
}

/** Hashes in order of seeds, from a process of its own. */
function hashesOf(order: 'forwards' | 'backwards'): Promise<readonly string[]> {
  const args = [import.meta.filename, '--only', order, '--seeds', values.seeds, '--policy', values.policy];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => void (text += chunk));
  return new Promise((resolve) => {
    child.on('close', () => resolve(text.trim().split('\n')));
  });
}

if (values.only === '') {
  const [one, other] = await Promise.all([hashesOf('forwards'), hashesOf('backwards')]);
  const differing = seeds.filter((_, index) => one[index] === undefined || one[index] !== other[index]);
  const distinct = new Set(one).size;
  process.stdout.write(
    `${count} seeds, ${distinct} distinct hashes, ${differing.length} differ between processes\n`,
  );
  for (const seed of differing.slice(0, 10)) process.stdout.write(`seed ${seed}\n`);
  process.exitCode = differing.length === 0 ? 0 : 1;
} else {
  const order = values.only === 'backwards' ? seeds.toReversed() : seeds;
  const hashes = new Map(order.map((seed) => [seed, hashOf(seed)]));
  process.stdout.write(`${seeds.map((seed) => hashes.get(seed)).join('\n')}\n`);
}
