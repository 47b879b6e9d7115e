/**
 * What the host of a node tells of its accelerators, apart from what the engine says of itself.
 * An implementation MUST treat what the page does not say as unknown, never as zero, MUST follow no redirect, and MUST
 * NOT take longer than `timeoutMs`.
 */
import type { DurationMs } from '../base/units.ts';
import type { NodeTelemetryConfig } from '../core/config/types.ts';
import type { AcceleratorReading } from '../core/health/index.ts';
import type { DeviceMemory } from '../core/overload/index.ts';

export interface HostReading {
  /** Of the fullest device; absent when no device tells it. */
  readonly memory?: DeviceMemory;
  /** At most 32. */
  readonly accelerators: readonly AcceleratorReading[];
}

export interface DeviceTelemetry {
  /** Undefined when the page did not say. MUST NOT reject. */
  read(source: NodeTelemetryConfig, timeoutMs: DurationMs): Promise<HostReading | undefined>;
}
