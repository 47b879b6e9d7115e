/**
 * A single-slot image server with a FIFO of its own, as real Stable Diffusion servers have.
 *
 * One task runs at a time; the next starts at the exact virtual end of the one before it. When a completion was
 * reported late because this process was busy, the next arrival is dated back by that lateness (at most
 * `LATENESS_CREDIT_MS`): an accelerator would have reported in time, and the emulator's own delay must not look like
 * a slower card.
 *
 * Invariants: at most one task runs; each task ends exactly once, by `finished` or by `cancel`; busy time is the sum
 * of virtual running times and never counts waiting.
 */
import type { DurationMs } from '../base/units.ts';
import { EARLY_MS, type EmulatorClock, type Timer } from './clock.ts';

const LATENESS_CREDIT_MS = 25;

export interface ImageTask {
  /** Wall time of the service, with speed and noise applied. */
  readonly serviceMs: DurationMs;
  /** Called in the turn of the timer; the arguments are wall times of this task. */
  readonly finished: (times: { readonly queuedMs: DurationMs; readonly serviceMs: DurationMs }) => void;
}

export interface ImageTicket {
  /** Frees the slot, or the place in the queue, at once. Returns how long the task had run; -1 when it had ended. */
  cancel(): DurationMs;
}

export interface ImageEngine {
  /** Undefined when the queue is at its bound. */
  submit(task: ImageTask): ImageTicket | undefined;
  readonly waiting: number;
  readonly running: number;
  /** Virtual time spent running, including the task under way. */
  busyMs(): DurationMs;
  /** Forgets every task without calling back: the process behind it died. */
  drop(): void;
}

interface Job {
  readonly task: ImageTask;
  readonly arrivedAt: DurationMs;
  startedAt: DurationMs;
  state: 'waiting' | 'running' | 'ended';
}

interface EngineState {
  readonly clock: EmulatorClock;
  readonly queueMax: number;
  queue: Job[];
  /** Index of the first job that has not been taken; cancelled jobs stay in place until passed. */
  head: number;
  waiting: number;
  running: Job | undefined;
  timer: Timer | undefined;
  freeAt: DurationMs;
  lateMs: DurationMs;
  busyMs: DurationMs;
}

/** Taken places are cut off once there are this many and they are half of the array. */
const QUEUE_CUT_MIN = 512;

export function createImageEngine(clock: EmulatorClock, options: { readonly queueMax: number }): ImageEngine {
  const state: EngineState = {
    clock,
    queueMax: options.queueMax,
    queue: [],
    head: 0,
    waiting: 0,
    running: undefined,
    timer: undefined,
    freeAt: Number.NEGATIVE_INFINITY,
    lateMs: 0,
    busyMs: 0,
  };
  return {
    submit: (task) => submit(state, task),
    get waiting() {
      return state.waiting;
    },
    get running() {
      return state.running === undefined ? 0 : 1;
    },
    busyMs: () => {
      const { running } = state;
      return state.busyMs + (running === undefined ? 0 : Math.max(0, clock.now() - running.startedAt));
    },
    drop: () => drop(state),
  };
}

function submit(state: EngineState, task: ImageTask): ImageTicket | undefined {
  if (state.waiting >= state.queueMax) return undefined;
  const now = state.clock.now();
  const job: Job = { task, arrivedAt: now, startedAt: 0, state: 'waiting' };
  if (state.running === undefined) {
    start(state, job, Math.max(state.freeAt, now - state.lateMs));
    state.lateMs = 0;
  } else {
    state.queue.push(job);
    state.waiting += 1;
  }
  return { cancel: () => cancel(state, job) };
}

function start(state: EngineState, job: Job, at: DurationMs): void {
  state.running = job;
  job.state = 'running';
  job.startedAt = at;
  arm(state, at + job.task.serviceMs);
}

function arm(state: EngineState, endAt: DurationMs): void {
  state.timer = state.clock.after(endAt - state.clock.now(), () => {
    const now = state.clock.now();
    if (now < endAt - EARLY_MS) arm(state, endAt);
    else finish(state, endAt, now);
  });
}

function finish(state: EngineState, endAt: DurationMs, now: DurationMs): void {
  const job = state.running as Job;
  job.state = 'ended';
  state.busyMs += endAt - job.startedAt;
  state.lateMs = Math.min(LATENESS_CREDIT_MS, Math.max(0, now - endAt));
  release(state, endAt);
  job.task.finished({ queuedMs: Math.max(0, job.startedAt - job.arrivedAt), serviceMs: job.task.serviceMs });
}

function release(state: EngineState, at: DurationMs): void {
  state.running = undefined;
  state.timer = undefined;
  state.freeAt = at;
  const next = takeNext(state);
  if (next !== undefined) start(state, next, at);
}

function takeNext(state: EngineState): Job | undefined {
  while (state.head < state.queue.length) {
    const job = state.queue[state.head] as Job;
    state.head += 1;
    if (state.head > QUEUE_CUT_MIN && state.head * 2 > state.queue.length) {
      state.queue = state.queue.slice(state.head);
      state.head = 0;
    }
    if (job.state === 'waiting') {
      state.waiting -= 1;
      return job;
    }
  }
  clearQueue(state);
  return undefined;
}

function clearQueue(state: EngineState): void {
  state.queue = [];
  state.head = 0;
}

function cancel(state: EngineState, job: Job): DurationMs {
  if (job.state === 'ended') return -1;
  const wasRunning = job.state === 'running';
  job.state = 'ended';
  if (!wasRunning) {
    state.waiting -= 1;
    if (state.waiting === 0) clearQueue(state);
    return 0;
  }
  state.timer?.cancel();
  const now = Math.max(state.clock.now(), job.startedAt);
  state.busyMs += now - job.startedAt;
  state.lateMs = 0;
  release(state, now);
  return now - job.startedAt;
}

function drop(state: EngineState): void {
  state.timer?.cancel();
  for (const job of state.queue) job.state = 'ended';
  if (state.running !== undefined) state.running.state = 'ended';
  clearQueue(state);
  state.waiting = 0;
  state.running = undefined;
  state.timer = undefined;
  state.lateMs = 0;
}
