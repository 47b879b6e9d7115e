/**
 * What the host of a node waits for. A request of the first class can wait for an unimportant one where no queue of ours
 * shows it: behind its threads on a CPU, or while the host moves its memory to the disk. Linux counts both (PSI, schedstat), and
 * a program in its kernel (eBPF) tells how long each thread that was ready waited.
 *
 *   memory-stalled   for so much of the time nothing ran, for want of memory
 *   run-queue        threads that were ready waited long for a CPU
 *   io-stalled       for so much of the time nothing ran, for want of its disks
 *   cpu-starved      for so much of the time some thread waited for a CPU
 *
 * The first that holds is told: who is out of memory waits for disks and CPUs as well.
 *
 * Sources: the Linux kernel's documentation, "PSI - Pressure Stall Information" and "Scheduler Statistics"; the lines from which
 * on it counts are ours.
 */
import type { DurationUs, Ratio } from '../../base/units.ts';

/** Sums since the host started; absent is unknown. */
export interface PressureCounters {
  /** Seconds in which some thread waited for a CPU. */
  readonly cpuWaitingS?: number;
  /** Seconds in which none could go on, for want of memory, or of disks. */
  readonly memoryStalledS?: number;
  readonly ioStalledS?: number;
  /** Seconds that threads waited for a CPU, over all of them, and how often one got it. */
  readonly runQueueS?: number;
  readonly timeslices?: number;
  /** Threads that got a CPU, and those of them that waited longer than `LONG_RUN_QUEUE_S` for it. */
  readonly switches?: number;
  readonly longSwitches?: number;
}

/** The same between two looks. */
export interface HostPressure {
  readonly cpuWaiting?: Ratio;
  readonly memoryStalled?: Ratio;
  readonly ioStalled?: Ratio;
  /** Mean wait for a CPU. */
  readonly runQueueUs?: DurationUs;
  /** Part of those who got a CPU that waited long for it. */
  readonly longRunQueue?: Ratio;
}

export interface HostPattern {
  readonly kind: 'memory-stalled' | 'run-queue' | 'io-stalled' | 'cpu-starved';
  /** One sentence for people, with what to do. */
  readonly says: string;
}

/** A slice of the kernel's scheduler is a few milliseconds: who waits longer had others before it. */
export const LONG_RUN_QUEUE_S = 0.005;
/** Looks that lie closer together, in doubled turns, would tell a ratio of nothing. */
const ELAPSED_US_MIN: DurationUs = 500_000;

interface Pattern {
  readonly kind: HostPattern['kind'];
  readonly least: number;
  value(pressure: HostPressure): number | undefined;
  says(value: number): string;
}

const PATTERNS: readonly Pattern[] = [
  {
    kind: 'memory-stalled',
    least: 0.1,
    value: ({ memoryStalled }) => memoryStalled,
    says: (value) =>
      `nothing ran on its host for ${percent(value)} of the time, for want of memory: what else is there takes it from the engine`,
  },
  {
    kind: 'run-queue',
    least: 0.05,
    value: ({ longRunQueue }) => longRunQueue,
    says: (value) =>
      `${percent(value)} of the threads on its host waited over 5 ms for a CPU: give the engine CPUs of its own, or less company`,
  },
  {
    kind: 'run-queue',
    least: LONG_RUN_QUEUE_S * 1e6,
    value: ({ runQueueUs }) => runQueueUs,
    says: (value) =>
      `threads on its host wait ${(value / 1_000).toFixed(1)} ms for a CPU: give the engine CPUs of its own, or less company`,
  },
  {
    kind: 'io-stalled',
    least: 0.25,
    value: ({ ioStalled }) => ioStalled,
    says: (value) =>
      `nothing ran on its host for ${percent(value)} of the time, for want of its disks: it loads models, or swaps`,
  },
  {
    kind: 'cpu-starved',
    least: 0.5,
    value: ({ cpuWaiting }) => cpuWaiting,
    says: (value) =>
      `something waited for a CPU of its host ${percent(value)} of the time: give the engine CPUs of its own, or less company`,
  },
];

/** What happened between two looks. What fell belongs to a host that was started again, and is unknown. */
export function pressureBetween(
  before: PressureCounters,
  after: PressureCounters,
  elapsedUs: DurationUs,
): HostPressure | undefined {
  if (elapsedUs < ELAPSED_US_MIN) return undefined;
  const since = (key: keyof PressureCounters): number | undefined => {
    const [from, to] = [before[key], after[key]];
    return from === undefined || to === undefined || to < from ? undefined : to - from;
  };
  const part = (seconds: number | undefined, of: number | undefined): Ratio | undefined =>
    seconds === undefined || of === undefined || of <= 0 ? undefined : Math.min(1, seconds / of);
  const elapsedS = elapsedUs / 1e6;
  const [waitedS, slices] = [since('runQueueS'), since('timeslices')];
  const pressure: { -readonly [K in keyof HostPressure]: HostPressure[K] | undefined } = {
    cpuWaiting: part(since('cpuWaitingS'), elapsedS),
    memoryStalled: part(since('memoryStalledS'), elapsedS),
    ioStalled: part(since('ioStalledS'), elapsedS),
    runQueueUs:
      waitedS === undefined || slices === undefined || slices <= 0 ? undefined : (waitedS / slices) * 1e6,
    longRunQueue: part(since('longSwitches'), since('switches')),
  };
  const known = Object.entries(pressure).filter(([, value]) => value !== undefined);
  return known.length === 0 ? undefined : Object.fromEntries(known);
}

/** What the host lacks, or undefined where it lacks nothing that is known. */
export function pressurePattern(pressure: HostPressure): HostPattern | undefined {
  for (const { kind, least, value, says } of PATTERNS) {
    const found = value(pressure);
    if (found !== undefined && found >= least) return { kind, says: says(found) };
  }
  return undefined;
}

function percent(ratio: Ratio): string {
  return `${Math.round(ratio * 100)} %`;
}
