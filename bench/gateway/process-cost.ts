/** What a process and its children have cost so far, from Linux' /proc. */
import { readFileSync, readdirSync } from 'node:fs';

/** Clock ticks of /proc per second; 100 on every Linux that matters here. */
const TICKS_PER_S = 100;
const US_PER_TICK = 1_000_000 / TICKS_PER_S;
/** Positions in `stat` after the name in parentheses: parent, utime, stime, and both of children that ended. */
const PARENT = 1;
const TIMES = [11, 12, 13, 14] as const;

function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** The process and every process below it. */
export function treeOf(root: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const parent = Number.isInteger(pid) ? statOf(pid)?.[PARENT] : undefined;
    if (parent !== undefined) parents.set(pid, Number(parent));
  }
  const tree = [root];
  for (const above of tree) for (const [pid, parent] of parents) if (parent === above) tree.push(pid);
  return tree;
}

/** User and system time of these processes, all threads included, in microseconds; precise to 10 ms each. */
export function cpuUs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = statOf(pid);
    for (const at of TIMES) ticks += Number(stat?.[at] ?? 0);
  }
  return ticks * US_PER_TICK;
}

/** Resident memory now, in bytes. */
export function rssBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib ?? 0) * 1_024;
}
