/** Metrics in the Prometheus text format. */
export type { SignalGauge, TraceSpans } from './gauges.ts';
export { createPrometheusMetrics, type PrometheusMetrics } from './prometheus-metrics.ts';
