/**
 * What a journal costs: processor time per request of a gateway that keeps none, one that keeps one in files, and once more
 * one that keeps none, in turn. Two processes of the same program differ by some percent for as long as they live (what was
 * compiled when, where the heap lies), which no number of cycles evens out: so all three are started afresh several times, and the
 * figure is the median over the starts. With six of them it lies between the least and the largest one with 97 % confidence,
 * whatever the law of the errors is (1 - 2 / 2^6).
 *
 *   node bench/journal.ts [--json] [--starts N] [--cycles N] [--warm-up N]
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startLoad, startNode } from './gateway/children.ts';
import { type Comparison, compare, type Contender, median } from './gateway/compare.ts';
import { startSpillway } from './gateway/targets.ts';
import { body } from './gateway/wire.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    starts: { type: 'string', default: '6' },
    cycles: { type: 'string', default: '15' },
    'warm-up': { type: 'string', default: '8000' },
  },
});
const COUNT = 1_000;
const cycles = Number(values.cycles);
const warmUp = Number(values['warm-up']);

const folder = mkdtempSync(join(tmpdir(), 'spillway-journal-bench-'));
const node = await startNode('answers');
const load = startLoad();

interface Start {
  readonly offUs: number;
  readonly journalUs: number;
  /** The journal's over the mean of the two without one, beside it in the same cycles. */
  readonly ratio: number;
  /** The second without one over the first: what nothing costs. */
  readonly control: number;
  readonly bytesPerRequest: number;
}

/** What the machine does besides must not make a gateway refuse: a refusal costs less. */
const CALM = 'survival: { loopLagMs: 60000 }';

async function contender(name: string, lines: readonly string[]): Promise<Contender> {
  const configuration = [CALM, ...lines];
  const target = await startSpillway(node.port, { slots: 512, tasksMax: 20_000, configuration });
  return {
    target: { ...target, name },
    body: body(300),
    count: COUNT,
    warmUp,
    connections: 32,
    status: '200',
  };
}

async function start(nth: number): Promise<Start> {
  const journal = join(folder, String(nth));
  const contenders = [
    await contender('off', []),
    await contender('journal', [`journal: { folder: "${journal}" }`]),
    await contender('off again', []),
  ];
  try {
    return startOf(await compare(load, contenders, cycles), journal);
  } finally {
    await Promise.all(contenders.map(({ target }) => target.stop()));
  }
}

function startOf({ figures, ratios }: Comparison, journal: string): Start {
  const control = ratios['off again'] ?? Number.NaN;
  const bytes = readdirSync(journal).reduce((sum, name) => sum + statSync(join(journal, name)).size, 0);
  return {
    offUs: figures['off']?.cpuUs ?? Number.NaN,
    journalUs: figures['journal']?.cpuUs ?? Number.NaN,
    ratio: (ratios['journal'] ?? Number.NaN) / ((1 + control) / 2),
    control,
    bytesPerRequest: bytes / (warmUp + cycles * COUNT),
  };
}

interface Spread {
  readonly median: number;
  readonly least: number;
  readonly largest: number;
}

function spreadOf(all: readonly number[]): Spread {
  return { median: median(all), least: Math.min(...all), largest: Math.max(...all) };
}

function line(name: string, { median: middle, least, largest }: Spread, unit: string): string {
  return `${name.padEnd(10)} ${middle.toFixed(3)} (${least.toFixed(3)} to ${largest.toFixed(3)}) ${unit}\n`;
}

try {
  const starts: Start[] = [];
  for (let nth = 0; nth < Number(values.starts); nth++) starts.push(await start(nth));
  const spread = (field: keyof Start): Spread => spreadOf(starts.map((one) => one[field]));
  const names = ['offUs', 'journalUs', 'ratio', 'control', 'bytesPerRequest'] as const;
  const told = Object.fromEntries(names.map((name) => [name, spread(name)]));
  if (values.json) process.stdout.write(`${JSON.stringify(told, undefined, 2)}\n`);
  else {
    process.stdout.write(line('off', spread('offUs'), 'us CPU per request'));
    process.stdout.write(line('journal', spread('journalUs'), 'us CPU per request'));
    process.stdout.write(line('journal', spread('ratio'), 'of off'));
    process.stdout.write(line('off again', spread('control'), 'of off'));
    process.stdout.write(`journal    ${Math.round(spread('bytesPerRequest').median)} bytes per request\n`);
  }
} finally {
  await Promise.all([node.stop(), load.stop()]);
  rmSync(folder, { recursive: true, force: true });
}
