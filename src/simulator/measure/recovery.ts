/**
 * How long a disturbance is felt after its end, as clients feel it.
 *
 * Waits: windows of 10 s; the 95th percentile of what users who were dispatched, or turned away, had waited since their
 * first try. Who is turned away waits for ever. Back: two windows in a row at most at the greater of twice the percentile
 * before and 5 % of the deadline. Users from before the end, who were told to come back later, have waited long when they
 * do: the waits of tries, each from its own submission, tell of the service alone.
 *
 * Goodput: users by the 10 s in which they arrived; the share of them that is served in time. Back: two windows in a row
 * at 95 % (98 %) of the share before. By arrival, and not by completion, so that neither what is left of the disturbance
 * nor chance in the number of arrivals counts as being ill.
 *
 * Answers: the same of the share that has an answer at all, by whichever try. A client that hangs up at the deadline of each
 * try is never answered late by one: whoever had to come back is late by the first measure and not by this.
 *
 * Rate: answers in time by when they were given; back with the first minute, from one of the windows on, that has 95 % of what a
 * minute before had. A minute, since windows have so few that chance in arrivals alone takes more than a twentieth of them.
 *
 * What is "before" is the second half of the time before the first disturbance: the first is for warming up.
 */
import type { DurationUs, MonoUs, Ratio } from '../../base/units.ts';
import { bucketOf, LogHistogram } from './log-histogram.ts';

export interface Disturbance {
  readonly from: MonoUs;
  readonly until: MonoUs;
}

const WINDOW_US: DurationUs = 10_000_000;
const WINDOWS_IN_A_ROW = 2;
const WINDOWS_PER_MINUTE = 6;
const WAIT_TIMES = 2;
const WAIT_DEADLINE_SHARE = 0.05;
/** Windows after the end of the disturbance that are kept: a week. */
const WINDOWS_MAX = 60_480;
/** Stands for the wait of those who were turned away. */
const NEVER_US: DurationUs = 1e15;

class Waits {
  readonly #disturbance: Disturbance;
  readonly #deadlineUs: DurationUs;
  readonly #before = new LogHistogram();
  readonly #now = new LogHistogram();
  #window = 0;
  #healthyWindows = 0;
  #healthyFrom = 0;
  #backAt: DurationUs = Number.POSITIVE_INFINITY;

  constructor(disturbance: Disturbance, deadlineUs: DurationUs) {
    this.#disturbance = disturbance;
    this.#deadlineUs = deadlineUs;
  }

  add(waitUs: DurationUs, now: MonoUs): void {
    if (isBefore(this.#disturbance, now)) return this.#before.add(bucketOf(waitUs));
    if (now < this.#disturbance.until || this.#backAt !== Number.POSITIVE_INFINITY) return;
    this.#closeWindows(now);
    this.#now.add(bucketOf(waitUs));
  }

  backSeconds(now: MonoUs): number {
    this.#closeWindows(now);
    return this.#backAt / 1e6;
  }

  #closeWindows(now: MonoUs): void {
    const current = Math.floor((now - this.#disturbance.until) / WINDOW_US);
    while (this.#window < current && this.#backAt === Number.POSITIVE_INFINITY) {
      const limitUs = Math.max(
        WAIT_TIMES * this.#before.quantile(0.95),
        WAIT_DEADLINE_SHARE * this.#deadlineUs,
      );
      // A window without anybody is neither: it could be the silence of an outage.
      if (this.#now.total > 0) this.#judge(this.#now.quantile(0.95) <= limitUs);
      this.#now.clear();
      this.#window += 1;
    }
  }

  #judge(isHealthy: boolean): void {
    if (this.#healthyWindows === 0) this.#healthyFrom = this.#window;
    this.#healthyWindows = isHealthy ? this.#healthyWindows + 1 : 0;
    if (this.#healthyWindows === WINDOWS_IN_A_ROW) this.#backAt = this.#healthyFrom * WINDOW_US;
  }
}

export class Recovery {
  readonly #disturbance: Disturbance;
  readonly #users: Waits;
  readonly #tries: Waits;
  #beforeOffered = 0;
  #beforeInTime = 0;
  readonly #offered: number[] = [];
  readonly #inTime: number[] = [];
  #beforeAnswered = 0;
  readonly #answered: number[] = [];
  #beforeDone = 0;
  readonly #done: number[] = [];

  /** `deadlineUs` is that of the class whose waits are looked at. */
  constructor(disturbance: Disturbance, deadlineUs: DurationUs) {
    this.#disturbance = disturbance;
    this.#users = new Waits(disturbance, deadlineUs);
    this.#tries = new Waits(disturbance, deadlineUs);
  }

  /** A user of the class was dispatched for the first time in a try: what he waited, and what the try did. */
  waited(waitUs: DurationUs, tryWaitUs: DurationUs, now: MonoUs): void {
    this.#users.add(waitUs, now);
    this.#tries.add(tryWaitUs, now);
  }

  turnedAway(now: MonoUs): void {
    this.#users.add(NEVER_US, now);
  }

  /** A try came to nothing; its user may come back. */
  tryTurnedAway(now: MonoUs): void {
    this.#tries.add(NEVER_US, now);
  }

  arrived(now: MonoUs): void {
    if (isBefore(this.#disturbance, now)) this.#beforeOffered += 1;
    else this.#count(this.#offered, now);
  }

  servedInTime(arrivedAt: MonoUs, now: MonoUs): void {
    if (isBefore(this.#disturbance, arrivedAt)) this.#beforeInTime += 1;
    else this.#count(this.#inTime, arrivedAt);
    if (isBefore(this.#disturbance, now)) this.#beforeDone += 1;
    else this.#count(this.#done, now);
  }

  /** In time or not. */
  answered(arrivedAt: MonoUs): void {
    if (isBefore(this.#disturbance, arrivedAt)) this.#beforeAnswered += 1;
    else this.#count(this.#answered, arrivedAt);
  }

  /** Infinity if never. */
  waitsSeconds(now: MonoUs): number {
    return this.#users.backSeconds(now);
  }

  tryWaitsSeconds(now: MonoUs): number {
    return this.#tries.backSeconds(now);
  }

  /** `share` of what it was before; windows that were over at `until`. */
  goodputSeconds(share: Ratio, until: MonoUs): number {
    return this.#backSeconds(this.#inTime, share * this.#partBefore(this.#beforeInTime), until);
  }

  answersSeconds(share: Ratio, until: MonoUs): number {
    return this.#backSeconds(this.#answered, share * this.#partBefore(this.#beforeAnswered), until);
  }

  /** By when answers were given; the first minute with `share` of what a minute before had, of those that were over at `until`. */
  rateSeconds(share: Ratio, until: MonoUs): number {
    const { from } = this.#disturbance;
    const leastPerMinute = (share * this.#beforeDone * WINDOWS_PER_MINUTE * WINDOW_US) / (from / 2);
    const minutes = this.#windowsUntil(until) - WINDOWS_PER_MINUTE;
    for (let window = 0; window <= minutes; window++) {
      let done = 0;
      for (let at = window; at < window + WINDOWS_PER_MINUTE; at++) done += this.#done[at] ?? 0;
      if (done >= leastPerMinute) return (window * WINDOW_US) / 1e6;
    }
    return Number.POSITIVE_INFINITY;
  }

  #windowsUntil(until: MonoUs): number {
    return Math.min(WINDOWS_MAX, Math.floor((until - this.#disturbance.until) / WINDOW_US));
  }

  #partBefore(count: number): Ratio {
    return this.#beforeOffered === 0 ? 1 : count / this.#beforeOffered;
  }

  /** First of the windows in a row in each of which at least `part` of those who came count. */
  #backSeconds(counts: readonly number[], part: Ratio, until: MonoUs): number {
    const windows = this.#windowsUntil(until);
    let healthy = 0;
    for (let window = 0; window < windows; window++) {
      const offered = this.#offered[window] ?? 0;
      healthy = (counts[window] ?? 0) >= part * offered ? healthy + 1 : 0;
      if (healthy === WINDOWS_IN_A_ROW) return ((window + 1 - WINDOWS_IN_A_ROW) * WINDOW_US) / 1e6;
    }
    return Number.POSITIVE_INFINITY;
  }

  #count(windows: number[], at: MonoUs): void {
    if (at < this.#disturbance.until) return;
    const window = Math.floor((at - this.#disturbance.until) / WINDOW_US);
    if (window >= WINDOWS_MAX) return;
    while (windows.length <= window) windows.push(0);
    windows[window] = (windows[window] as number) + 1;
  }
}

function isBefore({ from }: Disturbance, at: MonoUs): boolean {
  return at >= from / 2 && at < from;
}
