/** The fault matrix over real sockets: each fault in a process and a gateway of its own, several beside each other. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SOCKET_CASES } from '../../test/support/socket-cases.ts';
import type { FirstFinding, SocketCase } from '../../test/support/socket-run.ts';

const ONE_FAULT = fileURLToPath(new URL('one-fault.ts', import.meta.url));
const run = promisify(execFile);

export interface SocketMatrixOptions {
  readonly lookMs: number;
  /** Gateways at once. */
  readonly beside: number;
  /** Part of a signal's name; '' for all. */
  readonly only: string;
}

interface Row {
  readonly line: string;
  readonly isHeld: boolean;
}

export async function socketMatrix(
  options: SocketMatrixOptions,
): Promise<{ readonly text: string; readonly isHeld: boolean }> {
  const { lookMs, beside, only } = options;
  const cases = SOCKET_CASES.filter(({ raises }) => raises.includes(only));
  const rows: Row[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < cases.length; at = next++) {
      const row = await rowOf(cases[at] as SocketCase, lookMs);
      rows[at] = row;
      process.stderr.write(`${row.line}\n`);
    }
  };
  await Promise.all(Array.from({ length: beside }, worker));
  const text = [
    `${rows.length} faults, ${beside} gateways at once, ${1_000 / lookMs} looks a second: a second of the detectors is ${lookMs} ms.`,
    '',
    '| fault | raised, in seconds of the detectors | by `evidence` | consequences that were raised as well | undeclared |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map(({ line }) => line),
  ].join('\n');
  return { text, isHeld: rows.every(({ isHeld }) => isHeld) };
}

interface ToldRun {
  readonly raised: readonly FirstFinding[];
  readonly namesGuilty: boolean;
  readonly why: string;
}

async function rowOf(one: SocketCase, lookMs: number): Promise<Row> {
  const { stdout } = await run(process.execPath, [ONE_FAULT, one.raises, String(lookMs)]);
  const { namesGuilty, why, ...found } = JSON.parse(stdout) as ToldRun;
  const raised = new Map(found.raised.map((first) => [first.signal, first]));
  const own = raised.get(one.raises);
  const beside = one.mayRaise.filter((signal) => raised.has(signal));
  const undeclared = [...raised.values()].filter(
    ({ signal }) => signal !== one.raises && !one.mayRaise.includes(signal),
  );
  const tells =
    own === undefined
      ? `**${one.raises} missed**`
      : `\`${one.raises}\` after ${Math.round(own.afterLooks)} s`;
  const names =
    one.guilty === undefined ? '–' : namesGuilty ? `names \`${one.guilty}\`` : `**not ${one.guilty}**`;
  const cells = [
    one.fault,
    tells,
    names,
    beside.map((signal) => `\`${signal}\``).join(', ') || '–',
    undeclared
      .map(({ signal, afterLooks }) => `\`${signal}\` after ${Math.round(afterLooks)} s`)
      .join(', ') || '–',
  ];
  if (own === undefined) process.stderr.write(`missed ${one.raises}: ${why}\n`);
  for (const { signal, says } of undeclared) process.stderr.write(`undeclared ${signal}: ${says}\n`);
  const isFound = own !== undefined && own.afterLooks >= 0 && own.afterLooks <= one.withinLooks;
  return { line: `| ${cells.join(' | ')} |`, isHeld: isFound && namesGuilty && undeclared.length === 0 };
}
