/**
 * What a host waits for, from the metrics page of a node exporter (PSI, schedstat) or of an eBPF exporter with a histogram of
 * how long threads that were ready waited for a CPU.
 *
 * Sources: Prometheus node exporter, collectors pressure and schedstat; Cloudflare's ebpf_exporter.
 */
import { LONG_RUN_QUEUE_S, type PressureCounters } from '../../core/health/index.ts';
import { firstOf, type LabelledSample, readLabelled, readSamples } from './prometheus-text.ts';

type Counter = Exclude<keyof PressureCounters, 'switches' | 'longSwitches'>;

/** The first name that a page has counts; rows by CPU add up. */
const NAMES: Readonly<Record<Counter, readonly string[]>> = {
  cpuWaitingS: ['node_pressure_cpu_waiting_seconds_total'],
  memoryStalledS: ['node_pressure_memory_stalled_seconds_total'],
  ioStalledS: ['node_pressure_io_stalled_seconds_total'],
  runQueueS: ['node_schedstat_waiting_seconds_total'],
  timeslices: ['node_schedstat_timeslices_total'],
};
const COUNTERS = Object.keys(NAMES) as Counter[];
const WANTED = new Set(Object.values(NAMES).flat());
const BUCKETS = new Set(['ebpf_exporter_run_queue_latency_seconds_bucket']);

/** Undefined when the page tells none of it. */
export function pressureOf(page: string): PressureCounters | undefined {
  const samples = readSamples(page, WANTED);
  const found: { -readonly [K in keyof PressureCounters]: PressureCounters[K] } = switchesOf(page);
  for (const counter of COUNTERS) {
    const rows = firstOf(samples, NAMES[counter]);
    if (rows !== undefined) found[counter] = rows.reduce((sum, value) => sum + value, 0);
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

/** Buckets are cumulative. Where none ends at the line, who waited longer than the last one before it counts. */
function switchesOf(page: string): Pick<PressureCounters, 'switches' | 'longSwitches'> {
  const rows = readLabelled(page, BUCKETS, ['le']);
  const upTo = (edge: number): number => sumOf(rows.filter(({ labels }) => edgeOf(labels) === edge));
  const edges = rows.map(({ labels }) => edgeOf(labels));
  const line = Math.max(...edges.filter((edge) => edge <= LONG_RUN_QUEUE_S));
  if (!Number.isFinite(line) || !edges.includes(Number.POSITIVE_INFINITY)) return {};
  const switches = upTo(Number.POSITIVE_INFINITY);
  return { switches, longSwitches: Math.max(0, switches - upTo(line)) };
}

function edgeOf([le = '']: readonly string[]): number {
  return le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le === '' ? Number.NaN : le);
}

function sumOf(rows: readonly LabelledSample[]): number {
  return rows.reduce((sum, { value }) => sum + value, 0);
}
