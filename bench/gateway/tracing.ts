/**
 * What traces cost: processor time per request of a gateway that traces nothing, one request in a hundred, or every one,
 * in turn. The collector is a server of this process that takes everything at once.
 *
 *   node bench/gateway/tracing.ts [--json] [--cycles N] [--warm-up N] [--cases off,unsampled,1%,100%]
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { startLoad, startNode } from './children.ts';
import { compare } from './compare.ts';
import { startSpillway } from './targets.ts';
import { body } from './wire.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    cycles: { type: 'string', default: '7' },
    'warm-up': { type: 'string', default: '15000' },
    cases: { type: 'string', default: 'off,unsampled,1%,100%' },
  },
});

const collector = createServer((req, res) => {
  req.resume().on('end', () => res.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
});
collector.listen(0, '127.0.0.1');
await once(collector, 'listening');
const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
const node = await startNode('answers');
const load = startLoad();

async function contender(
  name: string,
  sampleRatio: number | undefined,
): Promise<Parameters<typeof compare>[1][number]> {
  const configuration =
    sampleRatio === undefined ? [] : [`tracing: { endpoint: "${endpoint}", sampleRatio: ${sampleRatio} }`];
  const target = await startSpillway(node.port, { slots: 512, tasksMax: 20_000, configuration });
  const warmUp = Number(values['warm-up']);
  return {
    target: { ...target, name },
    body: body(300),
    count: 1_000,
    warmUp,
    connections: 32,
    status: '200',
  };
}

/** Sample ratios; undefined is without traces. */
const CASES: Readonly<Record<string, number | undefined>> = {
  off: undefined,
  unsampled: 0,
  '1%': 0.01,
  '100%': 1,
};
const contenders = await Promise.all(values.cases.split(',').map((name) => contender(name, CASES[name])));
try {
  const { figures, ratios } = await compare(load, contenders, Number(values.cycles));
  if (values.json) process.stdout.write(`${JSON.stringify({ figures, ratios }, undefined, 2)}\n`);
  else {
    for (const [name, { cpuUs }] of Object.entries(figures)) {
      const ratio = ratios[name] === undefined ? '' : `   ${ratios[name].toFixed(3)} of off`;
      process.stdout.write(`${name.padEnd(10)} ${cpuUs.toFixed(1).padStart(7)} us CPU per request${ratio}\n`);
    }
  }
} finally {
  await Promise.all([...contenders.map(({ target }) => target), node, load].map((one) => one.stop()));
  collector.closeAllConnections();
  collector.close();
}
