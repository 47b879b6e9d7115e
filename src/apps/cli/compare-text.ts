/** A comparison by user, for a terminal. */
import type { Comparison, UserComparison } from '../../simulator/compare/compare-users.ts';
import type { Fate } from '../../simulator/compare/join-users.ts';
import type { CompareReport } from '../../simulator/compare/report.ts';
import type { Regret, RegretReport, ShareRegret } from '../../simulator/oracle/regret.ts';
import { duration, printable, table, terminalWidth } from './output.ts';

export function compareText({ pairs, regret }: CompareReport, { seed }: { readonly seed: number }): string {
  return [...pairs.map((pair) => pairText(pair, seed)), regretText(regret)].join('\n\n');
}

function pairText(pair: Comparison, seed: number): string {
  const { a, b, users, betterUnderA, betterUnderB, equal, responseDifferenceMs: differences } = pair;
  const part = (count: number): string =>
    users === 0 ? '0' : `${counted(count)} (${percent(count / users)})`;
  const balance = [
    `Of ${counted(users)} users of seed ${seed}:`,
    `  better under ${a} ${part(betterUnderA)}, better under ${b} ${part(betterUnderB)}, equal ${part(equal)}`,
  ];
  const quantiles = (['p1', 'p5', 'p50', 'p95', 'p99'] as const).map((q) => `${q} ${signed(differences[q])}`);
  return [
    ...balance.map(printable),
    ...remarks(pair).map(printable),
    '',
    classTable(pair),
    '',
    printable(`response under ${b} minus under ${a}, of ${counted(differences.users)} answered by both:`),
    `  mean ${signed(differences.mean)}, ${quantiles.join(', ')}`,
    ...mostTable(`gained most under ${b}`, pair, pair.gainedMost),
    ...mostTable(`lost most under ${b}`, pair, pair.lostMost),
  ].join('\n');
}

function remarks({ a, b, onlyUnderA, onlyUnderB, stoppedAtUser }: Comparison): readonly string[] {
  const lines: string[] = [];
  if (onlyUnderA + onlyUnderB > 0)
    lines.push(
      `${counted(onlyUnderA)} came under ${a} only, ${counted(onlyUnderB)} under ${b} only: they are not compared`,
    );
  if (stoppedAtUser !== undefined)
    lines.push(`Users from number ${counted(stoppedAtUser)} on were not kept and are not compared`);
  return lines;
}

function classTable({ a, b, byClass }: Comparison): string {
  const rows = Object.entries(byClass)
    .filter(([, { users }]) => users > 0)
    .map(([name, of]) => [
      name,
      ...[of.users, of.attainedUnderBoth, of.attainedOnlyUnderA, of.attainedOnlyUnderB].map(counted),
      counted(of.attainedUnderNeither),
    ]);
  return table(['in time', 'users', 'under both', `only ${a}`, `only ${b}`, 'neither'].map(printable), rows);
}

function mostTable(title: string, { a, b }: Comparison, users: readonly UserComparison[]): readonly string[] {
  if (users.length === 0) return [];
  const rows = users.map((of) => [
    String(of.user),
    of.className,
    of.tenant,
    duration(of.workSeconds * 1_000),
    fateText(of.a),
    fateText(of.b),
  ]);
  const head = ['user', 'class', 'tenant', 'work', `under ${a}`, `under ${b}`].map(printable);
  return ['', printable(title), table(head, rows, { width: terminalWidth(), shrinks: [2, 4, 5] })];
}

/** `3.2 s on t4-1`, `late 95.0 s on t4-1`, `refused at 20 ms`: from the first try. Waits are in `--json`. */
function fateText({ outcome, node, responseMs, endedMs }: Fate): string {
  if (responseMs === null) return `${outcome} at ${duration(endedMs)}`;
  return `${outcome === 'served' ? '' : `${outcome} `}${duration(responseMs)} on ${node ?? '?'}`;
}

function regretText(regret: RegretReport): string {
  if (regret.kind === 'unknown') return `No bound on what an oracle could do: ${regret.reason}`;
  const policies = Object.entries(regret.byPolicy);
  const [, first] = policies[0] ?? [];
  if (first === undefined) return '';
  const names = Object.keys(first.byClass);
  const figures: readonly (readonly [string, (of: Regret) => readonly string[]])[] = [
    ['users in time', ({ attained }) => shareCells(attained)],
    ['work in time', ({ attainedWork }) => shareCells(attainedWork)],
    ...(names.length > 1
      ? names.map((name) => [`in time: ${name}`, ({ byClass }: Regret) => shareCells(byClass[name])] as const)
      : []),
    [
      'mean response',
      ({ response }) => [duration(response.meanMs), duration(response.boundMs), signed(response.regretMs)],
    ],
  ];
  const rows = policies.flatMap(([policy, of]) =>
    figures.map(([label, cells]) => [policy, label, ...cells(of)]),
  );
  return table(['policy', 'figure', 'found', 'oracle at best', 'regret at most'], rows);
}

function shareCells(share: ShareRegret | undefined): readonly string[] {
  return share === undefined ? [] : [share.found, share.bound, share.regret].map(percent);
}

function counted(count: number): string {
  return count.toLocaleString('en-US');
}

function percent(ratio: number): string {
  return `${(ratio * 100).toFixed(1)} %`;
}

function signed(ms: number): string {
  return `${ms < 0 ? '-' : '+'}${duration(Math.abs(ms))}`;
}
