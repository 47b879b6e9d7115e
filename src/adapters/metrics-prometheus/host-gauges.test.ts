import { expect, test } from 'vitest';
import { type HostedNode, renderHosts } from './host-gauges.ts';

function page(nodes: readonly HostedNode[]): string[] {
  const text = renderHosts(nodes)
    .flatMap((chunks) => [...chunks])
    .join('');
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
}

test('renderHosts tells the highest of the devices of each node whose host says it', () => {
  const accelerators = [
    { id: '0', busy: 0.9, engineActive: 0.4, temperatureC: 60, memoryUsedBytes: 1, memoryFreeBytes: 3 },
    { id: '1', busy: 0.5, memoryUsedBytes: 1, memoryFreeBytes: 1 },
    { id: '2', memoryUsedBytes: 7 },
  ];
  expect(page([{ id: 'a', telemetry: { host: { isStale: false, accelerators } } }])).toEqual([
    'spillway_node_telemetry_busy_ratio{node="a"} 0.5',
    'spillway_node_telemetry_memory_ratio{node="a"} 0.5',
    'spillway_node_telemetry_temperature_celsius{node="a"} 60',
  ]);
});

test('renderHosts has no row for what is unknown or stale', () => {
  const old = { isStale: true, accelerators: [{ id: '0', busy: 1 }] };
  const silent = { isStale: false, accelerators: [{ id: '0' }] };
  expect(
    page([{ id: 'a' }, { id: 'b', telemetry: { host: old } }, { id: 'c', telemetry: { host: silent } }]),
  ).toEqual([]);
});
