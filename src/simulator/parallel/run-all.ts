/**
 * Many independent runs on all cores: threads take the next run when they have done the one before. Which thread runs what
 * depends on the moment, what comes out does not. The first run that fails ends everything, with its policy and seed.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { runScenario, type RunExtras, type RunResult } from '../run-scenario.ts';
import type { PolicySpec, Scenario } from '../scenario/types.ts';
import type { WorkerAnswer, WorkerTask } from './run-worker.ts';

/** Requests live for long compared with how fast they come: with room for them, few are moved before they die. */
const YOUNG_GENERATION_MB = 96;

export interface RunRequest extends RunExtras {
  readonly scenario: Scenario;
  readonly policy: PolicySpec;
  readonly seed: number;
}

export interface Progress {
  readonly done: number;
  readonly of: number;
  /** The run that was done last. */
  readonly request: RunRequest;
  readonly result: RunResult;
}

export interface RunAllOptions {
  /** At most one per run; absent: one per core. With 1 everything runs on the caller's thread. */
  readonly workers?: number;
  readonly progress?: (progress: Progress) => void;
}

/** A run that could not be brought to its end. */
export class RunError extends Error {
  readonly policy: string;
  readonly seed: number;

  constructor({ policy, seed, scenario }: RunRequest, reason: string) {
    super(`Could not run ${scenario.name} under ${policy.name} with seed ${seed}: ${reason}`);
    this.name = 'RunError';
    this.policy = policy.name;
    this.seed = seed;
  }
}

/** Results in order of requests. Throws RunError. */
export async function runAll(
  requests: readonly RunRequest[],
  options: RunAllOptions = {},
): Promise<readonly RunResult[]> {
  const workers = Math.min(requests.length, options.workers ?? availableParallelism());
  const queue = new RunQueue(requests, options.progress);
  if (workers <= 1) {
    for (let next = queue.take(); next !== undefined; next = queue.take())
      queue.done(next, runHere(next.request));
    return queue.results();
  }
  const crew = Array.from({ length: workers }, () => new Hand(queue));
  try {
    await Promise.all(crew.map((hand) => hand.work()));
  } finally {
    await Promise.all(crew.map((hand) => hand.dismiss()));
  }
  return queue.results();
}

function runHere(request: RunRequest): RunResult {
  try {
    return runScenario(request.scenario, request.policy, request.seed, request);
  } catch (thrown) {
    throw new RunError(request, thrown instanceof Error ? thrown.message : String(thrown));
  }
}

interface Numbered {
  readonly number: number;
  readonly request: RunRequest;
}

class RunQueue {
  readonly #requests: readonly RunRequest[];
  readonly #progress: ((progress: Progress) => void) | undefined;
  readonly #results: RunResult[] = [];
  #next = 0;
  #done = 0;

  constructor(requests: readonly RunRequest[], progress: ((progress: Progress) => void) | undefined) {
    this.#requests = requests;
    this.#progress = progress;
  }

  take(): Numbered | undefined {
    const number = this.#next++;
    const request = this.#requests[number];
    return request === undefined ? undefined : { number, request };
  }

  done({ number, request }: Numbered, result: RunResult): void {
    this.#results[number] = result;
    this.#done += 1;
    this.#progress?.({ done: this.#done, of: this.#requests.length, request, result });
  }

  /** Nobody takes another one. */
  stop(): void {
    this.#next = this.#requests.length;
  }

  results(): readonly RunResult[] {
    return this.#results;
  }
}

class Hand {
  readonly #queue: RunQueue;
  readonly #worker: Worker;
  readonly #told: Map<Scenario, number> = new Map();
  /** Who waits for the run under way. */
  #answer: (answer: WorkerAnswer) => void = () => {};

  constructor(queue: RunQueue) {
    this.#queue = queue;
    // Source and build differ in the extension only.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#worker = new Worker(new URL(`./run-worker.${extension}`, import.meta.url), {
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
    });
    this.#worker.on('message', (answer: WorkerAnswer) => this.#answer(answer));
    // A thread that has no memory left ends with an error and says nothing else.
    this.#worker.on('error', (error) => this.#answer({ kind: 'failed', message: String(error) }));
    this.#worker.on('exit', () => this.#answer({ kind: 'failed', message: 'its thread ended' }));
  }

  async work(): Promise<void> {
    for (let next = this.#queue.take(); next !== undefined; next = this.#queue.take()) {
      const answer = await this.#ask(next.request);
      if (answer.kind === 'failed') {
        this.#queue.stop();
        throw new RunError(next.request, answer.message);
      }
      this.#queue.done(next, answer.result);
    }
  }

  async dismiss(): Promise<void> {
    await this.#worker.terminate();
  }

  #ask({ scenario, ...rest }: RunRequest): Promise<WorkerAnswer> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      this.#post({ kind: 'run', scenario: this.#numberOf(scenario), ...rest });
    });
  }

  #numberOf(scenario: Scenario): number {
    const known = this.#told.get(scenario);
    if (known !== undefined) return known;
    const number = this.#told.size;
    this.#told.set(scenario, number);
    this.#post({ kind: 'scenario', number, scenario });
    return number;
  }

  #post(task: WorkerTask): void {
    this.#worker.postMessage(task);
  }
}
