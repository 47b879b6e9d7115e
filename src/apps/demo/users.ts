/**
 * Who comes, when, and how each behaves. Pure and seeded: both policies meet the same users at the same instants.
 *
 * Arrivals are open loop: a Poisson process whose rate follows the plan and knows nothing of the answers. A user is one
 * wish: a first attempt and up to three more. Half honour the wait that a refusal names; half come back as soon as a
 * person can click, whatever they were told. Each attempt ends at the client's own time-out, the class deadline.
 */
import type { DurationMs } from '../../base/units.ts';
import { imageWorkMs, seededUniform, seedFor, type Uniform } from '../../emulator/index.ts';
import { deadlineMsOf, type DemoPlan, lastArrivalMs, spikeEndMs, spikeStartMs } from './plan.ts';
import { drawSize, IMAGE_SIZES } from './sizes.ts';

export const ATTEMPTS_MAX = 4;
/** Pictures that many ask for. */
const FAVOURITES = 8;
/** A patient user waits what was asked and up to this share more. */
const PATIENCE_SPREAD = 0.3;

export interface UserWish {
  readonly index: number;
  /** Milliseconds after the start of the run. */
  readonly atMs: DurationMs;
  readonly classIndex: number;
  readonly sizeIndex: number;
  readonly workMs: DurationMs;
  readonly deadlineMs: DurationMs;
  readonly isPatient: boolean;
  /** Takes less than it asked for. */
  readonly consents: boolean;
  /** One of the pictures that many ask for, with a fixed seed, counted from 1; 0 for a picture of one's own. */
  readonly favourite: number;
}

export interface UserStream {
  /** Undefined after the last. */
  next(): UserWish | undefined;
}

export function createUserStream(plan: DemoPlan): UserStream {
  const uniform = seededUniform(seedFor(plan.seed, 'users'));
  const wishes = seededUniform(seedFor(plan.seed, 'consent'));
  let atMs = 0;
  let index = 0;
  return {
    next() {
      atMs = nextArrival(plan, atMs, uniform);
      if (atMs >= lastArrivalMs(plan)) return undefined;
      const classIndex = drawClass(plan, uniform);
      const drawnIndex = drawSize(uniform);
      const less = drawLess(plan, classIndex, wishes);
      const sizeIndex = less.favourite === 0 ? drawnIndex : favouriteSize(plan, less.favourite);
      const size = IMAGE_SIZES[sizeIndex] as (typeof IMAGE_SIZES)[number];
      const className = plan.classes[classIndex] as DemoPlan['classes'][number];
      const isPatient = uniform() < 0.5;
      const wish = {
        index,
        atMs,
        classIndex,
        sizeIndex,
        workMs: imageWorkMs(size) / plan.speedup,
        deadlineMs: deadlineMsOf(plan, className, size),
        isPatient,
        ...less,
      };
      index += 1;
      return wish;
    },
  };
}

export function ratePerS(plan: DemoPlan, atMs: DurationMs): number {
  return atMs >= spikeStartMs(plan) && atMs < spikeEndMs(plan) ? plan.spikePerS : plan.calmPerS;
}

/** Exponential gaps; a gap that crosses a change of rate is drawn anew from the change on, which is exact. */
function nextArrival(plan: DemoPlan, fromMs: DurationMs, uniform: Uniform): DurationMs {
  let from = fromMs;
  for (const change of [spikeStartMs(plan), spikeEndMs(plan), Number.POSITIVE_INFINITY]) {
    if (from >= change) continue;
    const at = from + (-Math.log(1 - uniform()) * 1_000) / ratePerS(plan, from);
    if (at < change) return at;
    from = change;
  }
  return from;
}

function drawClass(plan: DemoPlan, uniform: Uniform): number {
  let at = uniform();
  for (const [index, one] of plan.classes.entries()) {
    at -= one.share;
    if (at < 0) return index;
  }
  return plan.classes.length - 1;
}

/** Drawn apart from the rest, so that everybody else is the same whatever the shares are. */
function drawLess(
  plan: DemoPlan,
  classIndex: number,
  uniform: Uniform,
): Pick<UserWish, 'consents' | 'favourite'> {
  const isLow = plan.classes[classIndex]?.name === 'low';
  const consents = isLow && uniform() < plan.consentShare;
  const isFavourite = consents && uniform() < plan.favouriteShare;
  return { consents, favourite: isFavourite ? 1 + Math.floor(uniform() * FAVOURITES) : 0 };
}

/** Each of them has one size, drawn as all sizes are. */
function favouriteSize(plan: DemoPlan, favourite: number): number {
  return drawSize(seededUniform(seedFor(plan.seed, `favourite ${favourite}`)));
}

/** How one attempt ended, as its client saw it. */
export type AttemptEnd =
  | {
      readonly kind: 'served';
      readonly serviceMs: DurationMs;
      /** How it says that it is a lesser answer; '' for the whole one. */
      readonly lesser: string;
      /** Steps that the node really did. */
      readonly steps: number;
    }
  /** A typed refusal; `retryAfterMs` is undefined when it named no wait. */
  | { readonly kind: 'refused'; readonly retryAfterMs?: DurationMs; readonly isFinal: boolean }
  /** Any other error; `isTyped` tells whether it came with a reason and a body of the wire's shape. */
  | { readonly kind: 'failed'; readonly isTyped: boolean }
  /** The client's own time-out. */
  | { readonly kind: 'timed-out' };

export type UserEnd = 'served' | 'refused' | 'failed' | 'cancelled';

export type NextStep =
  | { readonly kind: 'again'; readonly afterMs: DurationMs }
  | { readonly kind: 'end'; readonly as: UserEnd };

export interface Patience {
  readonly isPatient: boolean;
  /** Attempts made so far, this one included. */
  readonly attempts: number;
  readonly thinkMs: readonly [DurationMs, DurationMs];
  readonly uniform: Uniform;
}

export function nextStep(end: AttemptEnd, patience: Patience): NextStep {
  if (end.kind === 'served') return { kind: 'end', as: 'served' };
  const isTold = end.kind === 'refused' && end.isFinal && patience.isPatient;
  if (patience.attempts >= ATTEMPTS_MAX || isTold) return { kind: 'end', as: userEnd(end) };
  const [low, high] = patience.thinkMs;
  if (patience.isPatient && end.kind === 'refused' && end.retryAfterMs !== undefined) {
    return { kind: 'again', afterMs: end.retryAfterMs * (1 + PATIENCE_SPREAD * patience.uniform()) };
  }
  return { kind: 'again', afterMs: low + (high - low) * patience.uniform() };
}

function userEnd(end: AttemptEnd): UserEnd {
  if (end.kind === 'timed-out') return 'cancelled';
  return end.kind;
}
