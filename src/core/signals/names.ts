/** Every signal that can be raised, in the order in which people see them. Each has a page `docs/signals/NAME.md`. */
export const SIGNAL_NAMES = [
  'conservation-break',
  'little-gap',
  'phantom-starvation',
  'latched-gate',
  'silent-starvation',
  'generational-starvation',
  'priority-inversion',
  'node-variance',
  'ready-but-failing',
  'traffic-sink',
  'queue-growth',
  'silent-overload',
  'slo-drift',
  'ghost-queue',
  'affinity-loss',
  'ownership-flapping',
  'connection-churn',
  'memory-fragmentation',
  'memory-hoarding',
  'wait-spread',
  'label-drift',
  'prediction-error',
  'phantom-slo',
  'stale-readings',
] as const;

export type SignalName = (typeof SIGNAL_NAMES)[number];
