/**
 * The limits of one name: a tenant, a class, or a model. Requests and tokens are given out by buckets; tasks at once
 * are counted from their admission until they leave, queued or running, or until their node gives its permit back.
 *
 * What is not limited has no bucket.
 */
import { invariant } from '../../base/assert.ts';
import type { DurationUs, MonoUs, Tokens } from '../../base/units.ts';
import type { LimitsConfig } from '../config/types.ts';
import { type LimitsView, type LimitView, NO_RETRY, type RetryHint } from '../request/outcome.ts';
import { type BucketRate, TokenBucket } from './token-bucket.ts';

/** How fast the mean time that a task is held follows: the last eight or so. */
const HELD_STEP = 1 / 8;
/** A model's id may be longer than a cause may be. */
const NAME_CHARS_MAX = 80;

/** Why a request does not get past a limit. */
export interface LimitRefusal {
  /** Which limit it was, for people. */
  readonly cause: string;
  readonly hint: RetryHint;
  /** What is left of the limits of the name that refused. */
  readonly limits: LimitsView;
}

export type LimitScope = 'tenant' | 'class' | 'model';

/** A row of the view for people. */
export interface LimiterView extends LimitsView {
  readonly scope: LimitScope;
  readonly name: string;
  /** Tasks that hold something of it now. */
  readonly tasks: number;
  /** Absent when any number may be there at once. */
  readonly tasksMax?: number;
  /** Tokens reserved for tasks that have not ended. */
  readonly tokensReserved: Tokens;
}

export class Limiter {
  readonly scope: LimitScope;
  readonly name: string;
  /** What a refusal calls it: a name of the configuration, never one that a client made up. */
  #label = '';
  #tasks = 0;
  #tasksMax = Number.POSITIVE_INFINITY;
  #requests: TokenBucket | null = null;
  #tokens: TokenBucket | null = null;
  /** Mean time for which a task is held, of the last ones; 0 while none has ended. */
  #heldUs: DurationUs = 0;

  constructor(scope: LimitScope, name: string) {
    this.scope = scope;
    this.name = name;
  }

  /** A bucket that stays keeps its level; one that is new is full. */
  configure(config: LimitsConfig, label: string, now: MonoUs): void {
    this.#label = label;
    this.#requests = renewed(this.#requests, rateOf(config.requestsPerMinute, config.requestsBurst), now);
    this.#tokens = renewed(this.#tokens, rateOf(config.tokensPerMinute, config.tokensBurst), now);
    this.#tasksMax = config.concurrency ?? Number.POSITIVE_INFINITY;
  }

  /** Nothing is held, and nothing would be lost by forgetting it: its buckets are full. */
  isSpotless(now: MonoUs): boolean {
    return this.#tasks === 0 && fullUs(this.#requests, now) === 0 && fullUs(this.#tokens, now) === 0;
  }

  /** Time until one request of so many tokens would be let through: 0 when it would be at once, Infinity when never. */
  waitUs(tokens: Tokens, now: MonoUs): DurationUs {
    return Math.max(this.#requestUs(now), this.#tokensUs(tokens, now), this.#placeUs());
  }

  /** Takes what `waitUs` said is there. */
  take(tokens: Tokens, now: MonoUs): Hold {
    this.#tasks += 1;
    const held = tokens > 0 ? this.#tokens : null;
    this.#requests?.take(1, now);
    held?.take(tokens, now);
    return new Hold(this, this.#requests, held ?? this.#tokens);
  }

  leave(heldUs: DurationUs): void {
    invariant(this.#tasks > 0, 'A reservation ends once');
    this.#tasks -= 1;
    this.#heldUs += this.#heldUs === 0 ? heldUs : Math.round((heldUs - this.#heldUs) * HELD_STEP);
  }

  /** What to say of a request for which `waitUs` is not 0. */
  refusal(tokens: Tokens, now: MonoUs): LimitRefusal {
    const afterUs = this.waitUs(tokens, now);
    const hint = Number.isFinite(afterUs) ? { retryable: true, afterUs } : NO_RETRY;
    return { cause: `${this.#label}: ${this.#shortOf(tokens, afterUs, now)}`, hint, limits: this.view(now) };
  }

  view(now: MonoUs): LimitsView {
    return {
      ...(this.#requests === null ? {} : { requests: viewOf(this.#requests, now) }),
      ...(this.#tokens === null ? {} : { tokens: viewOf(this.#tokens, now) }),
    };
  }

  row(now: MonoUs): LimiterView {
    return {
      scope: this.scope,
      name: this.name,
      tasks: this.#tasks,
      ...(this.#tasksMax === Number.POSITIVE_INFINITY ? {} : { tasksMax: this.#tasksMax }),
      ...this.view(now),
      tokensReserved: this.#tokens?.reserved ?? 0,
    };
  }

  #requestUs(now: MonoUs): DurationUs {
    return this.#requests === null ? 0 : this.#requests.waitUs(1, now);
  }

  #tokensUs(tokens: Tokens, now: MonoUs): DurationUs {
    return this.#tokens === null || tokens === 0 ? 0 : this.#tokens.waitUs(tokens, now);
  }

  /** The next of those that are held leaves in about this time, by how long others were held. At least 1 when full. */
  #placeUs(): DurationUs {
    return this.#tasks < this.#tasksMax ? 0 : Math.max(1, Math.round(this.#heldUs / this.#tasks));
  }

  #shortOf(tokens: Tokens, waitUs: DurationUs, now: MonoUs): string {
    if (this.#requests !== null && this.#requestUs(now) === waitUs) {
      return `${counted(this.#requests.rate.perMinute, 'request')} per minute`;
    }
    if (this.#tokens === null || this.#tokensUs(tokens, now) !== waitUs) {
      return `${counted(this.#tasksMax, 'request')} at once`;
    }
    const { perMinute, burst } = this.#tokens.rate;
    return waitUs === Number.POSITIVE_INFINITY
      ? `at most ${counted(burst, 'token')} at once, and the request counts ${amount(tokens)}`
      : `${counted(perMinute, 'token')} per minute`;
  }
}

/** One limiter's part of a reservation, with the buckets that it was taken from: a reload may put others in their place. */
export class Hold {
  readonly #limiter: Limiter;
  readonly #requests: TokenBucket | null;
  readonly #tokens: TokenBucket | null;

  constructor(limiter: Limiter, requests: TokenBucket | null, tokens: TokenBucket | null) {
    this.#limiter = limiter;
    this.#requests = requests;
    this.#tokens = tokens;
  }

  /** Ends it. The buckets pay for what was used of the one request and the tokens that were reserved. */
  end(due: Due, now: MonoUs): void {
    this.#requests?.settle(1, due.requests, now);
    this.#tokens?.settle(due.reserved, due.tokens, now);
    this.#limiter.leave(due.heldUs);
  }
}

/** What a reservation comes to at its end. */
export interface Due {
  readonly requests: 0 | 1;
  readonly tokens: Tokens;
  /** Tokens that were reserved for it. */
  readonly reserved: Tokens;
  readonly heldUs: DurationUs;
}

/** The label of a name in a refusal. */
export function labelOf(scope: LimitScope, name: string): string {
  return `${scope} ${name.length > NAME_CHARS_MAX ? `${name.slice(0, NAME_CHARS_MAX)}…` : name}`;
}

function rateOf(perMinute: number | undefined, burst: number | undefined): BucketRate | null {
  return perMinute === undefined ? null : { perMinute, burst: burst ?? perMinute };
}

function renewed(bucket: TokenBucket | null, rate: BucketRate | null, now: MonoUs): TokenBucket | null {
  if (rate === null) return null;
  if (bucket === null) return new TokenBucket(rate, now);
  bucket.configure(rate, now);
  return bucket;
}

function fullUs(bucket: TokenBucket | null, now: MonoUs): DurationUs {
  return bucket === null ? 0 : bucket.fullUs(now);
}

function viewOf(bucket: TokenBucket, now: MonoUs): LimitView {
  return { limit: bucket.rate.burst, remaining: bucket.remaining(now), resetUs: bucket.fullUs(now) };
}

function counted(count: number, unit: string): string {
  return `${amount(count)} ${unit}${count === 1 ? '' : 's'}`;
}

/** 12,000 with commas, without asking for the place of the machine. */
function amount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}
