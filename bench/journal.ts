/**
 * What a journal costs: processor time per request of a gateway that keeps none, one that keeps one in files, and once more
 * one that keeps none: how far apart those two are is how far the figure can be trusted. In turn, within one run.
 *
 *   node bench/journal.ts [--json] [--cycles N] [--warm-up N]
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startLoad, startNode } from './gateway/children.ts';
import { compare } from './gateway/compare.ts';
import { startSpillway } from './gateway/targets.ts';
import { body } from './gateway/wire.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    cycles: { type: 'string', default: '15' },
    'warm-up': { type: 'string', default: '8000' },
  },
});
const COUNT = 1_000;

const folder = mkdtempSync(join(tmpdir(), 'spillway-journal-bench-'));
const node = await startNode('answers');
const load = startLoad();

async function contender(name: string, configuration: readonly string[]) {
  const target = await startSpillway(node.port, { slots: 512, tasksMax: 20_000, configuration });
  const warmUp = Number(values['warm-up']);
  return {
    target: { ...target, name },
    body: body(300),
    count: COUNT,
    warmUp,
    connections: 32,
    status: '200',
  };
}

function bytesPerRequest(): number {
  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  return bytes / (Number(values['warm-up']) + Number(values.cycles) * COUNT);
}

const contenders = [
  await contender('off', []),
  await contender('journal', [`journal: { folder: "${folder}" }`]),
  await contender('off again', []),
];
try {
  const { figures, ratios } = await compare(load, contenders, Number(values.cycles));
  const told = { figures, ratios, bytesPerRequest: Math.round(bytesPerRequest()) };
  if (values.json) process.stdout.write(`${JSON.stringify(told, undefined, 2)}\n`);
  else {
    for (const [name, { cpuUs }] of Object.entries(figures)) {
      const ratio = ratios[name] === undefined ? '' : `   ${ratios[name].toFixed(3)} of off`;
      process.stdout.write(`${name.padEnd(10)} ${cpuUs.toFixed(1).padStart(7)} us CPU per request${ratio}\n`);
    }
    process.stdout.write(`journal    ${told.bytesPerRequest} bytes per request\n`);
  }
} finally {
  await Promise.all([...contenders.map(({ target }) => target), node, load].map((one) => one.stop()));
  rmSync(folder, { recursive: true, force: true });
}
