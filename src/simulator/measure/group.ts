/** What became of the users of one group, and how long they waited. */
import type { DurationUs, RefUs } from '../../base/units.ts';
import type { UserEnd } from '../clients/user.ts';
import { Distribution, type DistributionOptions } from './distribution.ts';
import type { TimedValue } from './log-histogram.ts';
import type { GroupReport } from './report.ts';

/** A user's end, computed once for all groups that he belongs to. */
export interface Ending {
  kind: UserEnd['kind'];
  inTime: boolean;
  /** The same with the deadline counted from the try that was served. */
  inTimeOfTry: boolean;
  readonly wait: TimedValue;
  readonly response: TimedValue;
  /** Below 0 where the answer was not streamed. */
  readonly firstByte: TimedValue;
  /** True work of what he got. */
  workUs: RefUs;
}

export class Group {
  offered = 0;
  /** By kind of end. */
  readonly ended: Record<UserEnd['kind'], number> = {
    served: 0,
    degraded: 0,
    refused: 0,
    failed: 0,
    'gave-up': 0,
  };
  inTime = 0;
  /** Attempts, and those of them that gave way to another request. */
  attempts = 0;
  preempted = 0;
  /** Of all users, those of the window or not. */
  acceleratorUs: DurationUs = 0;
  maxWaitUs: DurationUs = 0;
  workUs: RefUs = 0;
  readonly #wait: Distribution;
  readonly #response: Distribution;
  readonly #firstByte: Distribution;

  constructor(options: DistributionOptions = {}) {
    this.#wait = new Distribution(options);
    this.#response = new Distribution(options);
    this.#firstByte = new Distribution(options);
  }

  end(ending: Ending): void {
    this.ended[ending.kind] += 1;
    if (ending.kind !== 'served' && ending.kind !== 'degraded') return;
    this.#wait.add(ending.wait);
    this.#response.add(ending.response);
    if (ending.firstByte.valueUs >= 0) this.#firstByte.add(ending.firstByte);
    if (!ending.inTime) return;
    this.inTime += 1;
    this.workUs += ending.workUs;
  }

  waited(waitUs: DurationUs): void {
    if (waitUs > this.maxWaitUs) this.maxWaitUs = waitUs;
  }

  merge(other: Group): void {
    this.offered += other.offered;
    for (const kind of Object.keys(this.ended) as UserEnd['kind'][]) this.ended[kind] += other.ended[kind];
    this.inTime += other.inTime;
    this.attempts += other.attempts;
    this.preempted += other.preempted;
    this.acceleratorUs += other.acceleratorUs;
    this.workUs += other.workUs;
    this.waited(other.maxWaitUs);
    this.#wait.merge(other.#wait);
    this.#response.merge(other.#response);
    this.#firstByte.merge(other.#firstByte);
  }

  /** Whoever has no end yet counts as one who gave up. */
  report(): GroupReport {
    const { served, degraded, refused, failed } = this.ended;
    return {
      offered: this.offered,
      served,
      degraded,
      refused,
      failed,
      gaveUp: this.offered - served - degraded - refused - failed,
      attained: this.offered === 0 ? 0 : this.inTime / this.offered,
      missed: this.offered === 0 ? 0 : 1 - this.inTime / this.offered,
      preemptedRatio: this.attempts === 0 ? 0 : this.preempted / this.attempts,
      answered: this.offered === 0 ? 0 : (served + degraded) / this.offered,
      waitMs: this.#wait.quantilesMs(),
      maxWaitMs: this.maxWaitUs / 1_000,
      ...(this.#firstByte.count === 0 ? {} : { firstByteMs: this.#firstByte.quantilesMs() }),
      responseMs: this.#response.quantilesMs(),
      workSeconds: this.workUs / 1e6,
    };
  }
}
