import { describe, expect, test } from 'vitest';
import { pressureOf } from './host-pressure.ts';

const NODE_EXPORTER = `# TYPE node_pressure_cpu_waiting_seconds_total counter
node_pressure_cpu_waiting_seconds_total 253.212678
node_pressure_io_stalled_seconds_total 7.582144
node_pressure_io_waiting_seconds_total 8.261473
node_pressure_memory_stalled_seconds_total 0
node_schedstat_waiting_seconds_total{cpu="0"} 420.5
node_schedstat_waiting_seconds_total{cpu="1"} 426.5
node_schedstat_timeslices_total{cpu="0"} 3e+07
node_schedstat_timeslices_total{cpu="1"} 4e+07
`;

describe('pressureOf', () => {
  test('reads what a node exporter tells, over all CPUs', () => {
    expect(pressureOf(NODE_EXPORTER)).toEqual({
      cpuWaitingS: 253.212678,
      ioStalledS: 7.582144,
      memoryStalledS: 0,
      runQueueS: 847,
      timeslices: 7e7,
    });
  });

  test('counts who waited longer than the last bucket up to 5 ms', () => {
    const name = 'ebpf_exporter_run_queue_latency_seconds_bucket';
    const rows = ['0.002048', '0.004096', '0.008192', '+Inf'].map(
      (le, at) => `${name}{le="${le}"} ${[70, 90, 99, 100][at]}\n`,
    );
    expect(pressureOf(rows.join(''))).toEqual({ switches: 100, longSwitches: 10 });
  });

  test('leaves out a histogram without a bucket up to 5 ms or without its sum', () => {
    const name = 'ebpf_exporter_run_queue_latency_seconds_bucket';
    expect(pressureOf(`${name}{le="0.008"} 5\n${name}{le="+Inf"} 6\n`)).toBeUndefined();
    expect(pressureOf(`${name}{le="0.004"} 5\n${name}{le="0.008"} 6\n`)).toBeUndefined();
  });

  test('knows nothing of a page that tells none of it', () => {
    expect(
      pressureOf('DCGM_FI_DEV_GPU_TEMP{gpu="0"} 40\nnode_pressure_cpu_waiting_seconds_total NaN\n'),
    ).toBeUndefined();
  });
});
