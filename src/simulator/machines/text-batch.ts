/**
 * A text server with continuous batching (vLLM, SGLang, TGI) reduced to what shapes load. Each step gives every running
 * sequence one token and lasts `a + b * sequences + c * context`; sequences join at a step's boundary, first come first
 * served, while there is a place and their prompt fits the cache, and their prefill makes that step longer. The first
 * byte comes at its end.
 *
 * When the next step's tokens would not fit the cache, the sequence that joined last is put out and computed anew later,
 * before anybody who waits (vLLM's preemption by recomputation).
 *
 * There is no event per token: while the batch does not change, steps form an arithmetic series (see `step-run.ts`), and
 * the engine jumps to the next one at which a sequence joins, ends, or is put out. Steps end at instants that are not
 * whole microseconds; what happens there is told at the next whole one, so that nothing drifts.
 *
 * The noise of a job lengthens its prefill; a step is lengthened by the mean noise of its sequences.
 *
 * Invariants: `#context` is the prompts and outputs of the running; a sequence that starts ends once, unless it is taken out.
 */
import type { DurationUs, ModelId, MonoUs, Ratio, Tokens } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { EngineReading } from '../../core/scheduler/events.ts';
import type { Demand, Job, Machine, MachineSink, PrefixStats } from './machine.ts';
import type { PrefixCache } from './prefix-cache.ts';
import type { Residency } from './residency.ts';
import { type StepRun, stepsUs, stepsWithin } from './step-run.ts';
import { type Waiter, WaitingLine } from './waiting-line.ts';

const OK: AttemptResult = Object.freeze({ kind: 'ok' });
const NEVER: MonoUs = Number.POSITIVE_INFINITY;

/** Microseconds of a step: `stepUs + perSequenceUs * B + perContextTokenUs * T + prefillUs(new tokens)`. */
export interface StepTimes {
  readonly stepUs: DurationUs;
  readonly perSequenceUs: DurationUs;
  readonly perContextTokenUs: DurationUs;
  /** How much longer a step is that computes so many tokens of prompts; 0 for none of them. */
  readonly prefillUs: (tokens: number) => DurationUs;
}

export interface TextShape {
  readonly promptTokens: Tokens;
  /** At least 1. */
  readonly outputTokens: Tokens;
  readonly blocks?: readonly number[];
}

export interface TextBatchOptions {
  readonly times: StepTimes;
  /** What a demand is as text. Throws RangeError for what this engine cannot do. */
  readonly shapeOf: (demand: Demand) => TextShape;
  readonly sequencesMax: number;
  readonly cacheTokensMax: Tokens;
  readonly prefixes?: { readonly cache: PrefixCache; readonly tokensPerBlock: Tokens } | undefined;
  /** Whether an aborted job frees its place. Absent: it does. */
  readonly canAbort?: boolean;
  readonly residency?: Residency | undefined;
}

interface Sequence {
  /** Undefined when it is computed for nobody. */
  job: Job | undefined;
  readonly noise: number;
  readonly model: ModelId;
  /** What was there when it joined: after it was put out, its output so far is part of it. */
  promptTokens: Tokens;
  /** Left when it joined. */
  outputTokens: Tokens;
  readonly blocks: readonly number[];
  /** Steps that the engine had done when it joined. */
  joinedAt: number;
  isFirstByteTold: boolean;
}

export class TextBatch implements Machine {
  readonly #options: TextBatchOptions;
  readonly #waiting = new WaitingLine();
  /** In order of joining. */
  #running: Sequence[] = [];
  /** Put out for lack of cache; the last one has waited longest. */
  #putOut: Sequence[] = [];
  #speed = 1;
  /** Steps done at the last boundary that was looked at, its instant, and the context then. */
  #steps = 0;
  #boundaryAt = 0;
  #context: Tokens = 0;
  #run: StepRun = { firstUs: 0, baseUs: 0, slopeUs: 0 };
  /** Steps from the boundary to the next change, and its instant. */
  #stepsToChange = 0;
  #changeAt = NEVER;
  /** Somebody came, or a place was freed, since it was last seen who can join. */
  #mayJoin = false;
  #busySince = 0;
  #busyUs = 0;

  constructor(options: TextBatchOptions) {
    this.#options = options;
  }

  get inflight(): number {
    return this.#running.length + this.#putOut.length + this.#waiting.size;
  }

  get swaps(): number {
    return this.#options.residency?.swaps ?? 0;
  }

  get prefixStats(): PrefixStats | undefined {
    return this.#options.prefixes?.cache.stats;
  }

  nextAt(): MonoUs {
    return Math.ceil(this.#changeAt);
  }

  busyUs(now: MonoUs): DurationUs {
    return Math.round(this.#busyUs + (this.#running.length > 0 ? now - this.#busySince : 0));
  }

  reading(now: MonoUs): EngineReading {
    const steps = this.#running.length === 0 ? 0 : this.#stepsBy(now);
    const cacheUse: Ratio = (this.#context + steps * this.#running.length) / this.#options.cacheTokensMax;
    return {
      running: this.#running.length,
      waiting: this.#waiting.size + this.#putOut.length,
      cacheUse: Math.min(1, cacheUse),
    };
  }

  serviceUs(demand: Demand): DurationUs {
    const { stepUs, perSequenceUs, perContextTokenUs, prefillUs } = this.#options.times;
    const { promptTokens, outputTokens } = this.#options.shapeOf(demand);
    const contextUs =
      perContextTokenUs * (outputTokens * promptTokens + (outputTokens * (outputTokens - 1)) / 2);
    const us = prefillUs(promptTokens) + outputTokens * (stepUs + perSequenceUs) + contextUs;
    return Math.max(1, Math.round(us / this.#speed));
  }

  /** With as many sequences as the cache holds on average, prompts unknown and one at a time, and nobody put out. */
  perSecond(mix: readonly Demand[]): number {
    let output = 0;
    let promptsUs = 0;
    let contextSteps = 0;
    for (const demand of mix) {
      const { promptTokens, outputTokens } = this.#options.shapeOf(demand);
      output += outputTokens;
      promptsUs += this.#options.times.prefillUs(promptTokens);
      contextSteps += outputTokens * (promptTokens + (outputTokens - 1) / 2);
    }
    if (output === 0) return 0;
    const { times, sequencesMax, cacheTokensMax } = this.#options;
    const contextMean = contextSteps / output;
    const sequences = Math.max(1, Math.min(sequencesMax, cacheTokensMax / (contextMean + 1)));
    const stepUs = times.stepUs + sequences * (times.perSequenceUs + times.perContextTokenUs * contextMean);
    return (this.#speed * mix.length * 1_000_000) / ((output * stepUs) / sequences + promptsUs);
  }

  start(job: Job, model: ModelId, now: MonoUs): void {
    this.#waiting.push(job, model);
    if (this.#running.length === 0) this.#wake(now);
    else if (this.#waiting.size === 1) this.#lookAgain(now);
  }

  abort(job: Job, now: MonoUs): void {
    const stays = this.#options.canAbort === false;
    if (this.#waiting.leave(job, { stays })) return this.#lookAgain(now);
    const sequence = [...this.#running, ...this.#putOut].find((other) => other.job === job);
    if (sequence === undefined) return;
    if (stays) sequence.job = undefined;
    else this.#takeOut(sequence, now);
  }

  advance(now: MonoUs, sink: MachineSink): void {
    while (this.#changeAt <= now) {
      this.#steps += this.#stepsToChange;
      this.#context += this.#stepsToChange * this.#running.length;
      this.#boundaryAt = this.#changeAt;
      const begun = this.#running.filter((sequence) => !sequence.isFirstByteTold);
      for (const sequence of begun) sequence.isFirstByteTold = true;
      const ended = this.#running.filter((sequence) => this.#stepsLeft(sequence) === 0);
      for (const sequence of ended) this.#release(sequence);
      this.#nextRun();
      for (const { job } of begun) if (job !== undefined) sink.firstByte(job);
      for (const { job } of ended) if (job !== undefined) sink.ended(job, OK);
    }
  }

  /** What is left of the step under way changes with the rest. */
  setSpeed(factor: number, now: MonoUs): void {
    const stretch = this.#speed / factor;
    this.#speed = factor;
    if (this.#running.length === 0) return;
    this.#rebase(now);
    const leftUs = this.#boundaryAt + this.#run.firstUs - now;
    this.#plan(now - this.#boundaryAt + leftUs * stretch);
  }

  drop(now: MonoUs): readonly Job[] {
    if (this.#running.length > 0) this.#busyUs += now - this.#busySince;
    const jobs = [...this.#running, ...this.#putOut].map(({ job }) => job).filter((job) => job !== undefined);
    this.#running = [];
    this.#putOut = [];
    this.#context = 0;
    this.#changeAt = NEVER;
    this.#options.residency?.clear();
    this.#options.prefixes?.cache.clear();
    return [...jobs, ...this.#waiting.clear()];
  }

  #stepsLeft({ joinedAt, outputTokens }: Sequence): number {
    return joinedAt + outputTokens - this.#steps;
  }

  /** From the boundary; never as many as would be the next change, which is not applied yet. */
  #stepsBy(now: MonoUs): number {
    return Math.min(this.#stepsToChange - 1, stepsWithin(this.#run, now - this.#boundaryAt));
  }

  #wake(now: MonoUs): void {
    this.#boundaryAt = now;
    this.#busySince = now;
    this.#nextRun();
  }

  /** Moves the boundary to the last one before now, so that the batch can change within the step under way. */
  #rebase(now: MonoUs): void {
    const steps = this.#stepsBy(now);
    const passedUs = stepsUs(this.#run, steps);
    const endUs = stepsUs(this.#run, steps + 1);
    this.#steps += steps;
    this.#context += steps * this.#running.length;
    this.#boundaryAt += passedUs;
    this.#run = { ...this.#run, firstUs: endUs - passedUs };
  }

  /** Somebody else is first in the line: whether they can join is seen at the end of the step under way. */
  #lookAgain(now: MonoUs): void {
    if (this.#running.length >= this.#options.sequencesMax) return;
    this.#mayJoin = true;
    this.#rebase(now);
    this.#plan(this.#run.firstUs);
  }

  #takeOut(sequence: Sequence, now: MonoUs): void {
    const place = this.#putOut.indexOf(sequence);
    if (place >= 0) {
      this.#putOut.splice(place, 1);
      return;
    }
    this.#rebase(now);
    const { firstUs } = this.#run;
    this.#release(sequence);
    this.#mayJoin = true;
    if (this.#running.length > 0) return this.#plan(firstUs);
    this.#boundaryAt = now;
    this.#nextRun();
  }

  /** It is not among the running any more. */
  #release(sequence: Sequence): void {
    this.#running.splice(this.#running.indexOf(sequence), 1);
    this.#context -= sequence.promptTokens + this.#steps - sequence.joinedAt;
    this.#options.residency?.release(sequence.model);
  }

  /** At a boundary: who is put out, who joins, and when the batch changes next. */
  #nextRun(): void {
    const wasPutOut = this.#makeRoom();
    const joinUs = wasPutOut ? 0 : this.#join();
    this.#mayJoin = false;
    if (this.#running.length > 0) return this.#plan(undefined, joinUs);
    this.#busyUs += this.#boundaryAt - this.#busySince;
    this.#changeAt = NEVER;
  }

  /** Puts out who joined last while the tokens of the next step would not fit. */
  #makeRoom(): boolean {
    let wasPutOut = false;
    while (this.#running.length > 1 && this.#context + this.#running.length > this.#options.cacheTokensMax) {
      const last = this.#running.at(-1) as Sequence;
      this.#release(last);
      const produced = this.#steps - last.joinedAt;
      last.promptTokens += produced;
      last.outputTokens -= produced;
      this.#putOut.push(last);
      wasPutOut = true;
    }
    return wasPutOut;
  }

  /** Lets in who fits; returns the time that their prompts and models add to the step. */
  #join(): DurationUs {
    let swapsUs = 0;
    let newTokens = 0;
    while (this.#running.length < this.#options.sequencesMax) {
      const again = this.#putOut.at(-1);
      const waiter = again === undefined ? this.#waiting.peek() : undefined;
      const next = again ?? (waiter === undefined ? undefined : this.#sequenceOf(waiter));
      if (next === undefined || !this.#fits(next)) break;
      const swapUs = this.#options.residency === undefined ? 0 : this.#options.residency.acquire(next.model);
      if (swapUs === undefined) break;
      if (waiter === undefined) this.#putOut.pop();
      else this.#waiting.take(waiter);
      next.joinedAt = this.#steps;
      this.#running.push(next);
      this.#context += next.promptTokens;
      swapsUs += swapUs;
      newTokens += this.#newTokens(next) * next.noise;
    }
    return (swapsUs + this.#options.times.prefillUs(newTokens)) / this.#speed;
  }

  #fits({ promptTokens }: Sequence): boolean {
    const sequences = this.#running.length + 1;
    return sequences === 1 || this.#context + promptTokens + sequences <= this.#options.cacheTokensMax;
  }

  /** Tokens of the prompt that must be computed: at least one, to have something to go on from. */
  #newTokens({ promptTokens, blocks }: Sequence): Tokens {
    const { prefixes } = this.#options;
    if (prefixes === undefined || promptTokens === 0) return promptTokens;
    const known = prefixes.cache.use(blocks) * prefixes.tokensPerBlock;
    return Math.max(1, promptTokens - known);
  }

  #sequenceOf({ job, demand, noise, model }: Waiter): Sequence {
    const { promptTokens, outputTokens, blocks = [] } = this.#options.shapeOf(demand);
    const fresh = { joinedAt: this.#steps, isFirstByteTold: false };
    return { job, noise, model, promptTokens, outputTokens, blocks, ...fresh };
  }

  /** `firstUs`: what the step under way takes from the boundary on; absent when it begins there. */
  #plan(firstUs: DurationUs | undefined, joinUs: DurationUs = 0): void {
    const { stepUs, perSequenceUs, perContextTokenUs } = this.#options.times;
    const sequences = this.#running.length;
    let noiseSum = 0;
    let steps = Number.POSITIVE_INFINITY;
    for (const sequence of this.#running) {
      noiseSum += sequence.noise;
      steps = Math.min(steps, sequence.isFirstByteTold ? this.#stepsLeft(sequence) : 1);
    }
    const factor = noiseSum / sequences / this.#speed;
    const baseUs = (stepUs + perSequenceUs * sequences + perContextTokenUs * this.#context) * factor;
    this.#run = {
      firstUs: firstUs ?? baseUs + joinUs,
      baseUs,
      slopeUs: perContextTokenUs * sequences * factor,
    };
    if (this.#mayJoin) steps = 1;
    if (sequences > 1) {
      const fitting = Math.floor((this.#options.cacheTokensMax - this.#context) / sequences);
      steps = Math.min(steps, Math.max(1, fitting));
    }
    this.#stepsToChange = steps;
    this.#changeAt = this.#boundaryAt + stepsUs(this.#run, steps);
  }
}
