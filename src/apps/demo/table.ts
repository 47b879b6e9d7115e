/** The comparison at the end, and the sentence for who has never heard of any of this. */
import Table from 'cli-table3';
import type { LearnedRates } from './learned.ts';
import { boundsOf, type PolicyReport } from './report.ts';

export interface Outcome {
  readonly name: string;
  readonly report: PolicyReport;
  /** Whether the end of the trouble was seen within the run. */
  readonly hasRecovered: boolean;
}

type Cell = (outcome: Outcome) => string;

const ROWS: readonly (readonly [label: string, cell: Cell])[] = [
  ['users (each up to 4 attempts)', (one) => count(one.report.users)],
  ['attempts', (one) => count(one.report.offered)],
  ['served / refused', (one) => `${count(one.report.served)} / ${count(one.report.refused)}`],
  ['failed / gave up waiting', (one) => `${count(one.report.failed)} / ${count(one.report.cancelled)}`],
  ['critical users served in time', (one) => attained(one, 'critical')],
  ['normal users served in time', (one) => attained(one, 'normal')],
  ['low users served in time', (one) => attained(one, 'low')],
  ['low users who take less, served so', (one) => percent(one.report.consenting.useful)],
  ['times told to others that came true', (one) => percent(one.report.estimates.cameTrue)],
  ['wait of critical users, P95', (one) => ms(one.report.byClass['critical']?.waitMs.p95 ?? 0)],
  ['useful work in the spike, of capacity', (one) => percent(one.report.goodputRatio)],
  ['back to normal after the spike', (one) => recovery(one)],
  ['errors without a reason', (one) => count(one.report.untypedErrors)],
  ['most attempts waiting at once', (one) => count(one.report.peakQueued)],
  ['peak memory of the gateway', (one) => `${(one.report.peakRssBytes / 1_000_000).toFixed(0)} MB`],
  [
    'real embeddings served / failed',
    (one) => `${one.report.embedding.served} / ${one.report.embedding.failed}`,
  ],
];

export function comparison(outcomes: readonly Outcome[], emulated: string): string {
  const table = new Table({
    head: [emulated, ...outcomes.map((one) => one.name)],
    style: { head: [], border: [] },
    colAligns: ['left', ...outcomes.map(() => 'right' as const)],
  });
  for (const [label, cell] of ROWS) table.push([label, ...outcomes.map(cell)]);
  return table.toString();
}

export function verdict(report: PolicyReport): string[] {
  return boundsOf(report).map(
    (one) => `${one.holds ? 'ok  ' : 'MISS'} ${one.name}: ${one.value} (has to be ${one.rule})`,
  );
}

export function learnedLine(rates: LearnedRates): string {
  const { worst } = rates;
  if (worst === undefined) return 'Learned rates: no node ran enough tasks to judge.';
  const off = `${worst.error >= 0 ? '+' : ''}${(worst.error * 100).toFixed(0)} %`;
  return `Learned rates: ${rates.within} of ${rates.rows.length} emulated nodes within 15 % of their true rate (worst: ${worst.id}, ${off}), although a quarter misstate their hardware by 2x and one throttled.`;
}

/** Told beside the verdict: a machine that stood still is nobody's decision, and all else of that moment follows from it. */
export function stallLine({ stalls }: PolicyReport): string {
  const told = Object.entries(stalls).map(
    ([name, one]) => `${name} ${ms(one.longestMs)} (at ${(one.atMs / 1_000).toFixed(1)} s)`,
  );
  return `Longest time that a process was kept from running: ${told.join(', ')}.`;
}

export function missedLines({ missedCritical }: PolicyReport): string[] {
  return missedCritical.map(({ end, deadlineMs, trail }) => {
    const tries = trail.map(
      (one) => `${(one.sentAtMs / 1_000).toFixed(2)} s ${one.kind} after ${ms(one.endedAtMs - one.sentAtMs)}`,
    );
    return `Critical user not served within ${ms(deadlineMs)} (${end}): ${tries.join('; ')}`;
  });
}

/** One sentence for a newcomer. */
export function moral(outcomes: readonly Outcome[]): string {
  const old = outcomes.find((one) => one.name === 'round-robin');
  const ours = outcomes.find((one) => one.name === 'spillway');
  if (old === undefined || ours === undefined)
    return 'One policy alone was run, so there is nothing to compare.';
  const inTime = (one: Outcome): string => attained(one, 'critical');
  return `On the same emulated GPUs and the same twelvefold rush, the old design got ${inTime(old)} of its most important users their answer in time; Spillway got ${inTime(ours)}, told the others at once when to come back, and was ${recoveryPhrase(ours)}.`;
}

function recoveryPhrase(one: Outcome): string {
  const seconds = one.report.recoverySeconds.toFixed(1);
  return one.hasRecovered
    ? `back to normal ${seconds} s after the rush`
    : `still busy ${seconds} s after the rush`;
}

function attained(one: Outcome, name: string): string {
  return percent(one.report.byClass[name]?.attained ?? 0);
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(2)} %`;
}

function ms(value: number): string {
  return value >= 1_000 ? `${(value / 1_000).toFixed(2)} s` : `${value.toFixed(0)} ms`;
}

function count(value: number): string {
  return value.toLocaleString('en-US');
}

function recovery(one: Outcome): string {
  const seconds = `${one.report.recoverySeconds.toFixed(1)} s`;
  return one.hasRecovered ? seconds : `not within ${seconds}`;
}
