/** What the operating system and V8 say of this process. Everything unknown stays absent. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import type { Bytes, Ratio } from '../../base/units.ts';

export interface ProcessReading {
  readonly rssBytes: Bytes;
  readonly heapUsedBytes: Bytes;
  readonly heapLimitBytes: Bytes;
  /** Absent where the system does not tell. */
  readonly descriptors?: number;
  readonly descriptorsMax?: number;
  readonly cpuSeconds: number;
}

export function readProcess(): ProcessReading {
  const heap = getHeapStatistics();
  const cpu = process.cpuUsage();
  const open = openDescriptors();
  const max = descriptorsMax();
  return {
    rssBytes: process.memoryUsage.rss(),
    heapUsedBytes: heap.used_heap_size,
    heapLimitBytes: heap.heap_size_limit,
    ...(open === undefined ? {} : { descriptors: open }),
    ...(max === undefined ? {} : { descriptorsMax: max }),
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
}

export function ratioOf(value: number | undefined, bound: number | undefined): Ratio | undefined {
  return value === undefined || bound === undefined || bound <= 0 ? undefined : value / bound;
}

/** Linux tells the number as the size of the folder since 6.2; before that its entries are counted. */
function openDescriptors(): number | undefined {
  try {
    return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}

let knownMax: number | undefined | 'unread' = 'unread';

/** The soft limit does not change while the process runs. */
function descriptorsMax(): number | undefined {
  if (knownMax !== 'unread') return knownMax;
  try {
    const match = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    knownMax = match === null ? undefined : Number(match[1]);
  } catch {
    knownMax = undefined;
  }
  return knownMax;
}
