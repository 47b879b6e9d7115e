/** Metrics in the Prometheus text format. */
export { createPrometheusMetrics, type MetricsSource, type PrometheusMetrics } from './prometheus-metrics.ts';
