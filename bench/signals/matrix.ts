/**
 * The fault matrix: each fault in virtual time over several seeds, which signals it raised, how long after it began, and what
 * else was raised; then days of healthy traffic, in which every finding is a false alarm.
 *
 *   node bench/signals/matrix.ts [--seeds N] [--days N] [--hours N] [--write-reference]
 *   node bench/signals/matrix.ts --sockets [--look-ms N] [--beside N] [--only NAME] [--write-reference]
 *
 * With `--sockets` the faults are made over real ones, in real gateways with emulated nodes, and nothing is run in virtual time.
 * With `--days 0` no healthy traffic is run, and the page tells nothing of it. Ends with 1 where a fault was missed, something undeclared was raised, or the
 * healthy days had more than two false alarms in all.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { socketMatrix } from './sockets.ts';
import { SIGNAL_CASES, type SignalCase } from '../../test/support/signal-cases.ts';
import { healthyDay, runCase } from '../../test/support/signal-run.ts';

const FALSE_ALARMS_MAX = 2;
const REFERENCE = new URL('../../docs/reference/signals.md', import.meta.url);
const SOCKET_MARKS = [
  '<!-- sockets: written by bench/signals/matrix.ts --sockets -->',
  '<!-- end of sockets -->',
] as const;
const MARKS = ['<!-- matrix: written by bench/signals/matrix.ts -->', '<!-- end of matrix -->'] as const;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '3' },
    days: { type: 'string', default: '1' },
    hours: { type: 'string', default: '24' },
    sockets: { type: 'boolean', default: false },
    'look-ms': { type: 'string', default: '100' },
    beside: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    'write-reference': { type: 'boolean', default: false },
  },
});

interface Matrix {
  readonly text: string;
  readonly isHeld: boolean;
}

interface Row {
  readonly fault: string;
  readonly raised: string;
  readonly beside: string;
  readonly undeclared: string;
  readonly isHeld: boolean;
}

/** When each signal was first told, in seconds after the fault began, by seed; undefined where it was not. */
function delaysOf(one: SignalCase, seeds: number): ReadonlyMap<string, readonly (number | undefined)[]> {
  const delays = new Map<string, (number | undefined)[]>();
  for (let seed = 1; seed <= seeds; seed++) {
    for (const { signal, at } of runCase(one, seed).signals.raised) {
      const own = delays.get(signal) ?? Array.from<number | undefined>({ length: seeds });
      delays.set(signal, own);
      own[seed - 1] = Math.min(own[seed - 1] ?? Number.POSITIVE_INFINITY, (at - one.at) / 1e6);
    }
  }
  return delays;
}

function rowOf(one: SignalCase, seeds: number): Row {
  const delays = delaysOf(one, seeds);
  const tell = (signal: string): string => {
    const known = (delays.get(signal) ?? []).filter((delay) => delay !== undefined);
    if (known.length === 0) return `**${signal} missed**`;
    const range = `${Math.round(Math.min(...known))}–${Math.round(Math.max(...known))} s`;
    return `\`${signal}\` after ${range}${known.length < seeds ? `, in ${known.length} of ${seeds}` : ''}`;
  };
  const declared: readonly string[] = [...one.raises, ...one.mayRaise];
  const beside = one.mayRaise.filter((signal) => delays.has(signal));
  const undeclared = [...delays.keys()].filter((signal) => !declared.includes(signal));
  const isFound = one.raises.every((signal) => {
    const own = delays.get(signal) ?? [];
    return (
      own.length === seeds &&
      own.every((delay) => delay !== undefined && delay >= 0 && delay <= one.withinUs / 1e6)
    );
  });
  return {
    fault: one.fault,
    raised: one.raises.map(tell).join(', '),
    beside: beside.map((signal) => `\`${signal}\``).join(', ') || '–',
    undeclared: undeclared.map(tell).join(', ') || '–',
    isHeld: isFound && undeclared.length === 0,
  };
}

interface Healthy {
  readonly days: number;
  readonly requests: number;
  readonly alarms: readonly string[];
}

function healthy(days: number, hours: number): Healthy {
  const alarms: string[] = [];
  let requests = 0;
  for (let seed = 1; seed <= days; seed++) {
    const run = runCase(healthyDay(hours), seed);
    requests += run.requests;
    for (const { signal, at, says } of run.signals.raised)
      alarms.push(`seed ${seed}, ${(at / 3.6e9).toFixed(2)} h: \`${signal}\`: ${says}`);
    process.stderr.write(`healthy day ${seed} of ${days}: ${alarms.length} false alarms so far\n`);
  }
  return { days, requests, alarms };
}

function textOf(rows: readonly Row[], seeds: number, quiet: Healthy, hours: number): string {
  const lines = rows.map(
    ({ fault, raised, beside, undeclared }) => `| ${fault} | ${raised} | ${beside} | ${undeclared} |`,
  );
  const days =
    quiet.days === 0
      ? ''
      : `Healthy traffic, ${quiet.days} seeds of ${hours} hours (${quiet.requests.toLocaleString('en')} requests): ${quiet.alarms.length} false alarms.`;
  return [
    `Each fault with ${seeds} seeds; the range is over the seeds.`,
    '',
    '| fault | raised | consequences that were raised as well | undeclared |',
    '| --- | --- | --- | --- |',
    ...lines,
    '',
    days,
    ...quiet.alarms.map((alarm) => `- ${alarm}`),
  ].join('\n');
}

function writeReference(text: string, [begin, end]: readonly [string, string]): void {
  const page = readFileSync(REFERENCE, 'utf8');
  const from = page.indexOf(begin);
  const until = page.indexOf(end);
  if (from < 0 || until < from)
    throw new Error(`Could not find the marks of the matrix in ${REFERENCE.pathname}`);
  writeFileSync(REFERENCE, `${page.slice(0, from)}${begin}\n${text}\n${page.slice(until)}`);
}

function virtualMatrix(): Matrix {
  const seeds = Number(values.seeds);
  const hours = Number(values.hours);
  const rows = SIGNAL_CASES.map((one) => rowOf(one, seeds));
  const quiet = healthy(Number(values.days), hours);
  const isHeld = rows.every((row) => row.isHeld) && quiet.alarms.length <= FALSE_ALARMS_MAX;
  return { text: textOf(rows, seeds, quiet, hours), isHeld };
}

const { text, isHeld } = values.sockets
  ? await socketMatrix({
      lookMs: Number(values['look-ms']),
      beside: Number(values.beside),
      only: values.only,
    })
  : virtualMatrix();
process.stdout.write(`${text}\n`);
if (values['write-reference']) writeReference(text, values.sockets ? SOCKET_MARKS : MARKS);
process.exitCode = isHeld ? 0 : 1;
