/** Metrics in the Prometheus text format. */
export { createPrometheusMetrics, type PrometheusMetrics } from './prometheus-metrics.ts';
