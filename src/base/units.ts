/**
 * Units. Every quantity that crosses a module border carries one of these types or its unit in its name.
 *
 * The brands are *flavours*: a plain number may become one, but one flavour never becomes another, so instants
 * and durations, work and wall time cannot be mixed by accident and the hot path needs no casts.
 * Decisions use integer microseconds so that a replay is exact.
 */
type Flavour<T, Name extends string> = T & { readonly __unit?: Name };

/** An instant on the monotonic clock, integer microseconds since an arbitrary origin. */
export type MonoUs = Flavour<number, 'MonoUs'>;
/** A span of time, integer microseconds. */
export type DurationUs = Flavour<number, 'DurationUs'>;
/** A span of time in milliseconds, as configuration and wire formats write it. */
export type DurationMs = Flavour<number, 'DurationMs'>;
/** Wall-clock time, milliseconds since 1970. For people and storage only, never for ordering or waiting. */
export type WallMs = Flavour<number, 'WallMs'>;
/** Work: microseconds that the model's reference accelerator would need. Integer, at least 1 for any task. */
export type RefUs = Flavour<number, 'RefUs'>;
export type Bytes = Flavour<number, 'Bytes'>;
export type Tokens = Flavour<number, 'Tokens'>;
/** A share between 0 and 1, bounds included. Never a percentage. */
export type Ratio = Flavour<number, 'Ratio'>;
/** Work completed per wall time (RefUs per microsecond). 1 means as fast as the reference accelerator. */
export type Rate = Flavour<number, 'Rate'>;

/** The scheduler's own number for a task: unique in a process, growing in order of arrival. */
export type TaskId = Flavour<number, 'TaskId'>;
export type NodeId = Flavour<string, 'NodeId'>;
export type ModelId = Flavour<string, 'ModelId'>;
export type TenantId = Flavour<string, 'TenantId'>;
export type ClassName = Flavour<string, 'ClassName'>;

export const US_PER_MS = 1_000;
export const US_PER_S = 1_000_000;

export function msToUs(ms: DurationMs): DurationUs {
  return Math.round(ms * US_PER_MS) as DurationUs;
}
