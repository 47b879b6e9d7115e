/**
 * A batching text server: continuous batching as vLLM does it, reduced to what shapes load.
 *
 * Each step serves all running sequences and lasts `a + b*B + c*T + prefill*new prompt tokens` (see `hardware.ts`),
 * times noise, over the speed. New sequences join at a step boundary, first come first served, while a slot is free and
 * their context fits the cache. At a speed-up of 36 a step may be shorter than a timer's grain, so steps run in virtual
 * time and one timer delivers all that ended meanwhile: tokens come in small bursts, their mean pace is exact.
 *
 * Invariants: a sequence ends exactly once; cached tokens are those of running sequences and 0 at idle.
 */
import type { DurationMs, Ratio, Tokens } from '../base/units.ts';
import { EARLY_MS, type EmulatorClock, type Timer } from './clock.ts';

export interface TextTask {
  readonly promptTokens: Tokens;
  readonly outputTokens: Tokens;
  /** `count` more tokens are ready; `ended` with the last of them. */
  readonly tokens: (count: number, ended: boolean) => void;
}

export interface TextTicket {
  /** Frees the sequence and its cache at once. Returns the tokens it had produced, or -1 when it had ended. */
  cancel(): number;
}

export interface TextEngine {
  /** Undefined when the queue is at its bound. */
  submit(task: TextTask): TextTicket | undefined;
  readonly running: number;
  readonly waiting: number;
  /** Tokens in the cache over its size. */
  readonly cacheUse: Ratio;
  /** Virtual time during which at least one sequence ran. */
  busyMs(): DurationMs;
  drop(): void;
}

export interface TextEngineOptions {
  readonly sequencesMax: number;
  readonly cacheTokensMax: Tokens;
  readonly queueMax: number;
  /** Wall time of a step. Called once per step; applies speed and noise. */
  readonly stepMs: (batch: {
    sequences: number;
    contextTokens: Tokens;
    newPromptTokens: Tokens;
  }) => DurationMs;
}

interface Sequence {
  readonly task: TextTask;
  produced: number;
  /** Tokens produced since the last delivery. */
  pending: number;
  state: 'waiting' | 'running' | 'ended';
}

interface EngineState {
  readonly clock: EmulatorClock;
  readonly options: TextEngineOptions;
  waiting: Sequence[];
  running: Sequence[];
  cachedTokens: Tokens;
  timer: Timer | undefined;
  stepEndsAt: DurationMs;
  busyMs: DurationMs;
}

export function createTextEngine(clock: EmulatorClock, options: TextEngineOptions): TextEngine {
  const state: EngineState = {
    clock,
    options,
    waiting: [],
    running: [],
    cachedTokens: 0,
    timer: undefined,
    stepEndsAt: 0,
    busyMs: 0,
  };
  return {
    submit: (task) => submit(state, task),
    get running() {
      return state.running.length;
    },
    get waiting() {
      return state.waiting.length;
    },
    get cacheUse() {
      return Math.min(1, state.cachedTokens / options.cacheTokensMax);
    },
    busyMs: () => state.busyMs,
    drop: () => drop(state),
  };
}

function submit(state: EngineState, task: TextTask): TextTicket | undefined {
  if (state.waiting.length >= state.options.queueMax) return undefined;
  const sequence: Sequence = { task, produced: 0, pending: 0, state: 'waiting' };
  state.waiting.push(sequence);
  if (state.running.length === 0) startSteps(state);
  return { cancel: () => cancel(state, sequence) };
}

function startSteps(state: EngineState): void {
  beginStep(state, state.clock.now());
  arm(state);
}

function beginStep(state: EngineState, at: DurationMs): void {
  const newPromptTokens = admit(state);
  if (state.running.length === 0) return;
  const stepMs = state.options.stepMs({
    sequences: state.running.length,
    contextTokens: state.cachedTokens,
    newPromptTokens,
  });
  state.busyMs += stepMs;
  state.stepEndsAt = at + stepMs;
}

/** Lets waiting sequences join while they fit; one always fits into an empty engine. Returns their prompt tokens. */
function admit(state: EngineState): Tokens {
  const { sequencesMax, cacheTokensMax } = state.options;
  let newPromptTokens = 0;
  while (state.running.length < sequencesMax) {
    const next = state.waiting[0];
    if (next === undefined) break;
    const fits = state.cachedTokens + next.task.promptTokens <= cacheTokensMax || state.running.length === 0;
    if (!fits) break;
    state.waiting.shift();
    next.state = 'running';
    state.running.push(next);
    newPromptTokens += next.task.promptTokens;
    state.cachedTokens += next.task.promptTokens;
  }
  return newPromptTokens;
}

/** Gives every running sequence its token; returns those that are complete. */
function endStep(state: EngineState): Sequence[] {
  for (const sequence of state.running) {
    sequence.produced += 1;
    sequence.pending += 1;
    state.cachedTokens += 1;
  }
  const finished = state.running.filter((sequence) => sequence.produced >= sequence.task.outputTokens);
  for (const sequence of finished) leave(state, sequence);
  return finished;
}

function leave(state: EngineState, sequence: Sequence): void {
  if (sequence.state === 'running') {
    state.running = state.running.filter((other) => other !== sequence);
    state.cachedTokens -= sequence.task.promptTokens + sequence.produced;
  } else {
    state.waiting = state.waiting.filter((other) => other !== sequence);
  }
  sequence.state = 'ended';
}

function arm(state: EngineState): void {
  if (state.timer !== undefined || state.running.length === 0) return;
  state.timer = state.clock.after(state.stepEndsAt - state.clock.now(), () => advance(state));
}

function advance(state: EngineState): void {
  state.timer = undefined;
  const now = state.clock.now();
  const ended: Sequence[] = [];
  while (state.running.length > 0 && state.stepEndsAt <= now + EARLY_MS) {
    ended.push(...endStep(state));
    beginStep(state, state.stepEndsAt);
  }
  const alive = state.running.filter((sequence) => sequence.pending > 0);
  arm(state);
  for (const sequence of alive) deliver(sequence, false);
  for (const sequence of ended) deliver(sequence, true);
}

function deliver(sequence: Sequence, ended: boolean): void {
  const count = sequence.pending;
  sequence.pending = 0;
  if (ended || sequence.state === 'running') sequence.task.tokens(count, ended);
}

function cancel(state: EngineState, sequence: Sequence): number {
  if (sequence.state === 'ended') return -1;
  leave(state, sequence);
  if (state.running.length === 0) {
    state.timer?.cancel();
    state.timer = undefined;
    startSteps(state);
  }
  return sequence.produced;
}

function drop(state: EngineState): void {
  state.timer?.cancel();
  state.timer = undefined;
  for (const sequence of [...state.running, ...state.waiting]) sequence.state = 'ended';
  state.running = [];
  state.waiting = [];
  state.cachedTokens = 0;
}
