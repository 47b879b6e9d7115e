/** How long a node may say nothing in each part of its answer. */
import type { DurationMs } from '../../base/units.ts';
import type { GatewayConfig } from '../../core/config/index.ts';
import type { Assignment } from '../../runtime/contract.ts';

interface SilenceLimits {
  /** Until the head, then until the first content byte of a stream or inside a whole answer, then inside a stream. */
  readonly headersMs: DurationMs;
  readonly bodyMs: DurationMs;
  readonly streamMs: DurationMs;
}

/**
 * What the scheduler learned, inside the configured bound. Without a learned bound a whole answer is silent until it is ready,
 * and the scheduler ends it at its deadline.
 */
export function silenceLimits(
  { silence }: Pick<Assignment, 'silence'>,
  { server, scheduler }: Pick<GatewayConfig, 'server' | 'scheduler'>,
  isStream: boolean,
): SilenceLimits {
  const outerMs = server.nodeIdleMs;
  const firstMs = silence.firstByteUs > 0 ? silence.firstByteUs / 1_000 : Number.POSITIVE_INFINITY;
  const streamMs = silence.idleUs > 0 ? Math.min(outerMs, silence.idleUs / 1_000) : outerMs;
  const wholeMs = Math.max(outerMs, scheduler.admission.deadlineMsMax);
  return {
    headersMs: Math.min(isStream ? outerMs : wholeMs, firstMs),
    bodyMs: Math.min(outerMs, firstMs),
    streamMs,
  };
}
