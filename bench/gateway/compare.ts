/**
 * Interleaved comparison of targets on one case: in each cycle every target gets the same load once, so that whatever
 * else the machine does falls on all of them alike. Ratios are taken within a cycle; the median over the cycles counts.
 */
import type { LoadClient } from './children.ts';
import { cpuUs, treeOf } from './process-cost.ts';
import type { Target } from './targets.ts';
import { request } from './wire.ts';

export interface Contender {
  readonly target: Target;
  readonly body: string;
  /** Requests of one cycle, and before the first one. */
  readonly count: number;
  readonly warmUp: number;
  readonly connections: number;
  /** Status of every answer; any other one makes the comparison worthless. */
  readonly status: string;
}

export interface Figures {
  /** CPU of the target's process tree, per request or per stream event; median over the cycles. */
  readonly cpuUs: number;
  readonly perSecond: number;
}

export interface Comparison {
  readonly figures: Readonly<Record<string, Figures>>;
  /** For each other target: its CPU over that of the first one, so above 1 means that the first is cheaper. */
  readonly ratios: Readonly<Record<string, number>>;
}

interface Sample {
  readonly cpuUs: number;
  readonly perSecond: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

async function sample(load: LoadClient, contender: Contender, count: number): Promise<Sample> {
  const { target, body, connections, status } = contender;
  const tree = treeOf(target.pid);
  const before = cpuUs(tree);
  const result = await load.run({
    port: target.port,
    request: request(target, body),
    count,
    connections,
    mode: 'closed-loop',
  });
  const spent = cpuUs(tree) - before;
  if (result.answers !== count || (result.byStatus[status] ?? 0) !== count) {
    throw new Error(
      `${target.name}: ${count} answers of status ${status} were expected, not ${JSON.stringify(result)}`,
    );
  }
  const units = result.events > 0 ? result.events : result.answers;
  return { cpuUs: spent / units, perSecond: units / result.seconds };
}

export async function compare(
  load: LoadClient,
  contenders: readonly Contender[],
  cycles: number,
): Promise<Comparison> {
  for (const one of contenders) await sample(load, one, one.warmUp);
  const rows: Sample[][] = [];
  for (let cycle = 0; cycle < cycles; cycle++) {
    const row: Sample[] = [];
    for (const one of contenders) row.push(await sample(load, one, one.count));
    rows.push(row);
  }
  const figures: Record<string, Figures> = {};
  const ratios: Record<string, number> = {};
  for (const [i, { target }] of contenders.entries()) {
    const pick = (field: keyof Sample): number => median(rows.map((row) => row[i]?.[field] ?? Number.NaN));
    figures[target.name] = { cpuUs: pick('cpuUs'), perSecond: pick('perSecond') };
    if (i > 0)
      ratios[target.name] = median(
        rows.map((row) => (row[i]?.cpuUs ?? Number.NaN) / (row[0]?.cpuUs ?? Number.NaN)),
      );
  }
  return { figures, ratios };
}
