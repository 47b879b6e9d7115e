/**
 * How nodes execute: the truth, which no policy is told. A machine runs jobs in virtual time and says when it must be
 * looked at next; it draws no randomness, what varies comes with the job.
 */
import type { DurationUs, ModelId, MonoUs } from '../../base/units.ts';
import type { AttemptResult } from '../../core/request/outcome.ts';
import type { TaskSpec } from '../../core/request/task.ts';
import type { EngineReading } from '../../core/scheduler/events.ts';
import type { Demand } from '../../hardware/demand.ts';

/** What a request really asks of a node. Policies see an estimate of its work in the task. */
export type { Demand };

/** One request on its way through the simulation, and its attempt on a machine. */
export interface Job {
  task: TaskSpec;
  /** May become less: by a degraded answer. */
  demand: Demand;
  /** Factor on the service time, lognormal with mean 1; drawn once per request, so that every policy meets the same. */
  readonly noise: number;
  /** Attempts so far; 0 before the first. */
  attempts: number;
  /** When the present attempt was sent, and when the first was; -1 before. */
  sentAt: MonoUs;
  firstSentAt: MonoUs;
}

/** Blocks of prompts that were looked up, and those of them that were there. */
export interface PrefixStats {
  readonly blocksAsked: number;
  readonly blocksHit: number;
}

/** What a machine reports while it is advanced. */
export interface MachineSink {
  firstByte(job: Job): void;
  /** The only end of a started job that was not aborted or dropped. */
  ended(job: Job, result: AttemptResult): void;
}

export interface Machine {
  /** When `advance` is needed next; Infinity while nothing runs. */
  nextAt(): MonoUs;
  /** Takes the job; it may wait inside. `model` is the one asked for, which may have to be loaded first. */
  start(job: Job, model: ModelId, now: MonoUs): void;
  /** Takes the job out. Nothing is reported of it any more. An engine that cannot stop goes on working for nobody. */
  abort(job: Job, now: MonoUs): void;
  /** Brings everything to `now`. The machine is consistent whenever the sink is called, and is not called back from it. */
  advance(now: MonoUs, sink: MachineSink): void;
  /** From now on it works at this many times its own speed. */
  setSpeed(factor: number, now: MonoUs): void;
  /** All jobs are gone, without a report: the process behind it died. */
  drop(now: MonoUs): readonly Job[];
  /** Jobs running and waiting inside, those for nobody included. */
  readonly inflight: number;
  /** Time during which it computed, up to `now`. */
  busyUs(now: MonoUs): DurationUs;
  /** Models loaded by swapping so far. */
  readonly swaps: number;
  /** The engine's own account of itself; absent when it gives none. */
  reading?(now: MonoUs): EngineReading;
  /** Of prompts whose beginning an engine may remember; absent where it remembers none. */
  readonly prefixStats?: PrefixStats | undefined;
  /** Time for a job of this demand alone on the idle machine, at its present speed, without noise and swap. */
  serviceUs(demand: Demand): DurationUs;
  /** Requests per second of such a mix that it does while it is kept full: what capacity is reckoned by. */
  perSecond(mix: readonly Demand[]): number;
}
