/**
 * Traces by OpenTelemetry, exported by OTLP over HTTP to the one configured endpoint. Imported only where one is configured:
 * without, not a module of it is loaded.
 *
 * Nothing global is touched: no global provider, no propagator, no context manager. Parents are passed by hand, which costs
 * the requests nothing where they wait.
 */
import { ROOT_CONTEXT, TraceFlags, type Tracer, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, TracerProvider, RandomIdGenerator } from '@opentelemetry/sdk-trace';
import { parseTraceparent } from '../../base/trace-context.ts';
import type { MonoUs } from '../../base/units.ts';
import type { TracingConfig } from '../../core/config/types.ts';
import type { RequestTrace, TracedRequest, Tracing } from '../../ports/tracing.ts';
import { RecordedTrace } from './recorded-trace.ts';
import { type SpanCounts, SpanQueue } from './span-queue.ts';
import { UnrecordedTrace } from './unrecorded-trace.ts';

export interface TracingOptions {
  readonly config: TracingConfig;
  now(): MonoUs;
  wallMs(): number;
}

export interface StartedTracing {
  readonly tracing: Tracing;
  counts(): SpanCounts;
  /** Sends what waits within `timeoutMs`. */
  stop(): Promise<void>;
}

/** Of one span: a request has 3 events and at most one more per attempt; 16 attributes. */
const EVENTS_MAX = 32;
const ATTRIBUTES_MAX = 32;
const VALUE_CHARS_MAX = 256;

export function startTracing({ config, now, wallMs }: TracingOptions): StartedTracing {
  const { endpoint, headers, timeoutMs, queueSpansMax, exportMs, sampleRatio, serviceName } = config;
  const exporter = new OTLPTraceExporter({
    url: endpoint,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
    concurrencyLimit: 1,
  });
  const queue = new SpanQueue({ exporter, queueSpansMax, exportMs, timeoutMs });
  const ids = new RandomIdGenerator();
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': serviceName }),
    // What is recorded was drawn before.
    sampler: new AlwaysOnSampler(),
    idGenerator: ids,
    spanProcessors: [queue],
    spanLimits: {
      eventCountLimit: EVENTS_MAX,
      attributeCountLimit: ATTRIBUTES_MAX,
      attributeValueLengthLimit: VALUE_CHARS_MAX,
      linkCountLimit: 0,
    },
  });
  const tracer: Tracer = provider.getTracer('spillway');
  return {
    tracing: {
      begin({ traceparent, receivedAt }: TracedRequest): RequestTrace {
        const client = parseTraceparent(traceparent);
        // By chance and not by the trace's id, which a client chooses.
        if (Math.random() >= sampleRatio) return new UnrecordedTrace(ids, client?.traceId ?? '');
        const parent =
          client === undefined
            ? ROOT_CONTEXT
            : trace.setSpanContext(ROOT_CONTEXT, {
                traceId: client.traceId,
                spanId: client.spanId,
                traceFlags: client.sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
                isRemote: true,
              });
        const anchor = { monoUs: now(), wallMs: wallMs() };
        return new RecordedTrace({ tracer, parent, continues: client !== undefined, receivedAt, anchor });
      },
    },
    counts: () => queue.counts,
    stop: () => queue.shutdown(),
  };
}
