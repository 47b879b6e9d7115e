/**
 * How many tasks at once do an engine good that tells how many wait inside it. Between two readings nothing says that it is
 * full. What is sent there by then waits inside, blind to classes, tenants and deadlines, and cannot be taken back. So the most
 * is tried once, and then known:
 *
 *   done      tasks in flight − those that wait: what it does of ours at once, whatever it does for others
 *   lately    the most of that at a reading of the last two minutes
 *
 *   more than an eighth of it waits     limit = lately + an eighth, and nothing where it does none of ours
 *   no more                             limit stays, or is lately; where all of it is used 1 more, then 2, 4, 8 …
 *
 * An eighth may wait: it has work at hand when something ends, and who came since its last step waits for the next one only.
 * Some wait for something else than a place, such as a model that must be loaded: so it is the most that it did, and not what it
 * does now, or a limit that lets it do less would be reason for a lower one.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';

const WAITING_SHARE: Ratio = 1 / 8;
/** What it did is remembered for one to two of these. */
const REMEMBERED_US: DurationUs = 60_000_000;

export interface LoadRead {
  /** Tasks that wait inside the engine, whosever they are. */
  readonly waiting: number;
  /** Tasks of ours that it has. */
  readonly inflight: number;
  /** No limit is higher. */
  readonly max: number;
}

export class ReadLimit {
  /** Tasks at once that are allowed now; 0 while it does none of ours, and some wait. */
  limit: number;
  #most = 0;
  #mostBefore = 0;
  #since: MonoUs = 0;
  #step = 1;

  /** `max`: as many as it may have until some wait. */
  constructor(max: number) {
    this.limit = max;
  }

  told({ waiting, inflight, max }: LoadRead, now: MonoUs): void {
    const done = Math.max(0, inflight - waiting);
    const lately = this.#latelyWith(done, now);
    const spare = Math.max(1, Math.floor(lately * WAITING_SHARE));
    if (waiting > (done === 0 ? 0 : spare)) {
      this.limit = done === 0 ? 0 : Math.min(max, lately + spare);
      this.#step = 1;
      return;
    }
    const known = Math.max(this.limit, lately);
    const isUsedUp = inflight >= known;
    this.limit = Math.min(max, isUsedUp ? known + this.#step : known);
    if (isUsedUp) this.#step = Math.min(max, 2 * this.#step);
  }

  #latelyWith(done: number, now: MonoUs): number {
    if (now - this.#since >= REMEMBERED_US) {
      this.#mostBefore = now - this.#since < 2 * REMEMBERED_US ? this.#most : 0;
      this.#most = 0;
      this.#since = now;
    }
    this.#most = Math.max(this.#most, done);
    return Math.max(1, this.#most, this.#mostBefore);
  }
}
