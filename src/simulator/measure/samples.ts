/** What one run looked like over time, for plots: at most `SAMPLES_MAX` periods, all lists equally long. */
import type { DurationMs, DurationUs, NodeId, Ratio } from '../../base/units.ts';

/** When there would be more, two neighbouring periods become one: sums are added, of levels the later one stays. */
export const SAMPLES_MAX = 2_000;

export interface Samples {
  readonly periodUs: DurationUs;
  /** Ends of the periods. */
  readonly atSeconds: readonly number[];
  /** Work of the users who came, over the capacity of the fleet; and tries, whoever made them, per second. */
  readonly offeredRatio: readonly number[];
  readonly triesPerSecond: readonly number[];
  /** Requests that wait for a node, by class; and those on nodes. At the end of the period. */
  readonly queued: Readonly<Record<string, readonly number[]>>;
  readonly running: readonly number[];
  /** 95th percentile over the first dispatches of the period, from the user's first try; 0 where there was none. */
  readonly waitMs: readonly DurationMs[];
  /** Users who came to an end in the period, by how: `served`, `late` (served after the deadline), `refused`, `failed`, … */
  readonly ends: Readonly<Record<string, readonly number[]>>;
  readonly nodes: readonly NodeSamples[];
}

export interface NodeSamples {
  readonly id: NodeId;
  /** Part of the period during which it computed. */
  readonly busyRatio: readonly Ratio[];
  /** Time that what is bound to it will take, as the policy sees it; empty when it does not say. */
  readonly drainMs: readonly DurationMs[];
}
