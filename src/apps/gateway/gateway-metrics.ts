/** Ties the metrics to a gateway: what is a known name, and where the gauges are read. */
import {
  createPrometheusMetrics,
  type PrometheusMetrics,
  type SignalGauge,
  type TraceSpans,
} from '../../adapters/metrics-prometheus/index.ts';
import type { SignalsView } from '../../core/signals/index.ts';
import { readProcess } from '../../edge/survival/process-reading.ts';
import type { Survival } from '../../edge/survival/survival.ts';
import type { Gateway } from '../../runtime/contract.ts';

export interface GatewayMetrics extends PrometheusMetrics {
  /** From then on the page tells lag and shed classes. */
  watch(survival: Survival): void;
}

const NO_SPANS = Object.freeze({ exported: 0, dropped: 0 });

export function createGatewayMetrics(
  gateway: Gateway,
  tracing: { counts(): TraceSpans } | undefined,
): GatewayMetrics {
  let survival: Survival | undefined;
  const metrics = createPrometheusMetrics({
    isClass: (name) => gateway.config.scheduler.classes.some((entry) => entry.name === name),
    isModel: (name) => gateway.resolveModel(name) === name,
    isTenant: (name) => name === 'anonymous' || gateway.config.tenants.some((entry) => entry.id === name),
    classes: () => gateway.config.scheduler.classes,
    queue: () => gateway.queue(),
    fleet: () => ({
      nodes: gateway.nodes(),
      models: gateway.config.scheduler.models.map(({ id }) => id),
    }),
    ledgers: () => gateway.ledgers(),
    gates: () => gateway.gates(),
    ladderStage: () => gateway.ladder().stage,
    retryBudget: () => gateway.retryBudget(),
    preemptions: () => gateway.preemptions(),
    traceSpans: () => tracing?.counts() ?? NO_SPANS,
    journalDropped: () => gateway.journal()?.dropped,
    signals: () => signalGauges(gateway.signals()),
    process() {
      const lag = survival?.loopLag() ?? { medianMs: 0, maxMs: 0 };
      return {
        ...readProcess(),
        loopLagMs: lag.medianMs,
        loopLagMsMax: lag.maxMs,
        shedClasses: survival?.state.shedClasses ?? 0,
      };
    },
    nowMs: () => performance.now(),
    turn: () => new Promise((resolve) => setImmediate(resolve)),
  });
  return {
    ...metrics,
    watch(started) {
      survival = started;
    },
  };
}

function signalGauges({ detectors, findings }: SignalsView): readonly SignalGauge[] {
  return detectors.map(({ signal, state }) => {
    const own = findings.filter((finding) => finding.signal === signal);
    const pages = own.filter(({ severity }) => severity === 'page').length;
    return { signal, isActive: state === 'active', warnings: own.length - pages, pages };
  });
}
