/**
 * Where users come from. An open source sends them whatever becomes of them; a closed one is a person who asks again only
 * when the wish before has ended.
 */
import { HeapSlot } from '../../base/keyed-heap.ts';
import type { MonoUs } from '../../base/units.ts';
import type { DrawKey, Draws } from './draws.ts';
import type { GapLaw } from './gaps.ts';
import type { RateCourse } from './rate-course.ts';
import type { Size } from './sizes.ts';
import type { UserLaw } from './user-law.ts';
import type { UserRecord } from './user-record.ts';

export interface Source {
  readonly law: UserLaw;
  readonly place: HeapSlot<Source>;
  /** When its next user comes; Infinity for never, or not before the last one's end. */
  readonly nextAt: MonoUs;
  /** The next user's number in the stream. */
  readonly draw: number;
  /** Position of the model that the user before asked for; -1 for none. */
  readonly modelBefore: number;
  /** What the next user asks for, when a trace tells it; else it is drawn. */
  readonly size: Size | undefined;
  /** Makes the record the user who is due now. Afterwards `nextAt` is that of the next. */
  take(user: UserRecord): void;
  /** Its user ended; `nextAt` may be another afterwards. */
  ended?(now: MonoUs): void;
}

export interface OpenSourceOptions {
  readonly law: UserLaw;
  /** The law of the gap that begins at an instant; asked for in order of time. */
  readonly gapsAt: (at: MonoUs) => GapLaw;
  readonly gapKey: DrawKey;
  readonly course: RateCourse;
  readonly draws: Draws;
  /** Among sources; breaks ties. */
  readonly order: number;
}

export class OpenSource implements Source {
  readonly law: UserLaw;
  readonly place: HeapSlot<Source>;
  readonly size = undefined;
  nextAt: MonoUs = 0;
  draw = 0;
  modelBefore = -1;
  readonly #options: OpenSourceOptions;
  /** Not rounded, so that rounding does not add up. */
  #at = 0;

  constructor(options: OpenSourceOptions) {
    this.law = options.law;
    this.place = new HeapSlot<Source>(this, options.order);
    this.#options = options;
    this.#step();
  }

  take(user: UserRecord): void {
    this.law.draw(this, user);
    this.modelBefore = user.modelAt;
    this.draw += 1;
    this.#step();
  }

  #step(): void {
    const { draws, gapKey, gapsAt, course } = this.#options;
    draws.begin(gapKey, this.draw);
    this.#at = course.after(this.#at, gapsAt(this.#at)(draws));
    this.nextAt = Math.floor(this.#at);
  }
}

export interface ClosedSourceOptions {
  readonly law: UserLaw;
  readonly thinkKey: DrawKey;
  /** A clock on which a pause for thought takes 1 in the mean. */
  readonly course: RateCourse;
  readonly draws: Draws;
  readonly order: number;
  /** Which person of how many. */
  readonly member: number;
  readonly members: number;
}

/** One person: thinks, asks, waits for the end, thinks again. Its wishes are numbered apart from those of the others. */
export class ClosedSource implements Source {
  readonly law: UserLaw;
  readonly place: HeapSlot<Source>;
  readonly size = undefined;
  nextAt: MonoUs = 0;
  draw: number;
  modelBefore = -1;
  readonly #options: ClosedSourceOptions;

  constructor(options: ClosedSourceOptions) {
    this.law = options.law;
    this.place = new HeapSlot<Source>(this, options.order);
    this.draw = options.member;
    this.#options = options;
    this.#think(0);
  }

  take(user: UserRecord): void {
    this.law.draw(this, user);
    this.modelBefore = user.modelAt;
    this.nextAt = Number.POSITIVE_INFINITY;
  }

  ended(now: MonoUs): void {
    this.draw += this.#options.members;
    this.#think(now);
  }

  #think(from: MonoUs): void {
    const { draws, thinkKey, course } = this.#options;
    draws.begin(thinkKey, this.draw);
    this.nextAt = Math.floor(course.after(from, draws.exponential()));
  }
}
