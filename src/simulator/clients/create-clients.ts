/**
 * The clients of a run: users of all streams, each with its tries, in virtual time.
 *
 * Two agendas: sources by when their next user comes, users by when they hang up or come back. Nothing is on the second
 * for users who do neither. What is kept grows with users under way and with nothing else.
 *
 * Invariants: each user arrives once and ends once; a user under way has a try under way or a timer, never neither; a
 * try's number is larger than those before it.
 */
import { KeyedHeap } from '../../base/keyed-heap.ts';
import type { DurationUs, MonoUs, TaskId } from '../../base/units.ts';
import type { Outcome } from '../../core/request/outcome.ts';
import { TaskTable } from '../task-table.ts';
import type { Clients, ClientSink } from './clients.ts';
import { createSources, type SourcesOptions } from './create-sources.ts';
import { Draws } from './draws.ts';
import { type FailedTry, returnAfterUs } from './patience.ts';
import type { Source } from './source.ts';
import { TryRequest } from './try-request.ts';
import type { UserEnd, UserObserver } from './user.ts';
import { UserRecord } from './user-record.ts';

/** Records that wait for another user, and for another try: as many as one burst leaves, no more. */
const SPARE_MAX = 16_384;

export interface ClientsOptions extends SourcesOptions {
  readonly observer?: UserObserver;
}

export interface RunClients extends Clients {
  /** The run is over: who is still under way gave up. Nothing is due afterwards. */
  finish(now: MonoUs): void;
}

/** Throws a `TraceError` where a trace file is not one. */
export function createClients(options: ClientsOptions): RunClients {
  return new Crowd(options);
}

class Crowd implements RunClients {
  readonly #sources = new KeyedHeap<Source>();
  readonly #timers = new KeyedHeap<UserRecord>();
  /** By the try under way. */
  readonly #out = new TaskTable<UserRecord>();
  readonly #draws = new Draws();
  readonly #observer: UserObserver;
  readonly #spareUsers: UserRecord[] = [];
  readonly #spareRequests: TryRequest[] = [];
  readonly #released: (request: TryRequest) => void = (request) => this.#release(request);
  #nextIndex = 0;
  #nextTaskId: TaskId = 1;

  constructor(options: ClientsOptions) {
    this.#observer = options.observer ?? {};
    for (const source of createSources(options, this.#draws)) this.#sources.push(source.place, source.nextAt);
  }

  nextAt(): MonoUs {
    return Math.min(this.#sources.leastKey, this.#timers.leastKey);
  }

  advance(now: MonoUs, sink: ClientSink): void {
    for (;;) {
      if (this.#sources.leastKey <= now) this.#arrive(this.#sources.peek() as Source, now, sink);
      else if (this.#timers.leastKey <= now) this.#wake(this.#timers.peek() as UserRecord, now, sink);
      else return;
    }
  }

  firstByte(taskId: TaskId, now: MonoUs): void {
    const user = this.#out.get(taskId);
    if (user === undefined) return;
    if (user.firstByteAt < 0) user.firstByteAt = now;
    if (user.source.law.stream.isStream) this.#stopTimer(user);
  }

  outcome(taskId: TaskId, outcome: Outcome | { readonly kind: 'lost' }, now: MonoUs): void {
    const user = this.#out.get(taskId);
    if (user === undefined) return;
    this.#out.delete(taskId);
    user.isOut = false;
    this.#stopTimer(user);
    if (outcome.kind === 'served') return this.#end(user, SERVED, now);
    if (outcome.kind === 'degraded') return this.#end(user, DEGRADED, now);
    const afterUs = this.#returnAfterUs(user, outcome);
    if (afterUs === undefined) return this.#end(user, endOf(outcome), now);
    this.#setTimer(user, now + afterUs);
  }

  finish(now: MonoUs): void {
    const left = [...this.#out.all(), ...[...this.#timers].filter(({ isOut }) => !isOut)];
    this.#out.clear();
    for (const user of left.toSorted((a, b) => a.index - b.index)) {
      this.#stopTimer(user);
      this.#observer.userEnded?.(user, GAVE_UP, now);
    }
    while (this.#sources.size > 0) this.#sources.remove((this.#sources.peek() as Source).place);
  }

  #arrive(source: Source, now: MonoUs, sink: ClientSink): void {
    const user = this.#spareUsers.pop() ?? new UserRecord(source);
    user.begin(source, this.#nextIndex++);
    source.take(user);
    if (source.nextAt === Number.POSITIVE_INFINITY) this.#sources.remove(source.place);
    else this.#sources.update(source.place, source.nextAt);
    this.#observer.userArrived?.(user, now);
    this.#try(user, now, sink);
  }

  /** Its timer fired. */
  #wake(user: UserRecord, now: MonoUs, sink: ClientSink): void {
    this.#stopTimer(user);
    if (user.isOut) sink.cancel(user.taskId);
    else this.#try(user, now, sink);
  }

  #try(user: UserRecord, now: MonoUs, sink: ClientSink): void {
    user.tries += 1;
    user.taskId = this.#nextTaskId++;
    user.firstByteAt = -1;
    user.isOut = true;
    this.#out.add(user.taskId, user);
    if (user.source.law.stream.users.hangsUp) this.#setTimer(user, now + user.deadlineUs);
    user.openTries += 1;
    const request = this.#spareRequests.pop() ?? new TryRequest(user, this.#released);
    request.become(user, now);
    sink.submit(request);
  }

  #release(request: TryRequest): void {
    const { user } = request;
    user.openTries -= 1;
    if (this.#spareRequests.length < SPARE_MAX) this.#spareRequests.push(request);
    if (!user.hasEnded || user.openTries > 0 || this.#spareUsers.length >= SPARE_MAX) return;
    this.#spareUsers.push(user);
  }

  #returnAfterUs(user: UserRecord, end: FailedTry): DurationUs | undefined {
    const { stream, returnKey } = user.source.law;
    if (user.tries >= stream.users.triesMax) return undefined;
    this.#draws.begin(returnKey, user.draw, user.tries);
    return returnAfterUs(end, { isPatient: user.isPatient, spec: stream.users }, this.#draws);
  }

  #end(user: UserRecord, end: UserEnd, now: MonoUs): void {
    user.hasEnded = true;
    this.#observer.userEnded?.(user, end, now);
    const { source } = user;
    if (source.ended === undefined) return;
    source.ended(now);
    if (source.nextAt < Number.POSITIVE_INFINITY) this.#sources.push(source.place, source.nextAt);
  }

  #setTimer(user: UserRecord, at: MonoUs): void {
    this.#timers.push(user.timerSlot(), at);
  }

  #stopTimer({ timer }: UserRecord): void {
    if (timer?.isInHeap === true) this.#timers.remove(timer);
  }
}

const SERVED: UserEnd = Object.freeze({ kind: 'served' });
const DEGRADED: UserEnd = Object.freeze({ kind: 'degraded' });
const GAVE_UP: UserEnd = Object.freeze({ kind: 'gave-up' });
const REFUSED: UserEnd = Object.freeze({ kind: 'refused' });
const FAILED: UserEnd = Object.freeze({ kind: 'failed' });

function endOf({ kind }: FailedTry): UserEnd {
  if (kind === 'cancelled') return GAVE_UP;
  return kind === 'rejected' || kind === 'evicted' ? REFUSED : FAILED;
}
