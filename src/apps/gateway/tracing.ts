/** Traces, where they are configured: otherwise not a module of OpenTelemetry is loaded. */
import type { StartedTracing } from '../../adapters/tracing-otlp/index.ts';
import type { TracingConfig } from '../../core/config/index.ts';
import type { MonoUs } from '../../base/units.ts';

export async function startTracingOf(
  config: TracingConfig,
  now: () => MonoUs,
): Promise<StartedTracing | undefined> {
  if (config.endpoint === '') return undefined;
  const { startTracing } = await import('../../adapters/tracing-otlp/index.ts');
  return startTracing({ config, now, wallMs: () => Date.now() });
}
