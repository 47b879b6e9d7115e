/**
 * The gateway's own survival: when this process itself nears a limit, the lowest classes are refused first.
 *
 *   pressure = worst of (lag / bound, heap / bound, memory / bound, descriptors / bound, spool / bound)
 *   pressure ≥ 1           one class more, at most once per step; the highest class only where going on would be fatal
 *   pressure < 0.8         for a while: one class less
 *   in between             the mark is a lease: not renewed by new evidence, it expires, also without any completed work
 */
import type { DurationMs, Ratio } from '../../base/units.ts';
import type { SurvivalConfig } from '../../core/config/types.ts';
import { CLASS_RETURN_US } from '../../core/scheduler/index.ts';

/** Absent is unknown, which is neither zero nor full. */
export interface SurvivalReading {
  /** Median lag of the event loop over the last second. */
  readonly loopLagMs?: DurationMs;
  /** Heap in use over the heap's limit. */
  readonly heapRatio?: Ratio;
  /** Resident memory over the memory limit of this process or container. */
  readonly memoryRatio?: Ratio;
  readonly descriptorsRatio?: Ratio;
  /** Bytes held for slow readers over their total bound. */
  readonly spoolRatio?: Ratio;
}

export interface SurvivalState {
  /** How many of the lowest classes are refused now. */
  readonly shedClasses: number;
  /** Instant of the last change, on the sampler's clock. */
  readonly changedAtMs: number;
  /** Instant at which pressure was last at or above its bound. */
  readonly pressedAtMs: number;
  /** What presses most now; '' while nothing does. */
  readonly cause: SurvivalCause | '';
  readonly pressure: number;
}

export type SurvivalCause = 'loop-lag' | 'heap' | 'memory' | 'descriptors' | 'spool';

export const CALM: SurvivalState = Object.freeze({
  shedClasses: 0,
  changedAtMs: 0,
  pressedAtMs: 0,
  cause: '',
  pressure: 0,
});

/** Between two steps up: a shed class needs a moment to show its effect. */
const STEP_UP_MS = 1_000;
/** Between two steps down, so that a returning class shows its weight before the next one returns. */
const STEP_DOWN_MS: DurationMs = CLASS_RETURN_US / 1_000;
/** A mark that no new evidence renews is lowered after this time. */
const LEASE_MS = 10_000;
/** Below this part of the bound pressure counts as gone. */
const CALM_PRESSURE = 0.8;
/** Above this multiple of a bound on memory or descriptors the process would soon die: nothing new at all. */
const FATAL_PRESSURE = 1.1;

export interface SurvivalStep {
  readonly reading: SurvivalReading;
  readonly limits: SurvivalConfig;
  readonly classCount: number;
  readonly nowMs: number;
}

export function decideSurvival(state: SurvivalState, step: SurvivalStep): SurvivalState {
  const { pressure, cause } = worstPressure(step.reading, step.limits);
  const isPressed = pressure >= 1;
  const isFatal = pressure >= FATAL_PRESSURE && cause !== 'loop-lag' && cause !== 'spool';
  const pressedAtMs = isPressed ? step.nowMs : state.pressedAtMs;
  const shedMax = isFatal ? step.classCount : Math.max(0, step.classCount - 1);
  const shedClasses = Math.min(nextShed(state, { isPressed, pressure, nowMs: step.nowMs }), shedMax);
  const changedAtMs = shedClasses === state.shedClasses ? state.changedAtMs : step.nowMs;
  return { shedClasses, changedAtMs, pressedAtMs, cause: pressure >= CALM_PRESSURE ? cause : '', pressure };
}

function nextShed(
  state: SurvivalState,
  step: { readonly isPressed: boolean; readonly pressure: number; readonly nowMs: number },
): number {
  const sinceChangeMs = step.nowMs - state.changedAtMs;
  if (step.isPressed) {
    const mayStep = state.shedClasses === 0 || sinceChangeMs >= STEP_UP_MS;
    return mayStep ? state.shedClasses + 1 : state.shedClasses;
  }
  const isCalm = step.pressure < CALM_PRESSURE;
  const isExpired = step.nowMs - state.pressedAtMs >= LEASE_MS;
  const waitMs = isCalm ? STEP_DOWN_MS : LEASE_MS;
  const mayLower =
    (isCalm || isExpired) && sinceChangeMs >= waitMs && step.nowMs - state.pressedAtMs >= waitMs;
  return mayLower ? Math.max(0, state.shedClasses - 1) : state.shedClasses;
}

function worstPressure(
  reading: SurvivalReading,
  limits: SurvivalConfig,
): { readonly pressure: number; readonly cause: SurvivalCause } {
  const rows: readonly (readonly [SurvivalCause, number | undefined, number])[] = [
    ['memory', reading.memoryRatio, limits.heapRatio],
    ['heap', reading.heapRatio, limits.heapRatio],
    ['descriptors', reading.descriptorsRatio, limits.descriptorsRatio],
    ['loop-lag', reading.loopLagMs, limits.loopLagMs],
    ['spool', reading.spoolRatio, 1],
  ];
  let pressure = 0;
  let cause: SurvivalCause = 'loop-lag';
  for (const [name, value, bound] of rows) {
    if (value === undefined || !(value / bound > pressure)) continue;
    pressure = value / bound;
    cause = name;
  }
  return { pressure, cause };
}
