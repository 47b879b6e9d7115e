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

export function createTextEngine(clock: EmulatorClock, options: TextEngineOptions): TextEngine {
  let waiting: Sequence[] = [];
  let running: Sequence[] = [];
  let cachedTokens = 0;
  let timer: Timer | undefined;
  let stepEndsAt = 0;
  let busyMs = 0;

  function beginStep(at: DurationMs): void {
    let newPromptTokens = 0;
    while (waiting.length > 0 && running.length < options.sequencesMax) {
      const next = waiting[0] as Sequence;
      const fits = cachedTokens + next.task.promptTokens <= options.cacheTokensMax || running.length === 0;
      if (!fits) break;
      waiting.shift();
      next.state = 'running';
      running.push(next);
      newPromptTokens += next.task.promptTokens;
      cachedTokens += next.task.promptTokens;
    }
    if (running.length === 0) return;
    const stepMs = options.stepMs({
      sequences: running.length,
      contextTokens: cachedTokens,
      newPromptTokens,
    });
    busyMs += stepMs;
    stepEndsAt = at + stepMs;
  }

  function endStep(finished: Sequence[]): void {
    for (const sequence of running) {
      sequence.produced += 1;
      sequence.pending += 1;
      cachedTokens += 1;
      if (sequence.produced >= sequence.task.outputTokens) finished.push(sequence);
    }
    for (const sequence of finished) leave(sequence);
  }

  function leave(sequence: Sequence): void {
    if (sequence.state === 'running') {
      running = running.filter((other) => other !== sequence);
      cachedTokens -= sequence.task.promptTokens + sequence.produced;
    } else {
      waiting = waiting.filter((other) => other !== sequence);
    }
    sequence.state = 'ended';
  }

  function advance(): void {
    timer = undefined;
    const now = clock.now();
    const ended: Sequence[] = [];
    while (running.length > 0 && stepEndsAt <= now + EARLY_MS) {
      const finished: Sequence[] = [];
      endStep(finished);
      ended.push(...finished);
      beginStep(stepEndsAt);
    }
    const alive = running.filter((sequence) => sequence.pending > 0);
    arm();
    for (const sequence of alive) deliver(sequence, false);
    for (const sequence of ended) deliver(sequence, true);
  }

  function deliver(sequence: Sequence, ended: boolean): void {
    const count = sequence.pending;
    sequence.pending = 0;
    if (ended || sequence.state === 'running') sequence.task.tokens(count, ended);
  }

  function arm(): void {
    if (timer !== undefined || running.length === 0) return;
    timer = clock.after(stepEndsAt - clock.now(), advance);
  }

  return {
    submit(task) {
      if (waiting.length >= options.queueMax) return undefined;
      const sequence: Sequence = { task, produced: 0, pending: 0, state: 'waiting' };
      waiting.push(sequence);
      if (running.length === 0) {
        beginStep(clock.now());
        arm();
      }
      return {
        cancel() {
          if (sequence.state === 'ended') return -1;
          leave(sequence);
          if (running.length === 0) {
            timer?.cancel();
            timer = undefined;
            beginStep(clock.now());
            arm();
          }
          return sequence.produced;
        },
      };
    },
    get running() {
      return running.length;
    },
    get waiting() {
      return waiting.length;
    },
    get cacheUse() {
      return Math.min(1, cachedTokens / options.cacheTokensMax);
    },
    busyMs: () => busyMs,
    drop() {
      timer?.cancel();
      timer = undefined;
      for (const sequence of [...running, ...waiting]) sequence.state = 'ended';
      running = [];
      waiting = [];
      cachedTokens = 0;
    },
  };
}
