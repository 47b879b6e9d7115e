/**
 * Retries are shed before first attempts. A retry storm asks again for what was refused a moment ago: served first come,
 * first served it takes the place of people who ask for the first time, and keeps an overload alive after its cause
 * has gone (Bronson et al., "Metastable failures in distributed systems", HotOS 2021).
 *
 * One measure, the wait of the task's own flow over the limit of the flow's gate, and a share of that limit for each:
 *
 *   invited   came back no earlier than it was told: may wait three times as long as the gate allows, since a
 *             queue of a few tasks is full at random times, and whoever keeps to a promise must not draw lots for it
 *   first     as long as the gate allows, but while places are promised to those who were told a time, half of it
 *   repeat    came back before its time: a quarter
 *
 * The measure is what waits now and nothing else, so it cannot latch: whatever waits leaves, served or at its deadline.
 * A task that an idle node would do in time is never shed, and the first of several classes is exempt.
 *
 * Users of whom half do what they are told and half come back at once, 4.2 times the capacity for 75 s: with 1
 * of the gate for the invited and everything promised, 51 to 56 % of the times told to the lowest class came true and
 * 0.96 to 0.97 of the capacity did what was in time; with 2.5 and 0.6, 81 to 89 %
 * and 0.965 to 0.980; with 3 and 0.5, 91 to 92 % and 0.974 to 0.989.
 *
 * The other shares come from virtual runs as in `simulator/retry-storm.test.ts`. Estimates that came true within twice, at twice
 * the capacity, with 1 of the gate for first attempts beside promised places: 57 %, 0.75: 87 to 97 %, 0.5: 95 to 99 %;
 * 0.25 gains little more, and a storm then takes 10 % of first attempts' places. For repeats 0.25 is the largest
 * share that costs first attempts nothing; 0.45 costs them 2 to 5 %.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';
import type { LaneFlow } from '../queue/lane-flow.ts';
import type { TaskRecord } from '../queue/task-record.ts';
import type { Gates } from './gates.ts';
import type { RetryMarks } from './retry-marks.ts';

export type Standing = 'first' | 'invited' | 'repeat';

export const REPEAT_SHARE: Ratio = 0.25;
export const PROMISED_SHARE: Ratio = 0.5;
export const INVITED_SHARE: Ratio = 3;
/**
 * Part of what the flow is served that is promised. The rest is for first attempts, whose answers are still in time, and for
 * what the estimate of the flow's rate does not know of: lesser answers that its class gets in another lane.
 */
const PROMISED_RATE: Ratio = 0.5;
/** Places are promised no further ahead: official clients do not wait longer. */
export const PROMISED_US_MAX: DurationUs = 60_000_000;

/** Costs one test while nobody was refused lately and the client does not say that it tries again. */
export function standingOf(task: TaskRecord, marks: RetryMarks, gates: Gates, now: MonoUs): Standing {
  const { retryCount = 0 } = task.spec;
  if ((marks.size === 0 && retryCount === 0) || !gates.isWatching('retry-shed')) return 'first';
  const verdict = marks.size === 0 ? 'unknown' : marks.judge(task.fingerprint, now);
  if (verdict === 'due') return 'invited';
  return verdict === 'early' || retryCount > 0 ? 'repeat' : 'first';
}

/** How long the flow may wait for a task of this standing to be let in. */
export function waitShareOf(standing: Standing, laneFlow: LaneFlow | undefined, now: MonoUs): Ratio {
  if (standing === 'repeat') return REPEAT_SHARE;
  if (standing === 'invited') return INVITED_SHARE;
  const isPromised = laneFlow !== undefined && laneFlow.promisedUntil > now;
  return standing === 'first' && isPromised ? PROMISED_SHARE : 1;
}

/**
 * How long from now the next free place of the flow is. Places follow each other as fast as the flow is served, or
 * faster by as many as do not come back (the virtual queue of GCRA); `freeUs` is how long the flow would take to have room
 * again if nobody else came.
 */
export function nextPlaceUs(laneFlow: LaneFlow, freeUs: DurationUs, now: MonoUs): DurationUs {
  return Math.max(freeUs, laneFlow.promisedUntil - now);
}

/** Takes a place that was told: for the time that its work takes, times the chance that it is claimed. */
export function takePlace(laneFlow: LaneFlow, at: MonoUs, takenUs: DurationUs): void {
  laneFlow.promisedUntil = Math.max(laneFlow.promisedUntil, at) + Math.round(takenUs / PROMISED_RATE);
}
