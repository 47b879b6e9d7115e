/**
 * The last ten minutes as samples: each second of the last ten, then one in ten seconds. What a detector says is a pure
 * function of this, so equal samples give equal findings, and a detector is tested by writing a past.
 */
import type { DurationUs, MonoUs } from '../../base/units.ts';
import type { Sample } from './sample.ts';
import { told } from './statistics.ts';

const RECENT_MAX = 10;
const COARSE_MAX = 60;
const COARSE_US: DurationUs = 10_000_000;
/** A sample is late by this much at most, when one is asked for by its age. */
const LATE_US: DurationUs = 500_000;
const US_PER_S = 1_000_000;

export class Past {
  /** Seconds of real time that count as one: 1 where a sample comes each second. */
  readonly pace: number;
  readonly #recent: Sample[] = [];
  readonly #coarse: Sample[] = [];

  constructor(pace = 1) {
    this.pace = pace;
  }

  /** Time does not go back; a sample of the same instant replaces nothing. */
  add(sample: Sample): void {
    this.#recent.push(sample);
    if (this.#recent.length > RECENT_MAX + 1) this.#recent.shift();
    const last = this.#coarse.at(-1);
    if (last !== undefined && sample.at - last.at < (COARSE_US - LATE_US) * this.pace) return;
    this.#coarse.push(sample);
    if (this.#coarse.length > COARSE_MAX + 1) this.#coarse.shift();
  }

  /** The newest sample. There is one: rules are asked after a sample came. */
  get now(): Sample {
    return this.#recent.at(-1) as Sample;
  }

  /** The newest kept sample that is at least this old; undefined while the past is shorter. */
  ago(seconds: number): Sample | undefined {
    const until = this.now.at - (seconds * US_PER_S - LATE_US) * this.pace;
    return newestUntil(this.#recent, until) ?? newestUntil(this.#coarse, until);
  }

  /** How old an instant is, in seconds as the windows count them. */
  ageOf(at: MonoUs): number {
    return (this.now.at - at) / US_PER_S / this.pace;
  }

  /** For how many real seconds such a window lasts. */
  lasting(seconds: number): number {
    return told(seconds * this.pace);
  }

  /** Samples of the last seconds, oldest first, about ten seconds apart, the newest last. */
  every10(seconds: number): readonly Sample[] {
    const from = this.now.at - (seconds * US_PER_S + LATE_US) * this.pace;
    const kept = this.#coarse.filter(({ at }) => at >= from);
    return kept.at(-1) === this.now ? kept : [...kept, this.now];
  }

  /** The last samples second by second, oldest first, at most ten. */
  everySecond(): readonly Sample[] {
    return this.#recent;
  }
}

function newestUntil(samples: readonly Sample[], until: number): Sample | undefined {
  for (let index = samples.length - 1; index >= 0; index--) {
    const sample = samples[index] as Sample;
    if (sample.at <= until) return sample;
  }
  return undefined;
}
