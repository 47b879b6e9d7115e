/**
 * What the host of a node tells of its accelerators and of what it lacks, apart from what the engine says of itself.
 * An implementation MUST treat what the page does not say as unknown, never as zero, MUST follow no redirect, and MUST
 * NOT take longer than `timeoutMs`.
 */
import type { DurationMs } from '../base/units.ts';
import type { NodeTelemetryConfig } from '../core/config/types.ts';
import type { AcceleratorReading, PressureCounters } from '../core/health/index.ts';
import type { DeviceMemory } from '../core/overload/index.ts';

export interface HostReading {
  /** Of the fullest device; absent when no device tells it. */
  readonly memory?: DeviceMemory;
  /** At most 32. */
  readonly accelerators: readonly AcceleratorReading[];
  /** Absent when no page tells any of it. */
  readonly pressure?: PressureCounters;
}

export interface DeviceTelemetry {
  /** Undefined when no page did say. MUST NOT reject. */
  read(source: NodeTelemetryConfig, timeoutMs: DurationMs): Promise<HostReading | undefined>;
}
