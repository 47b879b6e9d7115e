/**
 * Continuous batching as plainly as it can be written: one step after the other, each sequence and token by itself. What
 * the simulator's engine, which jumps, is compared with.
 */
import type { Demand } from '../../src/simulator/machines/machine.ts';
import type { StepTimes } from '../../src/simulator/machines/text-batch.ts';

export interface NaiveRequest {
  readonly id: number;
  readonly at: number;
  readonly demand: Extract<Demand, { kind: 'text' }>;
  readonly noise: number;
}

export interface NaiveOptions {
  readonly times: StepTimes;
  readonly sequencesMax: number;
  readonly cacheTokensMax: number;
}

interface Sequence {
  readonly request: NaiveRequest;
  produced: number;
  /** Tokens that must be computed when it joins. */
  toPrefill: number;
}

export interface NaiveResult {
  readonly firstBytes: Map<number, number>;
  readonly ends: Map<number, number>;
  readonly putOut: number;
}

/** Instants are not rounded. */
export function runNaively(requests: readonly NaiveRequest[], options: NaiveOptions): NaiveResult {
  const result = { firstBytes: new Map<number, number>(), ends: new Map<number, number>(), putOut: 0 };
  const coming = [...requests].sort((a, b) => a.at - b.at);
  const waiting: Sequence[] = [];
  let running: Sequence[] = [];
  let now = 0;
  for (;;) {
    // Who comes at the instant at which a step begins is too late for it, unless the engine was idle.
    while (coming[0] !== undefined && coming[0].at < now) waiting.push(fresh(coming.shift() as NaiveRequest));
    let wasPutOut = false;
    while (running.length > 1 && contextOf(running) + running.length > options.cacheTokensMax) {
      const last = running.pop() as Sequence;
      last.toPrefill = last.request.demand.promptTokens + last.produced;
      waiting.unshift(last);
      wasPutOut = true;
      result.putOut += 1;
    }
    let newTokens = 0;
    while (!wasPutOut && waiting[0] !== undefined && fits(running, waiting[0], options)) {
      const next = waiting.shift() as Sequence;
      running.push(next);
      newTokens += next.toPrefill * next.request.noise;
    }
    if (running.length === 0) {
      if (coming[0] === undefined) return result;
      now = coming[0].at;
      waiting.push(fresh(coming.shift() as NaiveRequest));
      continue;
    }
    now += stepUs(running, options.times) + options.times.prefillUs(newTokens);
    for (const sequence of running) {
      sequence.produced += 1;
      if (sequence.produced === 1) result.firstBytes.set(sequence.request.id, now);
      if (sequence.produced === sequence.request.demand.outputTokens)
        result.ends.set(sequence.request.id, now);
    }
    running = running.filter(({ request }) => !result.ends.has(request.id));
  }
}

function fresh(request: NaiveRequest): Sequence {
  return { request, produced: 0, toPrefill: request.demand.promptTokens };
}

function contextOf(running: readonly Sequence[]): number {
  return running.reduce((sum, { request, produced }) => sum + request.demand.promptTokens + produced, 0);
}

function fits(running: readonly Sequence[], next: Sequence, options: NaiveOptions): boolean {
  if (running.length >= options.sequencesMax) return false;
  const after = contextOf(running) + next.toPrefill + running.length + 1;
  return running.length === 0 || after <= options.cacheTokensMax;
}

function stepUs(running: readonly Sequence[], times: StepTimes): number {
  const noise = running.reduce((sum, { request }) => sum + request.noise, 0) / running.length;
  const us =
    times.stepUs + times.perSequenceUs * running.length + times.perContextTokenUs * contextOf(running);
  return us * noise;
}
