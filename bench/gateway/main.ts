/**
 * The price of the gateway: CPU of its process tree per request, with the full policy on, beside nginx, haproxy and
 * Portkey's gateway in front of the same node; the price of a refusal; the memory of a waiting request.
 *
 *   node bench/gateway/main.ts [--json] [--quick] [--cases 300B,8KB,100KB,stream,refusal,memory]
 *
 * Needs Debian's nginx-light and haproxy, and bench/portkey installed (`node scripts/install-portkey.ts`); what is not
 * there is left out, and said. Only ratios of one run mean anything: values follow the machine's other work.
 */
import { parseArgs } from 'node:util';
import { type LoadClient, startLoad, startNode } from './children.ts';
import { type Comparison, compare, type Contender } from './compare.ts';
import { type MemoryFigures, measureMemory } from './memory.ts';
import { startHaproxy, startNginx, startPortkey, startSpillway, type Target } from './targets.ts';
import { body, request } from './wire.ts';

const CONNECTIONS = 32;
const STREAMS = 64;
const SLOTS = 512;

interface Size {
  readonly name: string;
  readonly body: string;
  /** Requests of one cycle. */
  readonly count: number;
  readonly warmUp: number;
  readonly connections: number;
}

const SIZES: readonly Size[] = [
  { name: '300B', body: body(300), count: 8_000, warmUp: 40_000, connections: CONNECTIONS },
  { name: '8KB', body: body(8_192), count: 6_000, warmUp: 20_000, connections: CONNECTIONS },
  { name: '100KB', body: body(102_400), count: 1_000, warmUp: 2_000, connections: CONNECTIONS },
  { name: 'stream', body: body(300, 'stream'), count: 512, warmUp: 512, connections: STREAMS },
];
/** Portkey costs some ten times as much: less of it takes as long. */
const PORTKEY_SHARE = 1 / 6;

interface Options {
  readonly json: boolean;
  readonly cases: readonly string[];
  readonly cycles: number;
  /** Part of the warm-up that is done. */
  readonly warmUpShare: number;
}

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    cases: { type: 'string', default: '300B,8KB,100KB,stream,refusal,memory' },
    cycles: { type: 'string' },
  },
});
const options: Options = {
  json: values.json,
  cases: values.cases.split(','),
  cycles: Number(values.cycles ?? (values.quick ? 3 : 7)),
  warmUpShare: values.quick ? 0.5 : 1,
};

function say(text: string): void {
  if (!options.json) process.stdout.write(`${text}\n`);
}

/** Portkey's release of this lock answers streams with 500 under this Node.js: it changes a list of headers that is fixed. */
function takesPart(target: Target, size: Size): boolean {
  return target.name !== 'portkey' || size.name !== 'stream';
}

function contender(target: Target, size: Size): Contender {
  const share = target.name === 'portkey' ? PORTKEY_SHARE : 1;
  const { body: text, connections } = size;
  const count = Math.max(connections, Math.round(size.count * share));
  // What is compiled ahead needs no warming beyond its connections and caches.
  const warms = target.name === 'nginx' || target.name === 'haproxy' ? 0.05 : share * options.warmUpShare;
  const warmUp = Math.max(connections, Math.round(size.warmUp * warms));
  return { target, body: text, count, warmUp, connections, status: '200' };
}

function show(title: string, unit: string, comparison: Comparison): void {
  say(`\n${title}`);
  const [first = ''] = Object.keys(comparison.figures);
  for (const [name, { cpuUs, perSecond }] of Object.entries(comparison.figures)) {
    const ratio = comparison.ratios[name];
    const beside = ratio === undefined ? '' : `   ${ratio.toFixed(3)} of ${first}`;
    say(
      `  ${name.padEnd(10)} ${cpuUs.toFixed(1).padStart(8)} us CPU per ${unit}  ${perSecond.toFixed(0).padStart(7)}/s${beside}`,
    );
  }
}

async function compareGateways(load: LoadClient): Promise<Record<string, Comparison>> {
  const sizes = SIZES.filter((size) => options.cases.includes(size.name));
  const results: Record<string, Comparison> = {};
  if (sizes.length === 0) return results;
  const node = await startNode('answers');
  const spillway = await startSpillway(node.port, { slots: SLOTS, tasksMax: 20_000 });
  const others: Target[] = [];
  for (const [name, start] of Object.entries({
    nginx: startNginx,
    haproxy: startHaproxy,
    portkey: startPortkey,
  })) {
    const target = await start(node.port);
    if (target === undefined) say(`${name} is not installed and is left out`);
    else others.push(target);
  }
  try {
    for (const size of sizes) {
      const all = [spillway, ...others.filter((other) => takesPart(other, size))].map((target) =>
        contender(target, size),
      );
      results[size.name] = await compare(load, all, options.cycles);
      show(size.name, size.name === 'stream' ? 'event' : 'request', results[size.name] as Comparison);
    }
  } finally {
    await Promise.all([spillway, ...others, node].map((one) => one.stop()));
  }
  return results;
}

/** A gateway whose only node holds and whose queue is full refuses all the rest; beside it one that serves. */
async function compareRefusal(load: LoadClient): Promise<Comparison> {
  const [answering, holding] = [await startNode('answers'), await startNode('holds')];
  const serving = await startSpillway(answering.port, { slots: SLOTS, tasksMax: 20_000 });
  const full = await startSpillway(holding.port, { slots: 1, tasksMax: 20 });
  const filler = startLoad();
  try {
    const text = body(300);
    await fill(filler, full, 30);
    const base = { body: text, count: 8_000, warmUp: 40_000 * options.warmUpShare, connections: CONNECTIONS };
    const comparison = await compare(
      load,
      [
        { ...base, target: { ...serving, name: 'served' }, status: '200' },
        { ...base, target: { ...full, name: 'refused' }, status: '429' },
      ],
      options.cycles,
    );
    show('refusal (a full queue)', 'request', comparison);
    return comparison;
  } finally {
    await Promise.all([serving, full, answering, holding, filler].map((one) => one.stop()));
  }
}

async function fill(filler: LoadClient, { port, headers }: Target, connections: number): Promise<void> {
  await filler.run({
    port,
    request: request({ port, headers }, body(300)),
    count: connections,
    connections,
    mode: 'hold',
  });
}

async function main(): Promise<void> {
  const load = startLoad();
  const memory: Record<string, MemoryFigures> = {};
  try {
    const gateways = await compareGateways(load);
    const refusal = options.cases.includes('refusal') ? await compareRefusal(load) : undefined;
    if (options.cases.includes('memory')) {
      for (const bytes of [300, 8_192]) {
        const figures = await measureMemory(load, bytes);
        memory[`${bytes}B`] = figures;
        say(
          `\n${figures.waiting} waiting requests of ${bytes} bytes: ${figures.rssMb.toFixed(0)} MB resident, ${figures.idleMb.toFixed(0)} MB before`,
        );
      }
    }
    if (options.json)
      process.stdout.write(`${JSON.stringify({ gateways, refusal, memory }, undefined, 2)}\n`);
  } finally {
    await load.stop();
  }
}

await main();
