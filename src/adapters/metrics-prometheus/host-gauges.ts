/** What hosts say of the accelerators of nodes: rows only where one says it, and lately. */
import type { NodeId } from '../../base/units.ts';
import type { AcceleratorReading } from '../../core/health/index.ts';
import { type Chunks, renderRows, type Row } from './families.ts';

export interface HostedNode {
  readonly id: NodeId;
  readonly telemetry?: {
    readonly host?: { readonly isStale: boolean; readonly accelerators: readonly AcceleratorReading[] };
  };
}

/** The highest of a node's devices decides: it is the one that stops the engine, or does the work. */
export function renderHosts(nodes: readonly HostedNode[]): readonly Chunks[] {
  return [
    renderRows(
      'spillway_node_telemetry_busy_ratio',
      rows(nodes, (one) => one.engineActive ?? one.busy),
    ),
    renderRows('spillway_node_telemetry_memory_ratio', rows(nodes, memoryUse)),
    renderRows(
      'spillway_node_telemetry_temperature_celsius',
      rows(nodes, (one) => one.temperatureC),
    ),
  ];
}

function* rows(
  nodes: readonly HostedNode[],
  pick: (one: AcceleratorReading) => number | undefined,
): Generator<Row> {
  for (const { id, telemetry } of nodes) {
    const host = telemetry?.host;
    if (host === undefined || host.isStale) continue;
    const values = host.accelerators.map(pick).filter((value) => value !== undefined);
    if (values.length > 0) yield { labels: [id], value: shortened(Math.max(...values)) };
  }
}

function memoryUse({ memoryUsedBytes: used, memoryFreeBytes: free }: AcceleratorReading): number | undefined {
  if (used === undefined || free === undefined || used + free === 0) return undefined;
  return used / (used + free);
}

/** A node's reading is good for six digits; what an average has beyond them would be a tenth of the page. */
export function shortened(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(6));
}
