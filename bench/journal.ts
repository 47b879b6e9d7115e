/**
 * What a journal costs: processor time per request of one gateway whose journal is left out and kept in turn, each for a
 * thousand requests. Two processes of the same program differ by some percent for as long as they live (what was compiled when,
 * where the heap lies), which no number of cycles evens out, so both are measured in one; several starts are several such processes. All
 * threads of the process count, so what is written behind does too.
 *
 * A turn with the journal is compared with the mean of its two neighbours without; the control is a turn without one
 * between two without. Told is the median of these ratios, and between what the median of resampled ones lies in 95 % of the cases.
 *
 *   node bench/journal.ts [--json] [--starts N] [--cycles N] [--warm-up N]
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createPrng } from '../src/base/prng.ts';
import { path, startLoad, startNode } from './gateway/children.ts';
import { median } from './gateway/compare.ts';
import type { Turn } from './gateway/journal-switch.ts';
import { startSpillway } from './gateway/targets.ts';
import { body, request } from './gateway/wire.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    starts: { type: 'string', default: '4' },
    cycles: { type: 'string', default: '30' },
    'warm-up': { type: 'string', default: '16000' },
  },
});
const REQUESTS_PER_TURN = 1_000;
const TURNS_PER_CYCLE = 4;
const cycles = Number(values.cycles);
const warmUp = Number(values['warm-up']);

const folder = mkdtempSync(join(tmpdir(), 'spillway-journal-bench-'));
const node = await startNode('answers');
const load = startLoad();

interface Start {
  readonly offUs: readonly number[];
  readonly journalUs: readonly number[];
  readonly ratios: readonly number[];
  readonly controls: readonly number[];
  readonly bytesPerRequest: number;
}

async function start(nth: number): Promise<Start> {
  const journal = join(folder, String(nth));
  const turns = join(folder, `${nth}.json`);
  process.env['BENCH_TURNS'] = turns;
  process.env['BENCH_TURN_REQUESTS'] = String(REQUESTS_PER_TURN);
  const target = await startSpillway(node.port, {
    slots: 512,
    tasksMax: 20_000,
    nodeArguments: ['--expose-gc', '--import', path('./journal-switch.ts')],
    // What the machine does besides must not make the gateway refuse: a refusal costs less.
    configuration: ['survival: { loopLagMs: 60000 }', `journal: { folder: "${journal}" }`],
  });
  const run = async (count: number): Promise<void> => {
    const order = { port: target.port, request: request(target, body(300)), count, connections: 32 };
    const result = await load.run({ ...order, mode: 'closed-loop' });
    if (result.byStatus['200'] !== count)
      throw new Error(`${count} answers of status 200 were expected, not ${JSON.stringify(result)}`);
  };
  try {
    await run(warmUp);
    await turnsOf(target.pid, turns);
    const before = bytesIn(journal);
    await run((cycles + 1) * TURNS_PER_CYCLE * REQUESTS_PER_TURN);
    const all = await turnsOf(target.pid, turns);
    const bytes = bytesIn(journal) - before;
    return startOf(all, bytes / (REQUESTS_PER_TURN * (all.length / TURNS_PER_CYCLE)));
  } finally {
    await target.stop();
  }
}

/** Asks for the turns since it was last asked. A signal is handled, and its file written, in a turn of the gateway's loop. */
async function turnsOf(pid: number, file: string): Promise<readonly Turn[]> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    try {
      return JSON.parse(readFileSync(file, 'utf8')) as Turn[];
    } catch {
      // Not whole yet.
    }
  }
}

/** A turn with the journal, and one of the control, are between two without. */
function startOf(turns: readonly Turn[], bytesPerRequest: number): Start {
  const usAt = (at: number): number => turns[at]?.cpuUsPerRequest ?? Number.NaN;
  const each = (kind: Turn['kind'], value: (at: number) => number): readonly number[] =>
    turns.flatMap((turn, at) => (turn.kind === kind && at > 0 && at < turns.length - 1 ? [value(at)] : []));
  const ratio = (at: number): number => (2 * usAt(at)) / (usAt(at - 1) + usAt(at + 1));
  return {
    offUs: each('off', usAt),
    journalUs: each('journal', usAt),
    ratios: each('journal', ratio),
    controls: each('control', ratio),
    bytesPerRequest,
  };
}

function bytesIn(journal: string): number {
  return readdirSync(journal).reduce((sum, name) => sum + statSync(join(journal, name)).size, 0);
}

const RESAMPLED = 2_000;
const TAIL = 0.025;

interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

function spreadOf(all: readonly number[]): Spread {
  const prng = createPrng(1);
  const resampled = (): number => median(all.map(() => all[prng.nextBelow(all.length)] ?? Number.NaN));
  const medians = Array.from({ length: RESAMPLED }, resampled).toSorted((a, b) => a - b);
  const quantile = (share: number): number =>
    medians[Math.min(RESAMPLED - 1, Math.floor(RESAMPLED * share))] ?? Number.NaN;
  return { median: median(all), low: quantile(TAIL), high: quantile(1 - TAIL) };
}

function line(name: string, { median: middle, low, high }: Spread, unit: string): string {
  return `${name.padEnd(10)} ${middle.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)}) ${unit}\n`;
}

try {
  const starts: Start[] = [];
  for (let nth = 0; nth < Number(values.starts); nth++) starts.push(await start(nth));
  const told = {
    offUs: spreadOf(starts.flatMap(({ offUs }) => offUs)),
    journalUs: spreadOf(starts.flatMap(({ journalUs }) => journalUs)),
    ratio: spreadOf(starts.flatMap(({ ratios }) => ratios)),
    control: spreadOf(starts.flatMap(({ controls }) => controls)),
    bytesPerRequest: median(starts.map(({ bytesPerRequest }) => bytesPerRequest)),
  };
  if (values.json) process.stdout.write(`${JSON.stringify(told, undefined, 2)}\n`);
  else {
    process.stdout.write(line('off', told.offUs, 'us CPU per request'));
    process.stdout.write(line('journal', told.journalUs, 'us CPU per request'));
    process.stdout.write(line('journal', told.ratio, 'of off'));
    process.stdout.write(line('control', told.control, 'of off'));
    process.stdout.write(`journal    ${Math.round(told.bytesPerRequest)} bytes per request\n`);
  }
} finally {
  await Promise.all([node.stop(), load.stop()]);
  rmSync(folder, { recursive: true, force: true });
}
