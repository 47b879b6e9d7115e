/** `spillway nodes --wide`: what hosts and engines say of themselves, beside what we have running there. */
import type { WireNode } from '../../edge/admin/views.ts';
import { table, wrapped } from './output.ts';

const HEAD = ['NODE', 'STATE', 'BUSY', 'GPU', 'MEMORY', 'TEMP', 'ENGINE', 'CACHE', 'HITS'];
const UNKNOWN = '?';

/** A row for each node, and a sentence for each that host and gateway do not agree on. */
export function wideNodes(nodes: readonly WireNode[], width: number): string {
  const rows = table(HEAD, nodes.map(row), { width, shrinks: [0] });
  const findings = nodes.flatMap(({ id, telemetry }) => {
    const finding = telemetry?.finding ?? null;
    return finding === null || finding.kind === 'agrees' ? [] : wrapped(`${id}: ${finding.says}`, width);
  });
  return [rows, ...findings].join('\n');
}

function row({ id, state, inflight, slots, telemetry }: WireNode): string[] {
  const accelerators = telemetry?.host?.accelerators ?? [];
  const engine = telemetry?.engine ?? null;
  const most = (values: readonly (number | null)[]): number | null => {
    const known = values.filter((value) => value !== null);
    return known.length === 0 ? null : Math.max(...known);
  };
  const memory = accelerators.map(({ memoryUsedBytes: used, memoryFreeBytes: free }) =>
    used === null || free === null || used + free === 0 ? null : used / (used + free),
  );
  const degrees = most(accelerators.map((one) => one.temperatureC));
  return [
    id,
    state,
    `${inflight}/${slots ?? UNKNOWN}`,
    percent(most(accelerators.map((one) => one.engineActive ?? one.busy))),
    percent(most(memory)),
    degrees === null ? UNKNOWN : `${Math.round(degrees)} °C`,
    engine === null ? UNKNOWN : `${engine.running ?? UNKNOWN}+${engine.waiting ?? UNKNOWN}`,
    percent(engine?.cacheUse ?? null),
    percent(engine?.prefixHitRatio ?? null),
  ];
}

function percent(value: number | null): string {
  return value === null ? UNKNOWN : `${Math.round(value * 100)} %`;
}
