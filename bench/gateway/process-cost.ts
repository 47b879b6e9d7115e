/** What a process and its children have cost so far, from Linux' /proc. */
import { readFileSync, readdirSync } from 'node:fs';

/** Position in `stat`, after the name in parentheses. */
const PARENT = 1;
const US_PER_NS = 1 / 1_000;

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

function threadsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}/schedstat`);
  } catch {
    return [];
  }
}

/**
 * Time on a processor, user and system, of all threads of these processes, in microseconds. Read from `schedstat`, which
 * is exact; `stat` counts in steps of 10 ms. A thread that has ended is not counted any more.
 */
export function cpuUs(pids: readonly number[]): number {
  let ns = 0;
  for (const file of pids.flatMap(threadsOf)) {
    try {
      ns += Number(readFileSync(file, 'utf8').split(' ', 1)[0]);
    } catch {
      // It ended meanwhile.
    }
  }
  return ns * US_PER_NS;
}

/** Resident memory now, in bytes. */
export function rssBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib ?? 0) * 1_024;
}
