/**
 * Users who come back after a refusal, in virtual time: open arrivals at a rate that changes, equal bodies for the tries of
 * one user, and a manner of returning. What they were told is kept beside what became of them.
 */
import { createPrng, type Prng } from '../../src/base/prng.ts';
import type { DurationUs, MonoUs, TaskId } from '../../src/base/units.ts';
import { NO_NEEDS, NO_RETRY, type Outcome, type RetryHint } from '../../src/core/request/index.ts';
import type { TaskSpec } from '../../src/core/request/task.ts';
import type { RunListener, VirtualRun } from './virtual-run.ts';

/** The edge stretches a hint by up to a quarter, and tells none beyond a minute. */
const JITTER_SPAN = 0.25;
const HINT_US_MAX: DurationUs = 60_000_000;
const AT_ONCE_US: DurationUs = 10_000;

export type Manner =
  /** Comes back when it was told to, as official clients do. */
  | 'obedient'
  /** Comes back at half of the time, as if it were somebody else. */
  | 'half-way'
  /** Comes back at once, whatever it was told, and after its own time-out too. */
  | 'at-once'
  | 'never';

export interface User {
  readonly arrivedAt: MonoUs;
  readonly className: string;
  readonly manner: Manner;
  /** Of the first refusal; undefined while there was none. */
  refusal: { readonly at: MonoUs; readonly hint: RetryHint } | undefined;
  tries: number;
  /** When a try was let in that was served; undefined before. */
  admittedAt: MonoUs | undefined;
  servedAt: MonoUs | undefined;
}

export interface Crowd {
  readonly manner: (user: number) => Manner;
  readonly triesMax: number;
  /** Tells the scheduler how often it tried, as official clients do. */
  readonly tellsCount: boolean;
  /** What each try of a user is; the crowd gives id, deadline, fingerprint and count. */
  readonly task: (user: number, prng: Prng) => Partial<TaskSpec> & { readonly deadlineUs: DurationUs };
}

export class ReturningUsers implements RunListener {
  readonly users: User[] = [];
  /** Outcomes of single tries. */
  readonly refusedTries: Map<string, number> = new Map();
  readonly #crowd: Crowd;
  readonly #prng: Prng;
  readonly #byTask: Map<TaskId, { readonly user: User; readonly number: number; readonly triedAt: MonoUs }> =
    new Map();
  readonly #wishes: Map<number, ReturnType<Crowd['task']>> = new Map();
  #nextId: TaskId = 1;
  #run: VirtualRun | undefined;

  constructor(crowd: Crowd, seed: number) {
    this.#crowd = crowd;
    this.#prng = createPrng(seed);
  }

  /** Poisson arrivals at `perS` from one instant to another. */
  arrive(
    run: VirtualRun,
    span: { readonly from: MonoUs; readonly until: MonoUs; readonly perS: number },
  ): void {
    this.#run = run;
    const gapUs = (): DurationUs => (-Math.log(1 - this.#prng.nextRatio()) / span.perS) * 1_000_000;
    const next = (at: MonoUs): void => {
      if (at >= span.until) return;
      run.at(Math.round(at), () => {
        this.#enter();
        next(at + gapUs());
      });
    };
    next(span.from + gapUs());
  }

  outcome(task: TaskSpec, outcome: Outcome, now: MonoUs): void {
    const entry = this.#byTask.get(task.id);
    if (entry === undefined) return;
    this.#byTask.delete(task.id);
    const { user, number, triedAt } = entry;
    if (outcome.kind === 'served') {
      user.servedAt = now;
      user.admittedAt = triedAt;
      return;
    }
    const reason = 'reason' in outcome ? outcome.reason : outcome.kind;
    this.refusedTries.set(reason, (this.refusedTries.get(reason) ?? 0) + 1);
    const hint = 'hint' in outcome ? outcome.hint : NO_RETRY;
    if ('hint' in outcome) user.refusal ??= { at: now, hint };
    const afterUs = user.tries < this.#crowd.triesMax ? this.#returnUs(user, hint) : undefined;
    if (afterUs !== undefined) this.#run?.at(now + afterUs, () => this.#try(number, user));
  }

  #returnUs(user: User, hint: RetryHint): DurationUs | undefined {
    if (user.manner === 'never') return undefined;
    if (user.manner === 'at-once') return AT_ONCE_US;
    if (!hint.retryable || hint.afterUs > HINT_US_MAX) return undefined;
    if (user.manner === 'half-way') return Math.ceil(hint.afterUs / 2);
    return Math.ceil(hint.afterUs * (1 + JITTER_SPAN * this.#prng.nextRatio()));
  }

  #enter(): void {
    const run = this.#run as VirtualRun;
    const number = this.users.length;
    const wish = this.#crowd.task(number, this.#prng);
    this.#wishes.set(number, wish);
    const user: User = {
      arrivedAt: run.now,
      className: wish.className ?? 'normal',
      manner: this.#crowd.manner(number),
      refusal: undefined,
      tries: 0,
      admittedAt: undefined,
      servedAt: undefined,
    };
    this.users.push(user);
    this.#try(number, user);
  }

  #try(number: number, user: User): void {
    const run = this.#run as VirtualRun;
    const { deadlineUs, ...wish } = this.#wishes.get(number) as ReturnType<Crowd['task']>;
    const id = this.#nextId++;
    this.#byTask.set(id, { user, number, triedAt: run.now });
    user.tries += 1;
    const workUs = wish.workUs ?? 1_000_000;
    run.submit({
      id,
      className: user.className,
      tenant: 't',
      model: 'm',
      needs: NO_NEEDS,
      firstByteWorkUs: workUs,
      bytes: 100,
      deadlineAt: run.now + deadlineUs,
      deadlineWished: true,
      stream: false,
      fingerprint: user.manner === 'half-way' ? `try ${id}` : `user ${number}`,
      ...(this.#crowd.tellsCount && user.manner !== 'half-way' ? { retryCount: user.tries - 1 } : {}),
      ...wish,
      workUs,
    });
    // The client's own time-out.
    run.at(run.now + deadlineUs, () => {
      if (this.#byTask.has(id)) run.apply({ kind: 'cancel', taskId: id });
    });
  }
}
