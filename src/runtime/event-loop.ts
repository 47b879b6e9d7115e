/**
 * The loop around the scheduler: one event at a time, its effects performed completely before the next.
 *
 * `post` queues an event and asks for one microtask per burst; `applyNow` drains at once when no drain is under way.
 * Events raised by performed effects join the end of the queue. The queue cannot grow without bound: it is emptied
 * before the process turns to the next socket or timer, so it holds at most what one turn can raise, which is a
 * submit, a cancel and three steps of an attempt per request, and one event per node and control call.
 *
 * One timer follows `nextWakeAt`. It is only ever moved earlier; when it fires too early it looks again.
 */
import { invariant } from '../base/assert.ts';
import { type DurationMs, type MonoUs, US_PER_MS } from '../base/units.ts';
import type { Scheduler } from '../core/scheduler/contract.ts';
import type { SchedulerEvent } from '../core/scheduler/events.ts';
import type { CancelTimer, RuntimeClock } from './clock.ts';
import { EffectBuffer, type EffectPerformer } from './effect-buffer.ts';

/** A scheduler that asks for instants in the past must not turn the timer into a spin. */
const WAKE_MS_MIN: DurationMs = 1;

const SETTLED: Promise<void> = Promise.resolve();

const TICK: SchedulerEvent = Object.freeze({ kind: 'tick' });

/** Sees each event before it is applied, and what it led to before that is performed. */
export interface LoopRecorder {
  event(event: SchedulerEvent, now: MonoUs): void;
  effects(effects: EffectBuffer): void;
}

/** A class, since it is the hot object that every request passes four times. */
export class EventLoop {
  readonly #scheduler: Scheduler;
  readonly #clock: RuntimeClock;
  readonly #performer: EffectPerformer;
  readonly #recorder: LoopRecorder | undefined;
  readonly #effects = new EffectBuffer();
  readonly #events: SchedulerEvent[] = [];
  readonly #drainLater: () => void;
  #draining = false;
  #asked = false;
  #stopped = false;
  #now: MonoUs;
  #wakeAt: MonoUs = Number.POSITIVE_INFINITY;
  #cancelTimer: CancelTimer | undefined;

  constructor(
    scheduler: Scheduler,
    clock: RuntimeClock,
    around: { readonly performer: EffectPerformer; readonly recorder?: LoopRecorder | undefined },
  ) {
    this.#scheduler = scheduler;
    this.#clock = clock;
    this.#performer = around.performer;
    this.#recorder = around.recorder;
    this.#now = clock.nowUs();
    this.#drainLater = () => {
      this.#asked = false;
      this.#drain();
    };
  }

  /** The instant of the event whose effects are being performed. */
  get now(): MonoUs {
    return this.#now;
  }

  /** Applies the event in a microtask of this turn. */
  post(event: SchedulerEvent): void {
    this.#events.push(event);
    if (this.#asked || this.#draining) return;
    this.#asked = true;
    // Half the price of `queueMicrotask`, which wraps each call for the sake of tracing.
    void SETTLED.then(this.#drainLater);
  }

  /** Applies what is queued and this event before it returns, unless effects are being performed right now. */
  applyNow(event: SchedulerEvent): void {
    this.#events.push(event);
    this.#drain();
  }

  /** Ends the timer. Events are still applied: who comes late is refused, not left waiting. */
  stop(): void {
    this.#stopped = true;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    const events = this.#events;
    try {
      for (let i = 0; i < events.length; i += 1) this.#step(events[i] as SchedulerEvent);
    } finally {
      // Only a broken invariant gets here with events left; what follows it must not be applied twice.
      events.length = 0;
      this.#draining = false;
    }
    this.#arm();
  }

  #step(event: SchedulerEvent): void {
    const now = this.#clock.nowUs();
    if (now > this.#now) this.#now = now;
    this.#recorder?.event(event, this.#now);
    this.#scheduler.apply(event, this.#now, this.#effects);
    if (this.#effects.length === 0) return;
    this.#recorder?.effects(this.#effects);
    this.#effects.drain(this.#performer);
  }

  #arm(): void {
    if (this.#stopped) return;
    const wakeAt = this.#scheduler.nextWakeAt();
    invariant(!Number.isNaN(wakeAt), 'The next wake is an instant or infinity');
    if (wakeAt >= this.#wakeAt) return;
    this.#cancelTimer?.();
    this.#wakeAt = wakeAt;
    const delayMs = Math.max(WAKE_MS_MIN, (wakeAt - this.#clock.nowUs()) / US_PER_MS);
    this.#cancelTimer = this.#clock.after(delayMs, () => this.#wake());
  }

  #wake(): void {
    this.#wakeAt = Number.POSITIVE_INFINITY;
    this.#cancelTimer = undefined;
    if (this.#scheduler.nextWakeAt() <= this.#clock.nowUs()) this.applyNow(TICK);
    else this.#arm();
  }
}
