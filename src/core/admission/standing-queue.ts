/**
 * How much of its gate a flow keeps while its queue stands. A queue is for bursts: it holds what comes now for the moment in
 * which less comes. Where a good part of what comes is refused all the time there is no such moment. Then a long queue
 * serves nobody more, makes everybody late, and when the overload is over it stands before those who come next (Nichols and
 * Jacobson, "Controlling Queue Delay", ACM Queue 2012, who tell the same two kinds of queues apart).
 *
 *   refused share, lately   up to refusedShareMax: the whole gate    above: ((1 - share) / (1 - refusedShareMax))² of it
 *
 * Lately is four times as long as a queue may be (`flowWaitMsMax`). Every arrival speaks for the time since the one before
 * it: so the share is that of the time in which the gate was shut, and a thousand that come in one instant are one burst and
 * no overload. Time without arrivals counts as open, so that the gate opens by itself.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';
import type { SchedulerConfig } from '../config/types.ts';

/** Length of what is remembered, in queues of full length. */
const QUEUES_REMEMBERED = 4;

/** The instant, and the rules of then. */
export interface At {
  readonly now: MonoUs;
  readonly config: Pick<SchedulerConfig, 'admission' | 'classes' | 'degrade'>;
}

/** What is known of a flow's arrivals in a lane; a `LaneFlow` has it. */
export interface Arrivals {
  /** Share of them that the gate refused, as of the last one. */
  refusedShare: Ratio;
  /** When the last one came. */
  arrivedAt: MonoUs;
}

/** Share of the flow's arrivals that its gate refused lately. O(1). */
export function refusedShareOf(flow: Arrivals | undefined, at: At): Ratio {
  if (flow === undefined || flow.refusedShare === 0) return 0;
  const memoryUs = memoryUsOf(at);
  return (flow.refusedShare * memoryUs) / (memoryUs + at.now - flow.arrivedAt);
}

/** Part of its gate that the flow keeps, from 0 to 1. */
export function keptShareOf(flow: Arrivals | undefined, at: At): Ratio {
  const refused = refusedShareOf(flow, at);
  const { refusedShareMax } = at.config.admission;
  if (refused <= refusedShareMax) return 1;
  const letIn = (1 - refused) / (1 - refusedShareMax);
  return letIn * letIn;
}

/** Why the flow may have less waiting than usual, for people; empty while it may not. */
export function standingCause(flow: Arrivals | undefined, at: At): string {
  const kept = keptShareOf(flow, at);
  if (kept === 1) return '';
  return `${percent(refusedShareOf(flow, at))} of this flow was refused in the last ${memoryUsOf(at) / 1_000_000} s, so its queue is kept at ${percent(kept)} of the usual length`;
}

/** Takes note of a task that came to the gate of its flow. None speaks for longer than a queue may be. O(1). */
export function noteArrival(flow: Arrivals, isRefused: boolean, at: At): void {
  const memoryUs = memoryUsOf(at);
  const spokenUs = isRefused ? Math.min(at.now - flow.arrivedAt, memoryUs / QUEUES_REMEMBERED) : 0;
  flow.refusedShare = refusedShareOf(flow, at) + spokenUs / (memoryUs + spokenUs);
  flow.arrivedAt = at.now;
}

function memoryUsOf({ config }: At): DurationUs {
  return QUEUES_REMEMBERED * config.admission.flowWaitMsMax * 1_000;
}

function percent(ratio: Ratio): string {
  return `${Math.round(ratio * 100)} %`;
}
